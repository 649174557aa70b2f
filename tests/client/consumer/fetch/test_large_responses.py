"""What a consumer does with more than ``receive.message.max.bytes``; in virtual time."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from support.coordinator_members import make_topic
from support.scripted_logs import Logs
from trionet import Broker, open_broker
from trionet.client._topic_partition import OffsetAndMetadata, TopicPartition
from trionet.client.consumer._consumer import Consumer
from trionet.client.consumer._open_consumer import open_consumer
from trionet.client.producer._open_producer import open_producer
from trionet.errors import FetchTooLargeError, ResponseTooLargeError
from trionet.testing import MemoryNetwork

LIMIT = 10_000
LARGE = b"x" * 5 * LIMIT
T0, T1, T2 = (TopicPartition("t", number) for number in range(3))

Values = Mapping[TopicPartition, list[bytes]]


@asynccontextmanager
async def written(network: MemoryNetwork, values: Values) -> AsyncIterator[Broker]:
    """A broker with these records, each in a batch of its own."""
    async with open_broker(network=network) as broker:
        await make_topic(broker, "t", 3, network)
        async with open_producer(broker.bootstrap_servers, network=network) as producer:
            for (topic, partition), each in values.items():
                for value in each:
                    await producer.send(topic, value, partition=partition)
        yield broker


@asynccontextmanager
async def reading(
    network: MemoryNetwork, broker: Broker, *partitions: TopicPartition, **settings: int
) -> AsyncIterator[Consumer]:
    settings = {"receive_message_max_bytes": LIMIT, **settings}
    async with open_consumer(
        broker.bootstrap_servers,
        auto_offset_reset="earliest",
        network=network,
        **settings,  # type: ignore[arg-type]
    ) as consumer:
        consumer.assign(partitions)
        yield consumer


@asynccontextmanager
async def reading_written(network: MemoryNetwork, values: Values) -> AsyncIterator[Consumer]:
    """A consumer of the partitions with these records, each in a batch of its own."""
    async with (
        written(network, values) as broker,
        reading(network, broker, *values) as consumer,
    ):
        yield consumer


def connections(consumer: Consumer) -> float:
    return consumer.statistics()["connection-creation-total"]


async def test_batch_that_is_too_large_is_an_error_that_says_what_to_set(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with reading_written(network, {T0: [b"a", LARGE, b"b"]}) as consumer:
        assert b"a" == (await anext(consumer)).value
        with pytest.raises(FetchTooLargeError):
            await consumer.next_batch()
        with pytest.raises(FetchTooLargeError) as caught:
            await anext(consumer)

        error = caught.value
        assert (*T0, 1, LIMIT) == (error.topic, error.partition, error.offset, error.bytes_max)
        assert len(LARGE) < error.size < len(LARGE) + 512
        assert isinstance(error.__cause__, ResponseTooLargeError)
        assert (
            "cannot read t-0 at offset 1: the response with the next record batch is"
            f" {error.size} bytes long, more than receive.message.max.bytes = 10000; set"
            f" receive.message.max.bytes to {error.size} or more, or seek() past the batch"
        ) == str(error)


async def test_error_costs_one_connection_until_the_next_record_is_requested(
    network: MemoryNetwork, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with reading_written(network, {T0: [LARGE]}) as consumer:
        await trio.sleep(600)
        with pytest.raises(FetchTooLargeError):
            await anext(consumer)
        assert 3 >= connections(consumer)

        lost = [each for each in caplog.records if "lost the connection" in each.message]
        assert [logging.WARNING] == [each.levelno for each in lost]
        assert "the limit that receive.message.max.bytes sets" in caplog.text
        assert "socket.request.max.bytes" not in caplog.text


async def test_each_further_request_finds_it_again_after_a_longer_wait(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """Nothing is skipped, and no broker is asked without a pause."""
    async with reading_written(network, {T0: [LARGE]}) as consumer:
        times = []
        for _ in range(8):
            with pytest.raises(FetchTooLargeError, match="offset 0"):
                await anext(consumer)
            times.append(trio.current_time())

        assert 4 < times[-1] - times[0] < 10
        assert 0 == consumer.position(T0)


async def test_what_is_after_it_is_read_after_a_seek(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with reading_written(network, {T0: [b"a", LARGE, b"b", b"c"]}) as consumer:
        await anext(consumer)
        with pytest.raises(FetchTooLargeError) as caught:
            await anext(consumer)
        consumer.seek(T0, caught.value.offset + 1)

        assert [b"b", b"c"] == [(await anext(consumer)).value for _ in range(2)]


async def test_a_consumer_with_a_higher_limit_reads_all(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with written(network, {T0: [b"a", LARGE, b"b"]}) as broker:
        async with reading(network, broker, T0) as consumer:
            await anext(consumer)
            with pytest.raises(FetchTooLargeError) as caught:
                await anext(consumer)

        size = caught.value.size
        async with reading(network, broker, T0, receive_message_max_bytes=size) as consumer:
            assert [b"a", LARGE, b"b"] == [(await anext(consumer)).value for _ in range(3)]


async def test_records_before_it_are_handed_out_first(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """They may be fetched ahead by long when it is found; a seek would lose them."""
    values = [b"%d" % number for number in range(20)]
    async with reading_written(network, {T0: [*values, LARGE]}) as consumer:
        await trio.sleep(60)

        assert values == [(await anext(consumer)).value for _ in values]
        with pytest.raises(FetchTooLargeError, match="offset 20"):
            await anext(consumer)


async def test_other_partitions_are_read_beside_it(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """It is found out which of the partitions of a request it was."""
    many = [b"%d" % number for number in range(50)]
    async with reading_written(network, {T0: many, T1: [LARGE], T2: many}) as consumer:
        found: dict[int, list[bytes | None]] = {0: [], 2: []}
        errors: set[tuple[int, int]] = set()
        while sum(map(len, found.values())) < 100 or not errors:
            try:
                record = await anext(consumer)
            except FetchTooLargeError as error:
                errors.add((error.partition, error.offset))
            else:
                found[record.partition].append(record.value)

        assert {0: many, 2: many} == found
        assert {(1, 0)} == errors


async def test_partition_without_records_is_no_hindrance(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with reading_written(network, {T0: [], T1: [LARGE], T2: []}) as consumer:
        began = trio.current_time()
        with pytest.raises(FetchTooLargeError, match="t-1"):
            await anext(consumer)

        assert trio.current_time() - began < 2


async def test_paused_partition_is_no_error(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with reading_written(network, {T0: [b"a"], T1: [LARGE]}) as consumer:
        consumer.pause(T1)

        assert b"a" == (await anext(consumer)).value
        consumer.resume(T1)
        with pytest.raises(FetchTooLargeError, match="t-1"):
            await anext(consumer)


async def test_small_batches_that_are_too_much_together_are_fetched_apart(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """No broker is asked for more than ``receive.message.max.bytes``."""
    values = [b"%d" % number * 4000 for number in range(10)]
    async with reading_written(network, {T0: values, T1: values}) as consumer:
        found = sorted([(await anext(consumer)).value or b"" for _ in range(20)])

        assert sorted(values * 2) == found
        assert 3 >= connections(consumer)


async def test_broker_that_sends_more_than_it_was_asked_for_is_an_error_too(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    logs = Logs(network)
    logs.write(b"a" * 4000, b"b" * 4000, b"c" * 4000)
    async with (
        logs.listening(),
        open_consumer(
            logs.address,
            auto_offset_reset="earliest",
            receive_message_max_bytes=LIMIT,
            network=network,
        ) as consumer,
    ):
        consumer.assign([T0])
        with pytest.raises(FetchTooLargeError, match=r"t-0 .* offset 0: .* is 12\d{3} bytes"):
            await anext(consumer)

        assert LIMIT - 512 == logs.nodes[1].last("Fetch").body.max_bytes


async def test_committed_offsets_that_are_too_large_are_an_error(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """As every response of a group's coordinator."""
    async with written(network, {T0: [b"a"]}) as broker:
        settings = {"group.id": "g", "receive.message.max.bytes": 2000}
        note = OffsetAndMetadata(0, "x" * 3000)
        async with open_consumer(broker.bootstrap_servers, settings, network=network) as consumer:
            await consumer.commit({T0: note})
            expected = "response to OffsetFetch is .* receive.message.max.bytes = 2000"
            with pytest.raises(ResponseTooLargeError, match=expected):
                await consumer.committed([T0])
            consumer.subscribe("t")
            for _ in range(3):
                with pytest.raises(ResponseTooLargeError, match=expected):
                    await anext(consumer)


async def test_metadata_that_are_too_large_are_an_error(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with open_broker(network=network) as broker:
        await make_topic(broker, "t", 200, network)
        async with reading(network, broker, T0, receive_message_max_bytes=2000) as consumer:
            with pytest.raises(
                ResponseTooLargeError,
                match=r"response to Metadata is \d+ bytes, .* receive\.message\.max\.bytes = 2000",
            ):
                await anext(consumer)
            creations = connections(consumer)
            await trio.sleep(60)

            assert 70 > connections(consumer) - creations, "as after any failure"
