"""Topics are read from their beginning to their present end, and not beyond."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
import trio

import trionet
from trionet import ApiError, Broker, ConfigError, TopicPartition, open_broker
from trionet.client.consumer import open_consumer, open_reader, read_topic
from trionet.protocol import error_codes
from trionet.testing import control

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NOON_MS = 1_700_000_000_000


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with open_broker(num_partitions=2) as broker:
        yield broker


async def write(broker: Broker, *values: bytes, partition: int = 0) -> None:
    async with trionet.open_producer(broker.bootstrap_servers) as producer:
        for each in values:
            await producer.send("t", each, partition=partition)


async def values(broker: Broker, **options: object) -> list[bytes | None]:
    records = await read_topic(broker.bootstrap_servers, "t", **options)  # type: ignore[arg-type]
    return [each.value for each in records]


async def test_records_are_ordered_by_partition_and_offset(broker: Broker) -> None:
    await write(broker, b"x", b"y", partition=1)
    await write(broker, b"a", b"b")

    records = await read_topic(broker.bootstrap_servers, "t")

    assert [(0, 0, b"a"), (0, 1, b"b"), (1, 0, b"x"), (1, 1, b"y")] == [
        (each.partition, each.offset, each.value) for each in records
    ]


async def test_an_empty_topic_has_an_end(broker: Broker) -> None:
    async with trionet.open_admin(broker.bootstrap_servers) as admin:
        (await admin.create_topics(["t"])).checked()

    assert [] == await values(broker)


async def test_partitions_without_records_have_an_end(broker: Broker) -> None:
    await write(broker, b"a", partition=1)

    assert [b"a"] == await values(broker)


async def test_what_is_written_meanwhile_is_not_read(broker: Broker) -> None:
    await write(broker, b"a", b"b")
    found: list[bytes | None] = []
    async with open_reader(broker.bootstrap_servers, "t") as reader:
        async for record in reader:
            found.append(record.value)
            await write(broker, b"later")
        positions = reader.positions()

    assert [b"a", b"b"] == found
    assert (2, 0) == (positions[T0].offset, positions[T1].offset)


async def test_the_end_stays_the_end(broker: Broker) -> None:
    await write(broker, b"a")
    async with open_reader(broker.bootstrap_servers, "t") as reader:
        assert [1] == [len(batch) async for batch in reader.batches()]
        for _ in range(2):
            with pytest.raises(StopAsyncIteration):
                await anext(reader)
        with pytest.raises(StopAsyncIteration):
            await reader.next_batch()
        reader.seek(T0, 0)
        assert [b"a"] == [record.value async for record in reader]


@pytest.mark.parametrize("batch_size", [1, 3, 1000])
async def test_the_end_may_be_within_a_batch(broker: Broker, batch_size: int) -> None:
    letters = [b"%d" % each for each in range(9)]
    async with trionet.open_producer(broker.bootstrap_servers) as producer:
        await producer.send_batch("t", letters, partition=0)
    settings = {"max.poll.records": batch_size}
    async with open_reader(broker.bootstrap_servers, "t", settings, start=2, end=7) as reader:
        found = [value async for batch in reader.batches() for value in batch.values]
        assert 7 == reader.position(T0)
        reader.stop_at({T0: 9})
        found += [record.value async for record in reader]

    assert letters[2:] == found


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"start": 3}, b"de"),
        ({"start": -2}, b"de"),
        ({"start": -100}, b"abcde"),
        ({"start": 100}, b""),
        ({"end": 2}, b"ab"),
        ({"end": -1}, b"abcd"),
        ({"end": 100}, b"abcde"),
        ({"start": 3, "end": 2}, b""),
        ({"start": datetime.fromtimestamp(NOON_MS / 1000 + 120, UTC)}, b"cde"),
        ({"end": datetime.fromtimestamp(NOON_MS / 1000 + 120, UTC)}, b"ab"),
        ({"start": datetime.fromtimestamp(NOON_MS / 1000 + 9999, UTC)}, b""),
        ({"partitions": [0]}, b"abcde"),
        ({"partitions": [1]}, b""),
    ],
)
async def test_a_range_is_read(broker: Broker, options: dict[str, object], expected: bytes) -> None:
    await control(broker).seed(
        "t",
        [
            {"value": b"%c" % letter, "partition": 0, "timestamp": NOON_MS + minute * 60_000}
            for minute, letter in enumerate(b"abcde")
        ],
    )

    assert [b"%c" % each for each in expected] == await values(broker, **options)


async def test_offsets_without_records_at_the_end_are_passed(broker: Broker) -> None:
    """The last offset of a transaction is its marker's, which no consumer gets."""
    async with trionet.open_producer(broker.bootstrap_servers, transactional_id="till") as producer:
        async with producer.transaction():
            await producer.send("t", b"a", partition=0)
        with suppress(ZeroDivisionError):
            async with producer.transaction():
                await producer.send("t", b"aborted", partition=0)
                raise ZeroDivisionError

    assert [b"a", b"aborted"] == await values(broker)
    assert [b"a"] == await values(broker, isolation_level="read_committed")


async def test_committed_records_end_before_the_first_open_transaction(broker: Broker) -> None:
    async with (
        trionet.open_producer(broker.bootstrap_servers, transactional_id="till") as producer,
        producer.transaction(),
    ):
        await producer.send("t", b"open", partition=0)
        await write(broker, b"after")

        assert [b"open", b"after"] == await values(broker)
        assert [] == await values(broker, isolation_level="read_committed")


async def test_records_deleted_in_the_meantime_are_skipped(broker: Broker) -> None:
    await write(broker, b"a", b"b", b"c")
    async with (
        trionet.open_admin(broker.bootstrap_servers) as admin,
        open_reader(broker.bootstrap_servers, "t") as reader,
    ):
        (await admin.delete_records({T0: 2})).checked()

        assert [b"c"] == [record.value async for record in reader][-1:]


