"""A consumer on a real broker: what it hands out, and where it stands."""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio.testing

import trionet
from support.calls import append, batch, create_topic, produce
from support.client import Client, connect
from trionet import Broker, open_broker
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer._consumer import Consumer
from trionet.client.consumer._open_consumer import open_consumer
from trionet.client.consumer._settings import ConsumerSettings
from trionet.client.consumer.coordinator._classic_member import GroupSettings
from trionet.client.consumer.fetch._settings import FetchSettings
from trionet.client.consumer.records._record import ConsumerRecord
from trionet.client.consumer.state._reset_strategy import EARLIEST, ResetStrategy
from trionet.errors import CallTimedOutError, NoOffsetForPartitionError, OffsetOutOfRangeError
from trionet.net._network import SYSTEM

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
# A node that waits for records responds to nothing else meanwhile.
QUICK = FetchSettings(wait_seconds=0.005)
FROM_START = ConsumerSettings(reset=EARLIEST, fetch=QUICK)
GROUPED = attrs.evolve(FROM_START, group=GroupSettings(group_id="g"))
# Parsed, as a program's settings are: equal to the constant, but not the same object.
WITHOUT_RESET = attrs.evolve(FROM_START, reset=ResetStrategy.parse("none"))


@asynccontextmanager
async def reading(
    settings: ConsumerSettings = FROM_START, *, partitions: int = 1
) -> AsyncIterator[tuple[Consumer, Client, Broker]]:
    """A consumer that reads the partitions of a topic ``t``, and who writes them."""
    async with open_broker() as broker, connect(broker.bootstrap_servers) as writer:
        await create_topic(writer, "t", partitions)
        async with open_consumer(broker.bootstrap_servers, settings) as consumer:
            consumer.assign(TopicPartition("t", each) for each in range(partitions))
            yield consumer, writer, broker


