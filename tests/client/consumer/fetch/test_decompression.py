"""Which batches are decompressed in a thread, and that nothing is lost or mixed up by it."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from support.calls import batch
from support.coordinator_members import make_topic
from trionet import Broker, open_broker
from trionet._util._off_loop import computing_threads
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer._consumer import Consumer
from trionet.client.consumer._open_consumer import open_consumer
from trionet.client.consumer._settings import ConsumerSettings
from trionet.client.consumer.fetch._completed_fetch import CompletedFetch
from trionet.client.consumer.fetch._decompression import (
    INLINE_BYTES_MAX,
    PACKED_BYTES_MAX,
    Decompression,
    decompressed_inline,
)
from trionet.client.consumer.fetch._settings import FetchSettings
from trionet.client.consumer.records._chunk import FetchPosition
from trionet.client.consumer.state._partition_state import PartitionState
from trionet.client.consumer.state._reset_strategy import EARLIEST
from trionet.client.producer._open_producer import open_producer
from trionet.errors import CorruptRecordError, FetchTooLargeError
from trionet.protocol.records._batch import HEADER_SIZE, read_header
from trionet.protocol.records.compression._codecs import GZIP, LZ4, NONE, SNAPPY, ZSTD

T0 = TopicPartition("t", 0)
DEFAULTS = FetchSettings()
NOISE = random.Random(1).randbytes(PACKED_BYTES_MAX)
SPARSE = bytes(INLINE_BYTES_MAX)


def is_opened_at_once(records: bytes) -> bool:
    view, header = memoryview(records), read_header(records, 0)
    return decompressed_inline(view, 0, header, DEFAULTS.decompressed_bytes_max) is not None


def fetched(records: bytes, offset: int = 0, settings: FetchSettings = DEFAULTS) -> CompletedFetch:
    state = PartitionState()
    state.seek(FetchPosition(offset), is_valid=True)
    view = memoryview(records)
    return CompletedFetch(T0, state, FetchPosition(offset), view, (), settings, 1)


async def values(fetch: CompletedFetch) -> list[bytes | None]:
    found: list[bytes | None] = []
    while True:
        chunk = fetch.next_chunk(100)
        if chunk is not None:
            found += [each.value for each in chunk.records]
        elif fetch.decompression is None:
            return found
        else:
            await fetch.decompression.run()


# Which.


@pytest.mark.parametrize(
    ("codec", "value", "expected"),
    [
        (GZIP, b"small", True),
        (GZIP, NOISE[:-200], True),
        (GZIP, NOISE, False),
        (GZIP, SPARSE[:-200], True),
        (GZIP, SPARSE, False),
        (ZSTD, SPARSE, False),
        (NONE, NOISE * 4, True),
    ],
)
def test_what_is_large_packed_or_unpacked_takes_a_thread(
    codec: int, value: bytes, expected: bool
) -> None:
    assert expected is is_opened_at_once(batch(value, codec=codec))


async def test_records_stay_in_order() -> None:
    large = [b"%d" % each + SPARSE for each in range(4)]
    records = b"".join(
        batch(value, base_offset=at, codec=GZIP)
        for at, value in enumerate([b"a", large[0], large[1], b"b", b"c", large[2], large[3]])
    )

    assert [b"a", large[0], large[1], b"b", b"c", large[2], large[3]] == await values(
        fetched(records)
    )


async def test_what_was_decoded_before_a_large_batch_is_not_kept_waiting() -> None:
    fetch = fetched(batch(b"a") + batch(SPARSE, base_offset=1, codec=GZIP))
    chunk = fetch.next_chunk(100)

    assert chunk is not None
    assert [b"a"] == [each.value for each in chunk.records]
    assert [SPARSE] == await values(fetch)


async def test_a_large_batch_that_is_corrupt_is_reported() -> None:
    """Its checksum is right: whoever wrote it did so wrongly."""
    good = batch(NOISE * 2, codec=GZIP)
    bad = batch(NOISE * 2, base_offset=1, codec=GZIP)
    broken = bytearray(bad)
    broken[HEADER_SIZE : HEADER_SIZE + 2] = b"no"
    state = PartitionState()
    state.seek(FetchPosition(0), is_valid=True)
    unchecked = FetchSettings(checks_crcs=False)
    view = memoryview(good + bytes(broken))
    fetch = CompletedFetch(T0, state, FetchPosition(0), view, (), unchecked, 1)

    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="cannot read t-0 at offset 1"):
            await values(fetch)
    assert len(bad) == fetch.size


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
@pytest.mark.parametrize("size", [100_000, 1_000_000], ids=["inline", "in a thread"])
async def test_a_batch_that_is_too_large_when_it_is_decompressed_is_an_error_that_says_what_to_set(
    codec: int, size: int
) -> None:
    """It may be intact, so that nothing is said of corruption."""
    records = batch(b"a") + batch(bytes(size), b"b", base_offset=1, codec=codec)
    error = (
        "fetch.max.decompressed.bytes = 90000 when decompressed; set"
        r" fetch.max.decompressed.bytes higher, or seek\(\) past the batch, to 3$"
    )
    for _ in range(2):
        fetch = fetched(records, settings=FetchSettings(decompressed_bytes_max=90_000))
        chunk = fetch.next_chunk(1)
        assert chunk is not None
        with pytest.raises(FetchTooLargeError, match=error) as caught:
            await values(fetch)
        assert (1, 0, 90_000) == (caught.value.offset, caught.value.size, caught.value.bytes_max)
    larger = FetchSettings(decompressed_bytes_max=size + 100)
    assert [b"a", bytes(size), b"b"] == await values(fetched(records, settings=larger))


async def test_an_inflation_that_was_cancelled_before_it_began_is_begun_again() -> None:
    records = memoryview(batch(SPARSE, codec=GZIP))
    decompression = Decompression(records, 0, DEFAULTS.decompressed_bytes_max)
    with trio.CancelScope() as scope:
        scope.cancel()
        await decompression.run()
    assert (None, None) == (decompression.opened, decompression.error)
    await decompression.run()

    assert decompression.opened is not None


# In a consumer.

QUICK = ConsumerSettings(reset=EARLIEST, fetch=FetchSettings(wait_seconds=0.005))


@asynccontextmanager
async def reading(broker: Broker, *written: bytes) -> AsyncIterator[Consumer]:
    await make_topic(broker, "t", 1)
    async with open_producer(
        broker.bootstrap_servers, compression_type="gzip", max_request_size=4_000_000
    ) as writer:
        for value in written:
            await writer.send("t", value)
    async with open_consumer(broker.bootstrap_servers, QUICK) as consumer:
        consumer.assign([T0])
        yield consumer


async def until_computing() -> None:
    """Wait until a thread works, or has worked."""
    while computing_threads().borrowed_tokens == 0:
        await trio.lowlevel.checkpoint()


async def test_who_is_cancelled_meanwhile_loses_nothing_and_leaves_no_thread() -> None:
    written = [b"%d" % each + bytes(900_000) for each in range(4)]
    found: list[bytes | None] = []
    async with open_broker() as broker, reading(broker, *written) as consumer:

        async def read() -> None:
            with scope:
                found.append((await anext(consumer)).value)

        while len(found) < len(written):
            scope = trio.CancelScope()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(read)
                with trio.move_on_after(0.5):
                    await until_computing()
                scope.cancel()
            assert 0 == computing_threads().borrowed_tokens

    assert written == found


async def test_who_seeks_meanwhile_goes_on_there() -> None:
    written = [b"%d" % each + bytes(900_000) for each in range(3)]
    async with open_broker() as broker, reading(broker, *written) as consumer:
        found: list[bytes | None] = []

        async def read() -> None:
            found.append((await anext(consumer)).value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await until_computing()
            consumer.seek(T0, 2)

    assert [written[2]] == found