async def test_all_records_may_be_deleted_in_the_meantime(broker: Broker) -> None:
    await write(broker, b"a", b"b", b"c")
    async with (
        trionet.open_admin(broker.bootstrap_servers) as admin,
        open_reader(broker.bootstrap_servers, "t", start=2) as reader,
    ):
        (await admin.delete_records({T0: 3})).checked()

        assert [record.value async for record in reader] in ([], [b"c"])


@pytest.mark.parametrize("is_created_anew", [False, True])
async def test_the_end_of_a_topic_that_is_deleted_meanwhile_is_not_waited_for(
    broker: Broker, is_created_anew: bool
) -> None:
    await write(broker, *[bytes(1000)] * 20)
    small = {"max.partition.fetch.bytes": 2000, "metadata.max.age.ms": 50}
    async with (
        trionet.open_admin(broker.bootstrap_servers) as admin,
        open_reader(broker.bootstrap_servers, "t", small) as reader,
    ):
        await anext(reader)
        await admin.delete_topics(["t"])
        if is_created_anew:
            (await admin.create_topics(["t"])).checked()
        with pytest.raises(ApiError, match="so offset 20, at which reading should end") as raised:
            await read_on(reader)

    assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == raised.value.error_code


async def read_on(reader: trionet.Consumer) -> None:
    async for _ in reader:
        pass


async def test_several_topics_are_read(broker: Broker) -> None:
    brokers = control(broker)
    await brokers.seed("a", [b"1"])
    await brokers.seed("b", [b"2"])
    async with open_reader(broker.bootstrap_servers, ["a", "b"]) as reader:
        assert {("a", b"1"), ("b", b"2")} == {(r.topic, r.value) async for r in reader}


async def test_a_large_topic_is_read_in_bounded_memory(broker: Broker) -> None:
    """What is fetched beyond the end of one partition takes no space from the others."""
    count = 2000
    async with trionet.open_producer(broker.bootstrap_servers) as producer:
        for partition in range(2):
            await producer.send_batch("t", [bytes(100)] * count, partition=partition)
    settings = {"fetch.max.bytes": 20_000, "max.partition.fetch.bytes": 10_000}
    async with open_reader(broker.bootstrap_servers, "t", settings, end=count - 1) as reader:
        assert 2 * (count - 1) == len([record async for record in reader])


async def test_a_cancelled_reader_leaves_nothing_behind(broker: Broker) -> None:
    await write(broker, b"a", b"b")
    with trio.CancelScope() as scope:
        async with open_reader(broker.bootstrap_servers, "t") as reader:
            async for _ in reader:
                scope.cancel()
    assert scope.cancelled_caught


async def test_reading_creates_no_topic(broker: Broker) -> None:
    with pytest.raises(ApiError, match="topic t does not exist") as caught:
        await values(broker)

    assert error_codes.UNKNOWN_TOPIC_OR_PARTITION == caught.value.error_code
    assert {} == control(broker).topics()


async def test_a_partition_that_there_is_not_is_reported(broker: Broker) -> None:
    await write(broker, b"a")
    with pytest.raises(ApiError, match="partition 7 does not exist; topic t has 2 partitions"):
        await values(broker, partitions=[0, 7])


async def test_every_argument_may_be_named(broker: Broker) -> None:
    await write(broker, b"a")
    servers = broker.bootstrap_servers

    async with open_reader(bootstrap_servers=servers, topics="t", config={}) as reader:
        assert [b"a"] == [record.value async for record in reader]
    assert 1 == len(await read_topic(bootstrap_servers=servers, topic="t", config={}))


@pytest.mark.parametrize(
    ("topics", "options", "message"),
    [
        (re.compile("a"), {}, r"or names, such as \['orders', 'payments'\]$"),
        ([], {}, "^no topics to read$"),
        ("a", {"partitions": 0}, "^invalid partitions 0: expected partition numbers, such as "),
        ("a", {"partitions": ["0"]}, "^a number in partitions must be int, not str: '0'$"),
    ],
)
async def test_what_is_no_topic_and_no_partition_is_told_so(
    topics: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        async with open_reader("127.0.0.1:1", topics, **options):
            pass


async def test_a_group_is_refused(broker: Broker) -> None:
    with pytest.raises(
        ConfigError, match=r"group.id = 'bar' has no effect .* leave it out, or use"
    ):
        await values(broker, group_id="bar")


# The consumer's own method.


async def test_a_consumer_stops_at_offsets_of_its_user(broker: Broker) -> None:
    await write(broker, b"a", b"b", b"c")
    await write(broker, b"x", b"y", partition=1)
    async with open_consumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0, T1])
        consumer.stop_at({T0: 2, T1: 1})

        assert {b"a", b"b", b"x"} == {record.value async for record in consumer}


async def test_a_partition_without_an_offset_to_stop_at_is_read_on(broker: Broker) -> None:
    await write(broker, b"a")
    async with open_consumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0, T1])
        consumer.stop_at({T0: 1})
        assert b"a" == (await anext(consumer)).value
        await write(broker, b"x", partition=1)
        assert b"x" == (await anext(consumer)).value


async def test_only_assigned_partitions_stop(broker: Broker) -> None:
    async with open_consumer(broker.bootstrap_servers) as consumer:
        consumer.assign([T0])
        with pytest.raises(ValueError, match="t-1 is not assigned"):
            consumer.stop_at({T0: 1, T1: 1})
        with pytest.raises(ValueError, match="offset = -1 must be between 0"):
            consumer.stop_at({T0: -1})