async def take(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    return [await anext(consumer) for _ in range(count)]


async def values(consumer: Consumer, count: int) -> list[bytes | None]:
    return [record.value for record in await take(consumer, count)]


def finished(consumer: Consumer) -> list[int]:
    positions = consumer._subscriptions.assignment.finished_positions()
    return [each.offset for each in positions.values()]


async def test_records_come_whole_and_in_their_order() -> None:
    async with reading() as (consumer, writer, _):
        await append(writer, b"a", b"b")
        first, second = await take(consumer, 2)

        assert ("t", 0, 0, b"a") == (first.topic, first.partition, first.offset, first.value)
        assert (1, b"b", None, ()) == (second.offset, second.value, second.key, second.headers)
        assert (1_700_000_000_000, 0) == (first.timestamp, first.timestamp_type)


async def test_a_batch_says_which_broker_it_came_from() -> None:
    async with open_broker(brokers=2, topics={"t": 2}) as broker:
        async with trionet.open_producer(broker.bootstrap_servers) as producer:
            for number in range(2):
                await producer.send("t", b"a", partition=number)
        async with open_consumer(broker.bootstrap_servers, FROM_START) as consumer:
            consumer.assign([T0, T1])
            batches = aiter(consumer.batches())
            found = {
                each.partition: each.broker_id for each in [await anext(batches) for _ in "ab"]
            }

        assert {number: broker.leader("t", number) for number in range(2)} == found
        assert 2 == len(set(found.values()))


async def test_records_that_come_later_end_the_wait() -> None:
    async with reading() as (consumer, writer, _), trio.open_nursery() as nursery:
        nursery.start_soon(append, writer, b"a")

        assert [b"a"] == await values(consumer, 1)
        nursery.start_soon(append, writer, b"b")
        assert [b"b"] == await values(consumer, 1)


async def test_many_small_and_large_batches_lose_and_repeat_nothing() -> None:
    async with reading() as (consumer, writer, _):
        sizes = [1, 3, 700, 1, 5000, 2, 2, 499]
        number = 0
        for size in sizes:
            records = batch(*(b"%d" % each for each in range(number, number + size)))
            await produce(writer, "t", records)
            number += size
        found = await take(consumer, number)

        assert list(range(number)) == [each.offset for each in found]
        assert [b"%d" % each for each in range(number)] == [each.value for each in found]


async def test_all_partitions_are_read() -> None:
    async with reading(partitions=3) as (consumer, writer, _):
        for each in range(3):
            await append(writer, b"%d" % each, b"%d" % each, partition=each)
        found = await take(consumer, 6)

        assert {0: [0, 1], 1: [0, 1], 2: [0, 1]} == {
            each: [record.offset for record in found if record.partition == each]
            for each in range(3)
        }


# Where to begin.


async def test_without_an_offset_reading_begins_at_the_end_by_default() -> None:
    async with reading(ConsumerSettings(fetch=QUICK)) as (consumer, writer, _):
        await append(writer, b"before")
        with trio.move_on_after(0.05):
            await anext(consumer)
        await append(writer, b"after")

        assert [b"after"] == await values(consumer, 1)


async def test_reading_begins_with_the_first_record_of_the_last_hour() -> None:
    hour = ResetStrategy.parse("by_duration:PT1H")
    async with reading(attrs.evolve(FROM_START, reset=hour)) as (consumer, writer, _):
        await produce(writer, "t", batch(b"old"))
        await produce(writer, "t", batch(b"new", timestamp=SYSTEM.now_ms() - 60_000))

        assert [b"new"] == await values(consumer, 1)


async def test_with_none_there_has_to_be_an_offset() -> None:
    async with reading(WITHOUT_RESET) as (consumer, writer, _):
        await append(writer, b"a")
        with pytest.raises(NoOffsetForPartitionError, match=r"t-0.*seek\(\)"):
            await anext(consumer)
        consumer.seek(T0, 0)

        assert [b"a"] == await values(consumer, 1)


async def test_offset_that_is_not_there_is_reset() -> None:
    async with reading() as (consumer, writer, _):
        await append(writer, b"a", b"b")
        consumer.seek(T0, 1000)

        assert [b"a", b"b"] == await values(consumer, 2)


async def test_with_none_an_offset_that_is_not_there_is_an_error() -> None:
    async with reading(WITHOUT_RESET) as (consumer, writer, _):
        await append(writer, b"a")
        consumer.seek(T0, 1000)
        with pytest.raises(
            OffsetOutOfRangeError, match=r"offset 1000 of .* is out of range"
        ) as caught:
            await anext(consumer)
        assert ("t", 0, 1000) == (
            caught.value.topic,
            caught.value.partition,
            caught.value.offset,
        )
        consumer.seek(T0, 0)

        assert [b"a"] == await values(consumer, 1)


# Moving.


async def test_seek_moves_within_what_was_fetched_and_beyond() -> None:
    async with reading() as (consumer, writer, _):
        await append(writer, *(b"%d" % each for each in range(10)))
        await take(consumer, 5)
        consumer.seek(T0, 2)
        assert [b"2", b"3"] == await values(consumer, 2)
        consumer.seek_to_beginning(T0)
        assert [b"0"] == await values(consumer, 1)
        consumer.seek_to_end()
        with trio.move_on_after(0.05):
            await anext(consumer)
        assert 10 == consumer.position(T0)
        await append(writer, b"10")

        assert [b"10"] == await values(consumer, 1)


async def test_seek_wants_an_offset_and_an_assigned_partition() -> None:
    async with reading() as (consumer, _, _):
        with pytest.raises(ValueError, match="must be between 0"):
            consumer.seek(T0, -1)
        with pytest.raises(ValueError, match="t-1 is not assigned"):
            consumer.seek(T1, 0)


class Topic(str):
    """A topic's name that counts how often a set or dict looks at it."""

    __slots__ = ()
    looks = 0

    def __hash__(self) -> int:
        Topic.looks += 1
        return super().__hash__()


async def test_a_seek_does_not_look_at_the_other_partitions() -> None:
    async with reading() as (consumer, _, _):
        consumer.assign(TopicPartition(Topic("t"), number) for number in range(1000))
        Topic.looks = 0
        consumer.seek(T0, 1)
        consumer.pause(T0)
        consumer.resume(T0)
        consumer.stop_at({T0: 5})
        consumer.seek_to_end(T0)

        assert Topic.looks < 100


@pytest.mark.parametrize("call", ["pause", "resume", "seek_to_beginning", "seek_to_end"])
async def test_a_call_for_partitions_one_of_which_is_not_assigned_changes_none(call: str) -> None:
    async with reading() as (consumer, _, _):
        consumer.seek(T0, 5)
        if call == "resume":
            consumer.pause(T0)
        paused = consumer.paused
        with pytest.raises(ValueError, match="t-7 is not assigned"):
            getattr(consumer, call)(T0, TopicPartition("t", 7))

        assert paused == consumer.paused
        assert 5 == consumer.position(T0)


async def test_nothing_of_a_paused_partition_is_handed_out() -> None:
    async with reading(partitions=2) as (consumer, writer, _):
        await append(writer, b"a", b"b", b"c", partition=0)
        await append(writer, b"x", partition=1)
        consumer.pause(T1)
        assert [b"a"] == await values(consumer, 1)
        consumer.pause(T0)
        consumer.resume(T1)
        assert {T0} == consumer.paused
        assert [b"x"] == await values(consumer, 1)
        with trio.move_on_after(0.05) as scope:
            await anext(consumer)
        assert scope.cancelled_caught
        consumer.resume(T0)

        assert [b"b", b"c"] == await values(consumer, 2)


async def test_partition_that_is_given_up_is_handed_out_no_more() -> None:
    async with reading(partitions=2) as (consumer, writer, _):
        await append(writer, b"a", b"b", b"c", partition=0)
        assert [b"a"] == await values(consumer, 1)
        await append(writer, b"x", partition=1)
        consumer.assign([T1])
        assert [b"x"] == await values(consumer, 1)
        consumer.assign([T0, T1])

        assert [b"a", b"b"] == await values(consumer, 2), "it begins anew"


# Where it stands.


async def test_position_is_that_of_the_next_record() -> None:
    async with reading() as (consumer, writer, _):
        assert consumer.position(T0) is None
        # One batch: of three, the lag counts only those that have been fetched.
        await produce(writer, "t", batch(b"a", b"b", b"c"))
        await take(consumer, 2)

        assert 2 == consumer.position(T0)
        assert 1 == consumer.lag(T0)


async def test_record_in_hand_is_not_finished() -> None:
    async with reading() as (consumer, writer, _):
        await append(writer, b"a", b"b")
        await take(consumer, 1)
        assert [0] == finished(consumer)
        await take(consumer, 1)
        assert [1] == finished(consumer)
        with trio.move_on_after(0.01):
            await anext(consumer)

        assert [2] == finished(consumer)


# Batches.


async def test_batches_are_columns_of_a_partition() -> None:
    async with reading(attrs.evolve(FROM_START, records_max=3)) as (consumer, writer, _):
        await produce(writer, "t", batch(b"a", b"b", b"c", b"d"))
        first = await consumer.next_batch()
        second = await consumer.next_batch()

        assert (range(3), [b"a", b"b", b"c"]) == (first.offsets, first.values)
        assert ("t", 0, 3, [None] * 3) == (first.topic, first.partition, len(first), first.keys)
        assert [(3, b"d")] == [(each.offset, each.value) for each in second]


async def test_batch_in_hand_is_not_finished() -> None:
    async with reading(attrs.evolve(FROM_START, records_max=3)) as (consumer, writer, _):
        await produce(writer, "t", batch(b"a", b"b", b"c", b"d", b"e"))
        await consumer.next_batch()
        assert 3 == consumer.position(T0)
        assert [0] == finished(consumer)
        await take(consumer, 1)
        assert 4 == consumer.position(T0)

        assert [3] == finished(consumer)


async def test_batches_and_records_follow_each_other() -> None:
    async with reading(attrs.evolve(FROM_START, records_max=2)) as (consumer, writer, _):
        await produce(writer, "t", batch(*(b"%d" % each for each in range(7))))
        found = await values(consumer, 1)
        found += (await consumer.next_batch()).values
        found += await values(consumer, 2)
        found += (await consumer.next_batch()).values

        assert [b"%d" % each for each in range(7)] == found


# What logs say.


async def test_offsets_for_times_and_ends_of_logs() -> None:
    async with reading(partitions=2) as (consumer, writer, _):
        for at in (1000, 2000, 3000):
            await produce(writer, "t", batch(b"x", timestamp=at))
        other = TopicPartition("t", 1)

        assert {T0: 0, other: 0} == await consumer.beginning_offsets([T0, other])
        assert {T0: 3, other: 0} == await consumer.end_offsets([T0, other])
        assert {T0: (1, 2000, 0), other: None} == await consumer.offsets_for_times(
            {T0: 1500, other: 1500}
        )
        assert {T0: None} == await consumer.offsets_for_times({T0: 3001})
        with pytest.raises(ValueError, match="must be 0 or more"):
            await consumer.offsets_for_times({T0: -1})


async def test_topic_need_not_be_read_to_be_asked_about() -> None:
    async with reading() as (consumer, writer, _):
        await create_topic(writer, "u", 3)
        await append(writer, b"a", topic="u", partition=2)
        u2 = TopicPartition("u", 2)

        assert {u2: 1} == await consumer.end_offsets([u2])
        assert [0, 1, 2] == await consumer.partitions_of("u")
        assert {T0} == consumer.assignment


async def test_requests_without_a_response_end_in_time() -> None:
    settings = attrs.evolve(FROM_START, api_timeout_seconds=0.2, allow_auto_topic_creation=False)
    async with reading(settings) as (consumer, _, _):
        nowhere = TopicPartition("nowhere", 0)
        with pytest.raises(
            CallTimedOutError, match=r"nowhere-0 .* default\.api\.timeout\.ms = 200"
        ):
            await consumer.end_offsets([nowhere])
        assert [] == await consumer.partitions_of("nowhere")


# Errors and ends.


async def test_reading_nothing_is_reported() -> None:
    async with reading() as (consumer, _, _):
        await consumer.unsubscribe()
        with pytest.raises(ValueError, match=r"nothing to read: call subscribe\(\) or assign\(\)"):
            await anext(consumer)


async def test_one_task_asks_at_a_time() -> None:
    async with reading() as (consumer, _, _), trio.open_nursery() as nursery:
        nursery.start_soon(anext, consumer)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await anext(consumer)
        nursery.cancel_scope.cancel()


async def test_closed_consumer_says_so() -> None:
    async with reading() as (consumer, writer, _):
        await append(writer, b"a", b"b")
        await take(consumer, 1)
    with pytest.raises(trio.ClosedResourceError):
        await anext(consumer)


@pytest.mark.parametrize("settings", [FROM_START, GROUPED], ids=["assigned", "group"])
async def test_a_closed_consumer_is_freed_without_a_collection(settings: ConsumerSettings) -> None:
    async def use(broker: Broker) -> weakref.ref[Consumer]:
        async with open_consumer(broker.bootstrap_servers, settings) as consumer:
            if settings.group is None:
                consumer.assign([T0])
            else:
                consumer.subscribe("t")
            async for _ in consumer:
                break
            async for _ in consumer.batches():
                break
        if settings.group is None:
            assert 2 == consumer.position(T0)
        with pytest.raises(trio.ClosedResourceError):
            await anext(aiter(consumer))
        return weakref.ref(consumer)

    async with open_broker() as broker, connect(broker.bootstrap_servers) as writer:
        await create_topic(writer, "t", 1)
        await append(writer, b"a", b"b")
        gc.disable()
        try:
            closed = await use(broker)
            assert closed() is None
        finally:
            gc.enable()


async def test_own_error_leaves_the_block_as_it_is() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with reading():
            raise KeyError("mine")


async def test_cancelled_waits_lose_and_repeat_nothing() -> None:
    """One wait after the other is cancelled a step later than the one before."""
    async with reading() as (consumer, writer, _):
        found: list[int] = []
        for steps in range(100):
            await append(writer, b"x")
            if steps % 7 == 0:
                consumer.seek(T0, len(found))
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(cancel_after, scope, steps)
                    found.append((await anext(consumer)).offset)
                    nursery.cancel_scope.cancel()
        while len(found) < 100:
            found.append((await anext(consumer)).offset)

        assert list(range(100)) == found


async def cancel_after(scope: trio.CancelScope, steps: int) -> None:
    for _ in range(steps):
        await trio.lowlevel.checkpoint()
    scope.cancel()


async def test_cancelled_scope_is_noticed_with_each_record() -> None:
    async with reading() as (consumer, writer, _):
        await produce(writer, "t", batch(b"a", b"b", b"c"))
        with trio.CancelScope() as scope:
            await take(consumer, 1)
            scope.cancel()
            await take(consumer, 1)
        assert scope.cancelled_caught

        assert [b"b"] == await values(consumer, 1)
