"""Topics with a ``compression.type`` of their own, and clients too old for zstd."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from support.brokers import broker_client
from support.calls import (
    FETCH_BY_NAME,
    PRODUCE_BY_NAME,
    TIMESTAMP,
    batch,
    create_topic,
    delete_topic,
    fetch,
    produce,
    produce_request,
    records_of,
    values_of,
)
from support.client import Client, connect
from support.config_calls import TOPIC, alter, sets
from trionet import Broker, open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.fetch import PartitionData
from trionet.protocol.messages.produce import ProduceResponse
from trionet.protocol.records._batch import iter_batches
from trionet.protocol.records.compression._codecs import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD

TYPES = {"uncompressed": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
MUCH = bytes(range(256)) * 3500
# Compressing anything takes so long then that the broker is in the midst of it...
SLOW = {"compression.type": "zstd", "compression.zstd.level": 22}
# ...when everything else has been idle for this long.
BEGINS_SECONDS = 0.01


def codecs_of(data: PartitionData) -> list[int]:
    assert data.records is not None
    records = bytes(memoryview(data.records))  # type: ignore[arg-type]
    return [header.codec for _, header in iter_batches(records)]


@pytest.mark.parametrize("wanted", list(TYPES))
async def test_every_codec_is_stored_as_the_topics(client: Client, wanted: str) -> None:
    await create_topic(client, "t", compression_type=wanted)

    answers = [
        await produce(client, "t", batch(b"%d" % codec, b"more", codec=codec)) for codec in NAMES
    ]

    fetched = await fetch(client, "t")
    assert [(0, 2 * number) for number in range(5)] == [
        (each.error_code, each.base_offset) for each in answers
    ]
    assert [TYPES[wanted]] * 5 == codecs_of(fetched)
    assert [value for codec in NAMES for value in (b"%d" % codec, b"more")] == values_of(fetched)


async def test_a_repetition_is_known_although_it_was_compressed_anew(client: Client) -> None:
    await create_topic(client, "t", compression_type="zstd")
    numbered = batch(b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=0, codec=GZIP)

    answers = [await produce(client, "t", numbered) for _ in range(2)]

    assert [(0, 0), (0, 0)] == [(each.error_code, each.base_offset) for each in answers]
    assert [b"a", b"b"] == values_of(await fetch(client, "t"))


async def test_log_append_time_is_given_to_what_is_compressed_anew(client: Client) -> None:
    await create_topic(client, "t", compression_type="lz4", message_timestamp_type="LogAppendTime")

    answer = await produce(client, "t", batch(b"a", b"b", codec=GZIP))

    fetched = await fetch(client, "t")
    assert TIMESTAMP < answer.log_append_time_ms
    assert {answer.log_append_time_ms} == {timestamp for _, timestamp, *_ in records_of(fetched)}
    assert [LZ4] == codecs_of(fetched)


async def test_one_connections_batches_stay_in_order_however_long_they_take(
    client: Client,
) -> None:
    await create_topic(client, "t", compression_type="gzip")
    sent = [MUCH, b"1", MUCH, b"3"]

    for value in sent:
        await client.send(produce_request("t", batch(value)), PRODUCE_BY_NAME)
    answers = [await client.receive() for _ in sent]

    offsets = [
        answer.responses[0].partition_responses[0].base_offset
        for answer in answers
        if isinstance(answer, ProduceResponse)
    ]
    assert [0, 1, 2, 3] == offsets
    assert sent == values_of(await fetch(client, "t"))


async def test_without_responses_they_do_too(client: Client) -> None:
    await create_topic(client, "t", compression_type="gzip")

    for value in (MUCH, b"1"):
        await client.send_unanswered(produce_request("t", batch(value), acks=0), PRODUCE_BY_NAME)
    await produce(client, "t", batch(b"2"))

    assert [MUCH, b"1", b"2"] == values_of(await fetch(client, "t"))


async def test_partitions_of_one_request_succeed_and_fail_by_themselves(client: Client) -> None:
    await create_topic(client, "t", partitions=3, compression_type="snappy")
    torn = bytearray(batch(b"b", codec=GZIP))
    torn[-1] ^= 1

    response = await client.call(
        produce_request("t", {0: batch(b"a"), 1: bytes(torn), 2: batch(b"c", codec=SNAPPY)}),
        PRODUCE_BY_NAME,
    )

    [topic] = response.responses
    assert [(0, 0, 0), (1, error_codes.CORRUPT_MESSAGE, -1), (2, 0, 0)] == [
        (each.index, each.error_code, each.base_offset) for each in topic.partition_responses
    ]
    assert [b"a"] == values_of(await fetch(client, "t"))


async def test_what_does_not_fit_any_more_is_refused(client: Client) -> None:
    await create_topic(client, "t", compression_type="uncompressed", max_message_bytes=5000)
    zeros = batch(bytes(10_000), codec=ZSTD)

    answer = await produce(client, "t", zeros)

    assert len(zeros) < 5000
    assert error_codes.MESSAGE_TOO_LARGE == answer.error_code


async def test_an_altered_codec_counts_from_the_next_batch_on(client: Client) -> None:
    await create_topic(client, "t")

    for wanted in ("producer", "lz4", "uncompressed", "producer"):
        assert (0, "") == await alter(client, TOPIC, "t", *sets(compression_type=wanted))
        await produce(client, "t", batch(b"a", codec=ZSTD))

    assert [ZSTD, LZ4, NONE, ZSTD] == codecs_of(await fetch(client, "t"))


async def test_the_brokers_setting_is_that_of_topics_without_one() -> None:
    async with broker_client(compression_type="gzip") as client:
        await create_topic(client, "t")
        await create_topic(client, "as-it-comes", compression_type="producer")
        for topic in ("t", "as-it-comes"):
            await produce(client, topic, batch(b"a"))

        assert [GZIP] == codecs_of(await fetch(client, "t"))
        assert [NONE] == codecs_of(await fetch(client, "as-it-comes"))


async def test_a_topic_that_is_deleted_meanwhile_takes_nothing(
    client: Client, broker: Broker
) -> None:
    # Level 22 takes a tenth of a second and more for any batch; deleting takes none.
    await create_topic(client, "t", compression_type="zstd", compression_zstd_level=22)
    async with connect(broker.bootstrap_servers) as other:
        await client.send(produce_request("t", batch(MUCH)), PRODUCE_BY_NAME)
        await delete_topic(other, "t")
        response = await client.receive()

    assert isinstance(response, ProduceResponse)
    [answer] = response.responses[0].partition_responses
    assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == answer.error_code


async def test_who_goes_away_meanwhile_has_produced(client: Client, broker: Broker) -> None:
    await create_topic(client, "t", compression_type="zstd", compression_zstd_level=22)
    async with connect(broker.bootstrap_servers) as other:
        await other.send(produce_request("t", batch(MUCH)), PRODUCE_BY_NAME)
        await wait_all_tasks_blocked(BEGINS_SECONDS)

    fetched = await fetch(client, "t", max_wait_ms=60_000)

    assert [MUCH] == values_of(fetched)


@pytest.mark.slow
async def test_a_broker_that_stops_meanwhile_responds_first(tmp_path: Path) -> None:
    async with AsyncExitStack() as running:
        broker = await running.enter_async_context(open_broker(SLOW, log_dirs=str(tmp_path)))
        async with connect(broker.bootstrap_servers) as client:
            await create_topic(client, "t")
            await client.send(produce_request("t", batch(MUCH)), PRODUCE_BY_NAME)
            await wait_all_tasks_blocked(BEGINS_SECONDS)
            await running.aclose()
            response = await client.receive()

    assert isinstance(response, ProduceResponse)
    [answer] = response.responses[0].partition_responses
    assert (0, 0) == (answer.error_code, answer.base_offset)
    assert [MUCH] == await stored_in(tmp_path)


@pytest.mark.slow
async def test_a_broker_that_is_cancelled_meanwhile_has_stored_all_or_nothing(
    tmp_path: Path,
) -> None:
    with trio.CancelScope() as scope:
        async with broker_client(SLOW, log_dirs=str(tmp_path)) as client:
            await create_topic(client, "t")
            await client.send(produce_request("t", batch(MUCH)), PRODUCE_BY_NAME)
            await wait_all_tasks_blocked(BEGINS_SECONDS)
            scope.cancel()
            await trio.lowlevel.checkpoint()

    assert scope.cancelled_caught
    assert await stored_in(tmp_path) in ([], [MUCH])


async def stored_in(folder: Path) -> list[bytes | None]:
    async with broker_client(log_dirs=str(folder)) as client:
        return values_of(await fetch(client, "t"))


@pytest.mark.parametrize("version", [4, 9, 10, FETCH_BY_NAME])
async def test_a_topic_in_zstd_is_given_to_clients_of_any_version_as_by_kafka(
    client: Client, version: int
) -> None:
    """The broker of Kafka 4 leaves it to them, whether they can read it (FetchRequestTest)."""
    await create_topic(client, "t", compression_type="zstd")
    # Clients that are too old for zstd may write nevertheless: without it.
    answer = await produce(client, "t", batch(b"a"), version=3)

    fetched = await fetch(client, "t", version=version)

    assert 0 == answer.error_code
    assert (0, [ZSTD]) == (fetched.error_code, codecs_of(fetched))
