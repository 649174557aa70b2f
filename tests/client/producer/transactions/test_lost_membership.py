"""A transaction that sends offsets of a consumer without its partitions is aborted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import pytest
import trio
from trio.testing import MockClock

import trionet
from trionet import Broker, Consumer, Producer, TopicPartition, open_broker
from trionet.client.consumer import GroupMetadata
from trionet.testing import BrokerControl, MemoryNetwork, control

SOURCE = TopicPartition("in", 0)
COUNT = 10
#: Longer than the ``max.poll.interval.ms`` of :func:`open_member`, and than its session.
STALLED_SECONDS = 20.0


@pytest.fixture
async def broker(network: MemoryNetwork) -> AsyncIterator[Broker]:
    async with open_broker(network=network) as running:
        yield running


@pytest.fixture
async def kit(broker: Broker) -> BrokerControl:
    controls = control(broker)
    await controls.create_topic("out", 1)
    await controls.seed("in", [b"%d" % each for each in range(COUNT)])
    return controls


def open_member(
    broker: Broker, network: MemoryNetwork, **settings: object
) -> AbstractAsyncContextManager[Consumer]:
    config = {
        "group.id": "g",
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
        "max.poll.interval.ms": "10000",
        "session.timeout.ms": "9000",
        "max.poll.records": "1",
        **settings,
    }
    return trionet.open_consumer(broker.bootstrap_servers, config, topics="in", network=network)


def open_writer(
    broker: Broker, network: MemoryNetwork, name: str
) -> AbstractAsyncContextManager[Producer]:
    return trionet.open_producer(broker.bootstrap_servers, network=network, transactional_id=name)


async def copy(
    consumer: Consumer, producer: Producer, meanwhile: Callable[[], Awaitable[object]]
) -> None:
    """Copy a record in a transaction, during which something happens."""
    record = await anext(consumer)
    async with producer.transaction() as tx:
        await producer.send("out", record.value)
        await meanwhile()
        await tx.send_offsets(consumer)


async def stall() -> None:
    await trio.sleep(STALLED_SECONDS)


async def copy_all(broker: Broker, network: MemoryNetwork) -> None:
    """What another member does with the partition: it copies all records, ten at a time."""
    async with (
        open_member(broker, network, **{"max.poll.records": "10"}) as consumer,
        open_writer(broker, network, "successor") as producer,
    ):
        batch = await consumer.next_batch()
        assert COUNT == len(batch)
        async with producer.transaction() as tx:
            await producer.send_batch("out", batch.values)
            await tx.send_offsets(consumer)


async def written(broker: Broker, network: MemoryNetwork) -> list[bytes | None]:
    records = await trionet.read_topic(
        broker.bootstrap_servers, "out", isolation_level="read_committed", network=network
    )
    return [record.value for record in records]


def committed(kit: BrokerControl) -> int:
    return kit.group("g").offsets["in", 0]


async def test_transaction_of_a_member_that_was_too_slow_is_aborted(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    async def lose_the_partition() -> None:
        await stall()
        await copy_all(broker, network)

    async with (
        open_member(broker, network) as consumer,
        open_writer(broker, network, "slow") as producer,
    ):
        with pytest.raises(trionet.TransactionAbortableError) as caught:
            await copy(consumer, producer, lose_the_partition)

    assert isinstance(caught.value.__cause__, trionet.CommitFailedError)
    assert COUNT == committed(kit)
    assert [b"%d" % each for each in range(COUNT)] == await written(broker, network)


async def test_so_is_one_that_names_the_offsets_and_the_group(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    async with (
        open_member(broker, network) as consumer,
        open_writer(broker, network, "slow") as producer,
    ):

        async def send_offsets() -> None:
            await stall()
            await copy_all(broker, network)
            offsets = {SOURCE: 1}
            await producer.send_offsets_to_transaction(offsets, consumer.group_metadata())

        with pytest.raises(trionet.TransactionAbortableError):
            await copy(consumer, producer, send_offsets)

    assert COUNT == committed(kit)


async def test_it_is_aborted_also_if_no_other_member_has_come(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    async with (
        open_member(broker, network) as consumer,
        open_writer(broker, network, "slow") as producer,
    ):
        with pytest.raises(trionet.TransactionAbortableError):
            await copy(consumer, producer, stall)
        # It is a member again with its next request, and goes on at the committed offsets.
        await copy(consumer, producer, trio.lowlevel.checkpoint)

    assert 1 == committed(kit)
    assert [b"0"] == await written(broker, network)


async def test_transaction_that_has_records_of_a_partition_since_given_up_is_aborted(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    """The member is in the group again, so that its new membership would be accepted."""
    async with (
        open_member(broker, network) as consumer,
        open_writer(broker, network, "slow") as producer,
    ):

        async def read_on() -> None:
            await stall()
            record = await anext(consumer)
            assert 0 == record.offset
            await producer.send("out", record.value)

        with pytest.raises(trionet.TransactionAbortableError, match="given up"):
            await copy(consumer, producer, read_on)

    assert ("in", 0) not in kit.group("g").offsets
    assert [] == await written(broker, network)


async def test_transaction_that_is_ended_before_its_partitions_are_given_up_goes_on(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    async with (
        open_writer(broker, network, "x") as producer,
        open_member(broker, network) as consumer,
    ):

        async def end(_: list[TopicPartition]) -> None:
            await producer.send_offsets_to_transaction(consumer)
            await producer.commit_transaction()

        consumer.subscribe("in", on_revoked=end)
        record = await anext(consumer)
        await producer.begin_transaction()
        await producer.send("out", record.value)
        consumer.rejoin("a test")
        record = await anext(consumer)
        assert 1 == record.offset
        await producer.begin_transaction()
        await producer.send("out", record.value)
        await end([])
        consumer.subscribe("in")

    assert 2 == committed(kit)
    assert [b"0", b"1"] == await written(broker, network)


async def test_consumer_with_partitions_of_its_own_has_no_membership(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    async with (
        open_member(broker, network) as consumer,
        open_writer(broker, network, "x") as producer,
    ):
        await anext(consumer)
        assert ("g", 1) == consumer.group_metadata()[:2]
        await consumer.unsubscribe()
        consumer.assign([SOURCE])
        assert GroupMetadata("g", -1, "", None) == consumer.group_metadata()
        await copy(consumer, producer, trio.lowlevel.checkpoint)

    assert 1 == committed(kit)


async def test_seek_does_not_hide_that_a_partition_was_given_up(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    async with (
        open_member(broker, network) as consumer,
        open_writer(broker, network, "x") as producer,
    ):

        async def seek_and_read_on() -> None:
            consumer.seek(SOURCE, 1)
            kit.expire_members("g")
            await stall()
            await anext(consumer)

        with pytest.raises(trionet.TransactionAbortableError):
            await copy(consumer, producer, seek_and_read_on)

    assert [] == await written(broker, network)


async def test_records_that_were_read_before_the_transaction_count_as_well(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    async with (
        open_member(broker, network) as consumer,
        open_writer(broker, network, "x") as producer,
    ):
        records = [await anext(consumer)]
        consumer.rejoin("a test")
        records.append(await anext(consumer))
        assert [0, 0] == [each.offset for each in records]
        with pytest.raises(trionet.TransactionAbortableError, match="given up"):
            await copy(consumer, producer, trio.lowlevel.checkpoint)
        assert [] == await written(broker, network)


@pytest.mark.parametrize("drop", ["assign", "unsubscribe"])
async def test_partitions_that_the_program_gives_up_in_a_transaction_abort_it(
    autojump_clock: MockClock,
    broker: Broker,
    network: MemoryNetwork,
    kit: BrokerControl,
    drop: str,
) -> None:
    async with (
        open_member(broker, network) as consumer,
        open_writer(broker, network, "x") as producer,
    ):
        await consumer.unsubscribe()
        consumer.assign([SOURCE])

        async def give_up() -> None:
            await (consumer.unsubscribe() if drop == "unsubscribe" else assign_nothing())

        async def assign_nothing() -> None:
            consumer.assign([])

        with pytest.raises(trionet.TransactionAbortableError, match="given up"):
            await copy(consumer, producer, give_up)

    assert [] == await written(broker, network)


async def test_aborted_transaction_finishes_no_record(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    """A program that goes on with the same consumer puts its records back."""

    async def fail() -> None:
        async with producer.transaction() as tx:
            await producer.send("out", (await anext(consumer)).value)
            await tx.send_offsets(consumer)
            raise KeyError

    async with (
        open_member(broker, network) as consumer,
        open_writer(broker, network, "x") as producer,
    ):
        with pytest.raises(KeyError):
            await fail()
        consumer.put_back()
        await copy(consumer, producer, trio.lowlevel.checkpoint)
        consumer.put_back()  # it is committed
        await copy(consumer, producer, trio.lowlevel.checkpoint)

    assert 2 == committed(kit)
    assert [b"0", b"1"] == await written(broker, network)


async def test_call_that_is_cancelled_before_it_begins_leaves_a_transaction_to_be_aborted(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    async with (
        open_member(broker, network) as consumer,
        open_writer(broker, network, "x") as producer,
    ):

        async def send_nothing() -> None:
            with trio.move_on_after(0):
                await producer.send_offsets_to_transaction(consumer)

        with pytest.raises(trionet.TransactionAbortableError, match="cancelled"):
            await copy(consumer, producer, send_nothing)

    assert [] == await written(broker, network)
    assert ("in", 0) not in kit.group("g").offsets
