"""What a source in Spark asks for, and the records that its tasks read and decode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial

import trio

from responses.programs import (
    ADDRESS,
    RECORDS_MAX,
    TOPIC,
    EndlessError,
    Scene,
    tried,
)
from trionet._util._raising import raise_single_error
from trionet.spark._options import SourceOptions
from trionet.spark._planning import OffsetRange
from trionet.spark.source import _offset_reader as offset_reader
from trionet.spark.source._arrow_decoder import ColumnDecoder, FetchedRecords
from trionet.spark.source._offset_reader import (
    OffsetReader,
    SourceClient,
    batch_ranges,
    open_source_client,
)
from trionet.spark.source._range_reader import RangeFetcher


async def spark(scene: Scene) -> None:
    """Plans of a batch, and what its tasks read."""
    rng = scene.rng
    options = SourceOptions.parse(
        {
            "kafka.bootstrap.servers": ADDRESS,
            "subscribe": TOPIC,
            "startingOffsets": "earliest",
            "failOnDataLoss": rng.choice(("true", "false")),
            "kafkaConsumer.pollTimeoutMs": "1500",
            "kafka.default.api.timeout.ms": "1500",
            "kafka.request.timeout.ms": "1000",
            "kafka.isolation.level": rng.choice(("read_committed", "read_uncommitted")),
            **rng.choice(({}, {"minPartitions": "5"}, {"maxRecordsPerPartition": "2"})),
        },
        is_stream=False,
    )
    reader = OffsetReader(options)
    ranges: list[OffsetRange] = []

    async def plan() -> None:
        ranges.extend(await batch_ranges(options, reader))

    async def ask() -> None:
        partitions = await reader.partitions()
        await reader.latest(partitions)
        await reader.for_times(dict.fromkeys(partitions, 1000))

    with clients_in(scene):
        await tried(plan)
        await tried(ask)
        for each in ranges[:6] or [OffsetRange(TOPIC, 0, 0, 6), OffsetRange(TOPIC, 1, -2, -1)]:
            await tried(partial(read, scene, options, each))


@contextmanager
def clients_in(scene: Scene) -> Iterator[None]:
    """A source's client is leased from a thread's loop; here each is opened in this one."""

    def lease(options: SourceOptions) -> AbstractAsyncContextManager[SourceClient]:
        return open_source_client(offset_reader._settings(options), network=scene.network)

    before = offset_reader.leased_client
    offset_reader.leased_client = lease
    try:
        yield
    finally:
        offset_reader.leased_client = before


async def read(scene: Scene, options: SourceOptions, each: OffsetRange) -> None:
    """Read a range as a task does."""
    decoder = ColumnDecoder(each.topic_partition, include_headers=True)
    send, receive = trio.open_memory_channel[FetchedRecords](1)
    count = 0

    async def fetch(client: SourceClient) -> None:
        with send:
            await RangeFetcher(client, options, each).run(send)

    with raise_single_error():
        async with offset_reader.leased_client(options) as client, trio.open_nursery() as nursery:
            nursery.start_soon(fetch, client)
            async for fetched in receive:
                count += sum(batch.num_rows for batch in decoder.decode(fetched))
                if count > RECORDS_MAX:
                    raise EndlessError(f"{count} records")
