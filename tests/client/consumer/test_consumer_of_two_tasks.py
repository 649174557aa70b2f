"""A consumer of which one task asks for records, and another one changes what it does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from support.coordinator_members import make_topic
from trionet import Broker, open_broker
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer._consumer import Consumer
from trionet.client.consumer._open_consumer import open_consumer
from trionet.client.consumer._settings import ConsumerSettings
from trionet.client.consumer.coordinator._classic_member import GroupSettings
from trionet.client.consumer.fetch._settings import FetchSettings
from trionet.client.consumer.state._reset_strategy import EARLIEST
from trionet.client.producer._open_producer import open_producer
from trionet.client.producer._producer import Producer
from trionet.testing import MemoryNetwork, control

T0 = TopicPartition("t", 0)
ALONE = ConsumerSettings(reset=EARLIEST)
MEMBER = attrs.evolve(ALONE, group=GroupSettings(group_id="g"))


@asynccontextmanager
async def writing(network: MemoryNetwork) -> AsyncIterator[tuple[Broker, Producer]]:
    """A broker in memory with a topic ``t`` of one partition, and who writes."""
    async with open_broker(network=network) as broker:
        await make_topic(broker, "t", 1, network)
        async with open_producer(broker.bootstrap_servers, network=network) as writer:
            yield broker, writer


@asynccontextmanager
async def reading(
    network: MemoryNetwork, settings: ConsumerSettings = MEMBER, *, topics: str | None = None
) -> AsyncIterator[tuple[Consumer, Producer, Broker]]:
    """As :func:`writing`, and a consumer."""
    async with (
        writing(network) as (broker, writer),
        open_consumer(
            broker.bootstrap_servers, settings, network=network, topics=topics
        ) as consumer,
    ):
        yield consumer, writer, broker


class Asking:
    """A task that asks for records until it may not."""

    def __init__(self, consumer: Consumer, nursery: trio.Nursery) -> None:
        self._consumer = consumer
        nursery.start_soon(self._go_on)
        self.values: list[bytes | None] = []
        self.error: Exception | None = None

    async def _go_on(self) -> None:
        try:
            async for record in self._consumer:
                self.values.append(record.value)
        except (ValueError, trio.ClosedResourceError) as error:
            self.error = error


async def test_resumed_records_are_handed_out_to_who_waits_though_nothing_more_has_room(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    small = attrs.evolve(ALONE, fetch=FetchSettings(partition_bytes_max=100))
    async with (
        reading(network, small) as (consumer, writer, _),
        trio.open_nursery() as nursery,
    ):
        await writer.send("t", b"a" * 200)
        await writer.send("t", b"b" * 200)
        consumer.assign([T0])
        await anext(consumer)
        await trio.sleep(1)
        consumer.pause(T0)
        asking = Asking(consumer, nursery)
        await trio.sleep(1)
        consumer.resume(T0)
        await trio.sleep(60)
        nursery.cancel_scope.cancel()

    assert [b"b" * 200] == asking.values


@pytest.mark.parametrize("settings", [ALONE, MEMBER], ids=["alone", "member"])
async def test_a_wait_for_records_ends_when_nothing_is_read_any_more(
    autojump_clock: MockClock, network: MemoryNetwork, settings: ConsumerSettings
) -> None:
    async with reading(network, settings) as (consumer, _, _), trio.open_nursery() as nursery:
        if settings.group is None:
            consumer.assign([T0])
        else:
            consumer.subscribe("t")
        asking = Asking(consumer, nursery)
        await trio.sleep(10)
        await consumer.unsubscribe()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()

    assert isinstance(asking.error, ValueError)


async def test_a_wait_in_a_callback_at_the_end_raises_that_the_consumer_is_closed(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    async def wait(_: list[TopicPartition]) -> None:
        await trio.sleep(5)

    async with writing(network) as (broker, _), trio.open_nursery() as nursery:
        async with open_consumer(broker.bootstrap_servers, MEMBER, network=network) as consumer:
            consumer.subscribe("t", on_assigned=wait)
            asking = Asking(consumer, nursery)
            await trio.sleep(4)
        await trio.sleep(60)
        nursery.cancel_scope.cancel()

        assert [] == control(broker).group("g").members
    assert isinstance(asking.error, trio.ClosedResourceError)


async def test_nothing_is_handed_out_while_the_user_hears_that_it_is_given_up(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    async def wait(_: list[TopicPartition]) -> None:
        await writer.send("t", b"late")
        await trio.sleep(5)

    async with reading(network) as (consumer, writer, _), trio.open_nursery() as nursery:
        await writer.send("t", b"a")
        consumer.subscribe("t", on_revoked=wait)
        asking = Asking(consumer, nursery)
        await trio.sleep(10)
        await consumer.unsubscribe()
        nursery.cancel_scope.cancel()

    assert [b"a"] == asking.values


async def test_a_rebalance_that_others_want_meanwhile_does_not_keep_who_unsubscribes(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    told: list[str] = []

    async def wait(_: list[TopicPartition]) -> None:
        told.append("revoked")
        await trio.sleep(5)

    async with reading(network) as (consumer, _, broker), trio.open_nursery() as nursery:
        consumer.subscribe("t", on_revoked=wait)
        Asking(consumer, nursery)
        await trio.sleep(10)
        nursery.start_soon(consumer.unsubscribe)
        await trio.sleep(1)
        consumer.rejoin("a test wants it")
        await trio.sleep(30)
        nursery.cancel_scope.cancel()

        assert [] == control(broker).group("g").members
    assert ["revoked"] == told


async def test_what_two_tasks_give_up_is_reported_once(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """The one that asks for records gives it up for a rebalance, the other unsubscribes."""
    told: list[str] = []

    async def wait(_: list[TopicPartition]) -> None:
        told.append("begins")
        await trio.sleep(5)
        await consumer.commit({T0: 7})  # still a member
        told.append("ends")

    async with reading(network) as (consumer, _, broker), trio.open_nursery() as nursery:
        consumer.subscribe("t", on_revoked=wait)
        Asking(consumer, nursery)
        await trio.sleep(10)
        consumer.rejoin("a test wants it")
        await trio.sleep(1)
        await consumer.unsubscribe()
        await trio.sleep(30)
        nursery.cancel_scope.cancel()

        assert {("t", 0): 7} == control(broker).group("g").offsets
    assert ["begins", "ends"] == told


@pytest.mark.parametrize("in_another_task", [False, True])
async def test_a_callback_may_unsubscribe(
    autojump_clock: MockClock, network: MemoryNetwork, in_another_task: bool
) -> None:
    told: list[str] = []

    async def leave(_: list[TopicPartition]) -> None:
        told.append("revoked")
        if in_another_task:
            async with trio.open_nursery() as inner:
                inner.start_soon(consumer.unsubscribe)
        else:
            await consumer.unsubscribe()

    async with reading(network) as (consumer, _, broker), trio.open_nursery() as nursery:
        consumer.subscribe("t", on_revoked=leave)
        asking = Asking(consumer, nursery)
        await trio.sleep(10)
        consumer.rejoin("a test wants it")
        await trio.sleep(30)
        nursery.cancel_scope.cancel()

        assert [] == control(broker).group("g").members
    assert ["revoked"] == told
    assert isinstance(asking.error, ValueError), "nothing is subscribed to"


async def test_callbacks_come_one_at_a_time_also_for_a_task_of_the_reader(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """It began before the callback, and is no part of it."""
    told: list[str] = []
    begun = trio.Event()

    async def assigned(_: list[TopicPartition]) -> None:
        told.append("assigned")
        begun.set()
        await trio.sleep(5)
        told.append("so far")

    def revoked(_: list[TopicPartition]) -> None:
        told.append("revoked")

    async def leave_meanwhile() -> None:
        await begun.wait()
        await consumer.unsubscribe()

    async with reading(network) as (consumer, _, _), trio.open_nursery() as nursery:
        consumer.subscribe("t", on_assigned=assigned, on_revoked=revoked)
        nursery.start_soon(leave_meanwhile)
        Asking(consumer, nursery)

    assert ["assigned", "so far", "revoked"] == told


async def test_who_unsubscribes_is_unsubscribed_whatever_the_callback_raises(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    def refuse(_: list[TopicPartition]) -> None:
        raise Failed

    async with reading(network) as (consumer, writer, broker):
        await writer.send("t", b"a")
        consumer.subscribe("t", on_revoked=refuse)
        await anext(consumer)
        with pytest.raises(Failed):
            await consumer.unsubscribe()

        assert (frozenset(), frozenset()) == (consumer.subscription, consumer.assignment)
        assert [] == control(broker).group("g").members
        consumer.assign([T0])
        assert b"a" == (await anext(consumer)).value


async def test_who_unsubscribes_without_a_broker_is_kept_no_longer_than_any_other_call(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    async with reading(network, topics="t") as (consumer, writer, broker):
        await writer.send("t", b"a")
        await writer.send("t", b"b")
        await anext(consumer)
        await anext(consumer)
        control(broker).faults.swallow(times=None)
        await trio.sleep(6)  # a commit is under way
        began = trio.current_time()
        await consumer.unsubscribe()

        assert trio.current_time() - began <= 62
        assert frozenset() == consumer.subscription


class Failed(Exception):
    """What a user's block raises."""


