"""Produce 0 to 2: message sets of old producers, which are stored as batches."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import trio

from support.brokers import close_reasons, log_of
from support.calls import (
    TIMESTAMP,
    batch,
    bytes_of,
    create_topic,
    delete_topic,
    fetch,
    produce,
    produce_request,
    records_of,
    values_of,
)
from support.client import Client, connect
from trionet import Broker, open_broker
from trionet._util._off_loop import limiter_of_run
from trionet.broker.storage._record_conversion import AT_A_TIME, _conversions
from trionet.net.wire._close_reason import CloseReason
from trionet.protocol import error_codes
from trionet.protocol.records._batch import iter_batches
from trionet.protocol.records._types import Record
from trionet.protocol.records.compression._codecs import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD
from trionet.protocol.records.message_sets._message_set import encode_message_set

OLD_VERSIONS = (0, 1, 2)


def messages(*values: bytes, magic: int = 1, codec: int = NONE, timestamp_type: int = 0) -> bytes:
    records: list[Record] = [
        (at, TIMESTAMP + at, b"key", value, ()) for at, value in enumerate(values)
    ]
    return encode_message_set(records, magic=magic, codec=codec, timestamp_type=timestamp_type)


@pytest.mark.parametrize("version", OLD_VERSIONS)
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4], ids=NAMES.get)
async def test_message_sets_are_stored_as_batches(
    client: Client, version: int, magic: int, codec: int
) -> None:
    """In any of these versions, whatever the format: Kafka does not compare them, either."""
    await create_topic(client, "t")
    await produce(client, "t", batch(b"first"))

    answer = await produce(
        client, "t", messages(b"a", b"b", magic=magic, codec=codec), version=version
    )
    data = await fetch(client, "t", 1)

    assert (0, 1, -1) == (answer.error_code, answer.base_offset, answer.log_append_time_ms)
    assert [
        (1, TIMESTAMP if magic else -1, b"key", b"a", ()),
        (2, TIMESTAMP + 1 if magic else -1, b"key", b"b", ()),
    ] == records_of(data)
    assert [codec] == [header.codec for _, header in iter_batches(bytes_of(data))]


@pytest.mark.parametrize("version", OLD_VERSIONS)
async def test_batches_are_taken_in_old_versions_too(client: Client, version: int) -> None:
    await create_topic(client, "t")

    answer = await produce(client, "t", batch(b"a"), version=version)

    assert (0, 0) == (answer.error_code, answer.base_offset)
    assert [b"a"] == values_of(await fetch(client, "t"))


async def test_zstd_is_refused_in_old_versions(client: Client) -> None:
    await create_topic(client, "t")

    answer = await produce(client, "t", batch(b"a", codec=ZSTD), version=2)

    assert error_codes.UNSUPPORTED_COMPRESSION_TYPE == answer.error_code


@pytest.mark.parametrize("codec", [NONE, GZIP], ids=NAMES.get)
async def test_large_sets_are_converted_too(client: Client, codec: int) -> None:
    """In a thread, since it takes a while."""
    await create_topic(client, "t")
    values = [b"%07d" % number * 30 for number in range(3000)]

    answer = await produce(client, "t", messages(*values, codec=codec), version=2)

    assert (0, 0) == (answer.error_code, answer.base_offset)
    assert values == values_of(await fetch(client, "t"))


async def test_messages_that_fit_one_by_one_are_stored(client: Client) -> None:
    """An old producer knows of a limit for messages, not for all that it sends at once."""
    await create_topic(client, "t", max_message_bytes=1000)
    values = [b"%03d" % number * 100 for number in range(20)]

    answer = await produce(client, "t", messages(*values), version=2)
    data = await fetch(client, "t")

    assert (0, 0) == (answer.error_code, answer.base_offset)
    assert values == values_of(data)
    assert all(header.size <= 1000 for _, header in iter_batches(bytes_of(data)))


@pytest.mark.parametrize("codec", [NONE, GZIP], ids=NAMES.get)
async def test_a_message_larger_than_the_limit_is_refused(client: Client, codec: int) -> None:
    await create_topic(client, "t", max_message_bytes=100)
    value = bytes(range(256)) * 2

    answer = await produce(client, "t", messages(value, codec=codec), version=2)

    assert error_codes.MESSAGE_TOO_LARGE == answer.error_code


async def test_log_append_time_is_the_brokers_clock(client: Client) -> None:
    await create_topic(client, "t", message_timestamp_type="LogAppendTime")

    answer = await produce(client, "t", messages(b"a", b"b"), version=2)
    records = records_of(await fetch(client, "t"))

    assert answer.log_append_time_ms > TIMESTAMP
    assert [answer.log_append_time_ms] * 2 == [record[1] for record in records]


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (messages(b"a")[:-1], error_codes.CORRUPT_MESSAGE),
        (messages(b"a")[:-1] + b"\0", error_codes.CORRUPT_MESSAGE),
        (messages(b"a") + batch(b"b"), error_codes.CORRUPT_MESSAGE),
        (messages(b"a", magic=0) + messages(b"b"), error_codes.CORRUPT_MESSAGE),
        (messages(b"a", timestamp_type=1), error_codes.INVALID_TIMESTAMP),
        (b"\0" * 12, error_codes.CORRUPT_MESSAGE),
        (b"\0" * 40, error_codes.CORRUPT_MESSAGE),
    ],
    ids=["cut", "crc", "batch behind", "mixed", "append time", "short", "zeros"],
)
async def test_what_is_no_fit_message_set_is_refused_and_nothing_is_stored(
    client: Client, records: bytes, code: int
) -> None:
    await create_topic(client, "t", partitions=2)
    both = {0: records, 1: messages(b"good")}

    response = await client.call(produce_request("t", both), 2)

    answers = {each.index: each for each in response.responses[0].partition_responses}
    assert (code, -1) == (answers[0].error_code, answers[0].base_offset)
    assert (0, 0) == (answers[1].error_code, answers[1].base_offset)
    assert [] == values_of(await fetch(client, "t"))
    assert [b"good"] == values_of(await fetch(client, "t", partition=1))


async def test_an_empty_set_is_a_success_without_an_offset(client: Client) -> None:
    await create_topic(client, "t")

    answer = await produce(client, "t", b"", version=2)

    assert (0, -1) == (answer.error_code, answer.base_offset)


async def test_what_does_not_exist_is_refused(client: Client) -> None:
    answer = await produce(client, "missing", messages(b"a"), version=0)

    assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == answer.error_code


async def test_acks_0_has_no_response_and_an_error_closes_the_connection(
    broker: Broker, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "trionet.server")
    await create_topic(client, "t")

    await client.send_unanswered(produce_request("t", messages(b"a"), acks=0), 1)
    assert [b"a"] == values_of(await fetch(client, "t"))
    await client.send_unanswered(produce_request("t", messages(b"a")[:-1], acks=0), 1)
    rest = await client.receive_to_end()

    assert b"" == rest
    assert {CloseReason.CLOSE_RESPONSE: 1} == await close_reasons(broker)
    assert "t-0 failed: CORRUPT_MESSAGE" in caplog.text


async def test_converted_records_are_counted_and_requests_are_logged_as_they_came(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "trionet.request")
    async with (
        open_broker(metrics_listener="http://127.0.0.1:0") as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")
        data = messages(b"a", b"b")
        await produce(client, "t", data, version=2)
        await produce(client, "t", batch(b"c"), version=2)
        assert broker.metrics is not None
        told = broker.metrics.snapshot()

    assert 2 == told["kafka_server_brokertopicmetrics_producemessageconversions_total"].of()
    assert f"<{len(data)} bytes>" in caplog.text


@pytest.mark.slow
async def test_others_are_served_while_sets_are_converted_and_sent() -> None:
    """One handler is enough for it: what takes its time is not done by handlers."""
    records = messages(*[b"v" * 20] * 30_000)
    answered: list[str] = []

    async def slowly(client: Client, partition: int) -> None:
        answer = await produce(client, "t", records, version=2, partition=partition)
        assert (0, 0) == (answer.error_code, answer.base_offset)
        answered.append("produce")
        data = await fetch(client, "t", version=2, partition=partition, partition_max_bytes=2**30)
        assert len(records) == len(bytes_of(data))
        answered.append("fetch")

    async with (
        open_broker({"num.io.threads": 1}) as broker,
        connect(broker.bootstrap_servers) as client,
        connect(broker.bootstrap_servers) as first,
        connect(broker.bootstrap_servers) as second,
    ):
        await create_topic(client, "t", partitions=3)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(slowly, first, 0)
            nursery.start_soon(slowly, second, 1)
            while answered.count("fetch") < 2:
                await produce(client, "t", batch(b"a"), partition=2)
                answered.append("quick")

    assert answered.index("produce") > 5
    between = answered[answered.index("produce") : answered.index("fetch")]
    assert between.count("quick") > 5


async def test_a_topic_that_is_deleted_meanwhile_is_missing(client: Client, broker: Broker) -> None:
    limiter = limiter_of_run(_conversions, AT_A_TIME)
    others = [object() for _ in range(AT_A_TIME)]
    codes: list[tuple[int, int]] = []

    async def slowly() -> None:
        answer = await produce(client, "t", messages(b"v"), version=2)
        codes.append((answer.error_code, answer.base_offset))

    async with connect(broker.bootstrap_servers) as other:
        await create_topic(other, "t")
        async with trio.open_nursery() as nursery:
            for each in others:  # so that the conversion waits
                limiter.acquire_on_behalf_of_nowait(each)
            nursery.start_soon(slowly)
            while not limiter.statistics().tasks_waiting:
                await trio.lowlevel.checkpoint()
            await delete_topic(other, "t")
            for each in others:
                limiter.release_on_behalf_of(each)

    assert [(error_codes.UNKNOWN_TOPIC_OR_PARTITION, -1)] == codes


@pytest.mark.slow
async def test_a_stop_meanwhile_stores_all_or_nothing_and_all_that_was_acknowledged(
    tmp_path: Path,
) -> None:
    count = 20_000
    records = messages(*[b"v" * 20] * count)
    settings = {"log.dirs": str(tmp_path)}
    answered = b""

    async def send(bootstrap_servers: str) -> None:
        nonlocal answered
        async with connect(bootstrap_servers) as old:
            await old.send_unanswered(produce_request("t", records), 2)
            answered = await old.receive_to_end()

    async with (
        trio.open_nursery() as nursery,
        open_broker(settings) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await create_topic(client, "t")
        nursery.start_soon(send, broker.bootstrap_servers)
        for _ in range(10):
            await produce(client, "t", batch(b"a"))
    async with open_broker(settings) as broker:
        stored = log_of(broker, "t").end_offset

    assert stored in ((10, 10 + count) if not answered else (10 + count,))


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (2, error_codes.NOT_LEADER_OR_FOLLOWER),
        (3, error_codes.NOT_LEADER_OR_FOLLOWER),
        (4, error_codes.KAFKA_STORAGE_ERROR),
    ],
)
async def test_a_failed_disk_is_reported_so_that_old_producers_try_again(
    broker: Broker, client: Client, version: int, code: int
) -> None:
    """They do not know KAFKA_STORAGE_ERROR, and would give up (KIP-112)."""
    await create_topic(client, "t")
    log_of(broker, "t").reject_appends("the disk failed")

    answer = await produce(
        client, "t", messages(b"a") if version < 3 else batch(b"a"), version=version
    )

    assert (code, -1) == (answer.error_code, answer.base_offset)