@pytest.mark.parametrize("names_offsets", [True, False])
async def test_a_commit_of_the_users_is_not_taken_back(
    autojump_clock: MockClock, network: MemoryNetwork, names_offsets: bool
) -> None:
    """The record in hand was committed; by itself, only those before it would be."""

    async def read_and_fail() -> None:
        async with open_consumer(
            broker.bootstrap_servers, MEMBER, network=network, topics="t"
        ) as consumer:
            record = await anext(consumer)
            await consumer.commit({T0: record.offset + 1} if names_offsets else None)
            await trio.sleep(20)
            assert {("t", 0): 1} == kit.group("g").offsets, "after auto.commit.interval.ms"
            raise Failed

    async with writing(network) as (broker, writer):
        kit = control(broker)
        await writer.send("t", b"a")
        await writer.send("t", b"b")
        with pytest.raises(Failed):
            await read_and_fail()

        assert {("t", 0): 1} == kit.group("g").offsets, "at the end"


async def test_who_could_not_say_farewell_may_subscribe_again(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    async with reading(network, topics="t") as (consumer, writer, broker):
        await writer.send("t", b"a")
        await anext(consumer)
        control(broker).faults.swallow("LeaveGroup")
        await consumer.unsubscribe()
        consumer.subscribe("t")
        with trio.fail_after(120):
            assert b"a" == (await anext(consumer)).value, "it was not finished"


@pytest.mark.parametrize("checkpoints", range(14))
async def test_wherever_an_unsubscription_is_cancelled_only_members_get_records(
    autojump_clock: MockClock, network: MemoryNetwork, checkpoints: int
) -> None:
    async def cancel(scope: trio.CancelScope) -> None:
        for _ in range(checkpoints):
            await trio.lowlevel.cancel_shielded_checkpoint()
        scope.cancel()

    async with writing(network) as (broker, writer):
        for value in (b"a", b"b"):
            await writer.send("t", value)
        kit = control(broker)
        async with open_consumer(
            broker.bootstrap_servers, MEMBER, network=network, topics="t"
        ) as consumer:
            assert b"a" == (await anext(consumer)).value
            async with trio.open_nursery() as nursery:
                nursery.start_soon(cancel, nursery.cancel_scope)
                await consumer.unsubscribe()
            if not consumer.subscription:
                consumer.subscribe("t")
            with trio.fail_after(120):
                assert (await anext(consumer)).value in {b"a", b"b"}

            assert kit.group("g").members
