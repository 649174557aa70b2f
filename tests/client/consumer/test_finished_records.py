"""Which records are finished, and so committed, when a loop or its block is cut short."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import trio
from trio.testing import MockClock

import trionet
from support.cut_short import CUT, CUTS, Cut, Reading, break_in_the_middle
from trionet import Broker, TopicPartition, open_broker
from trionet.testing import BrokerControl, MemoryNetwork, control

T0 = TopicPartition("t", 0)
COUNT = 10
#: Longer than ``auto.commit.interval.ms``.
SECONDS = 12.0


@pytest.fixture
async def broker(network: MemoryNetwork) -> AsyncIterator[Broker]:
    async with open_broker(network=network) as running:
        yield running


@pytest.fixture
async def kit(broker: Broker) -> BrokerControl:
    controls = control(broker)
    await controls.seed("t", [b"%d" % each for each in range(COUNT)])
    return controls


@asynccontextmanager
async def reading_group(broker: Broker, network: MemoryNetwork) -> AsyncIterator[Reading]:
    async with trionet.open_consumer(
        broker.bootstrap_servers,
        topics="t",
        group_id="g",
        auto_offset_reset="earliest",
        max_poll_records=1,
        network=network,
    ) as consumer:
        yield Reading(consumer)


def committed(kit: BrokerControl) -> int | None:
    return kit.group("g").offsets.get(("t", 0))


@pytest.mark.parametrize("cut", CUTS)
async def test_a_record_that_was_cut_short_is_not_committed_at_the_end_of_the_block(
    autojump_clock: MockClock,
    cut: Cut,
    broker: Broker,
    network: MemoryNetwork,
    kit: BrokerControl,
) -> None:
    async with reading_group(broker, network) as reading:
        await cut(reading)

    assert list(range(CUT)) == reading.finished
    assert CUT == committed(kit)


@pytest.mark.parametrize("cut", CUTS)
async def test_a_record_that_was_cut_short_is_not_committed_when_an_interval_has_passed(
    autojump_clock: MockClock,
    cut: Cut,
    broker: Broker,
    network: MemoryNetwork,
    kit: BrokerControl,
) -> None:
    async with reading_group(broker, network) as reading:
        await cut(reading)
        await trio.sleep(SECONDS)

        assert CUT == committed(kit)
    assert CUT == committed(kit)


@pytest.mark.parametrize("cut", CUTS)
async def test_a_new_loop_asks_for_the_next_record_and_so_finishes_the_last(
    autojump_clock: MockClock,
    cut: Cut,
    broker: Broker,
    network: MemoryNetwork,
    kit: BrokerControl,
) -> None:
    async with reading_group(broker, network) as reading:
        await cut(reading)
        assert CUT + 1 == (await anext(reading.consumer)).offset
        await trio.sleep(SECONDS)

        assert CUT + 1 == committed(kit)
    assert CUT + 1 == committed(kit)


@pytest.mark.parametrize("cut", CUTS)
async def test_what_was_put_back_is_the_next_record(
    autojump_clock: MockClock,
    cut: Cut,
    broker: Broker,
    network: MemoryNetwork,
    kit: BrokerControl,
) -> None:
    async with reading_group(broker, network) as reading:
        await cut(reading)
        reading.consumer.put_back()
        assert CUT == reading.consumer.position(T0)
        with trio.move_on_after(1):
            await reading.read()

    assert list(range(COUNT)) == reading.finished
    assert COUNT == committed(kit)


async def test_a_commit_finishes_the_record_in_hand(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    async with reading_group(broker, network) as reading:
        await break_in_the_middle(reading)
        await reading.consumer.commit()
        assert CUT + 1 == committed(kit)
        reading.consumer.put_back()  # nothing is left to be put back

        assert CUT + 1 == (await anext(reading.consumer)).offset
    assert CUT + 1 == committed(kit)


async def test_a_commit_of_chosen_offsets_finishes_the_records_before_them(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    async with trionet.open_consumer(
        broker.bootstrap_servers,
        topics="t",
        group_id="g",
        auto_offset_reset="earliest",
        network=network,
    ) as consumer:
        assert COUNT == len(await consumer.next_batch())
        await consumer.commit({T0: CUT})
        consumer.put_back()

        assert CUT == (await consumer.next_batch()).offsets[0]
    assert CUT == committed(kit)


async def test_a_bounded_read_that_ends_by_itself_is_finished(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    async with reading_group(broker, network) as reading:
        await reading.handle(await anext(reading.consumer))
        reading.consumer.stop_at({T0: CUT})
        await reading.read()

    assert CUT == committed(kit)


async def test_what_was_put_back_is_not_lost_with_the_membership(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    async with reading_group(broker, network) as reading:
        await break_in_the_middle(reading)
        kit.expire_members("g")
        reading.consumer.put_back()
        await trio.sleep(SECONDS)
        reading.consumer.put_back()  # the partition is not this consumer's any more
        with trio.move_on_after(0.1):
            await break_in_the_middle(reading)
        reading.consumer.put_back()
        reading.was_cut = True
        with trio.move_on_after(SECONDS):
            await reading.read()

    assert {*range(COUNT)} == {*reading.finished}
    assert COUNT == committed(kit)


async def test_nothing_is_put_back_before_the_first_record(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    async with reading_group(broker, network) as reading:
        reading.consumer.put_back()
        assert 0 == (await anext(reading.consumer)).offset
        reading.consumer.put_back()
        reading.consumer.put_back()
        assert 0 == (await anext(reading.consumer)).offset
    with pytest.raises(trio.ClosedResourceError):
        reading.consumer.put_back()


async def test_the_marker_of_an_aborted_transaction_is_committed_while_the_consumer_waits(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    """Otherwise its lag would never become zero."""
    async with (
        trionet.open_producer(
            broker.bootstrap_servers, transactional_id="x", network=network
        ) as producer,
        trio.open_nursery() as nursery,
        trionet.open_consumer(
            broker.bootstrap_servers,
            topics="t",
            group_id="g",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            network=network,
        ) as consumer,
    ):
        reading = Reading(consumer)
        reading.was_cut = True
        nursery.start_soon(reading.read)
        await trio.sleep(1)
        await producer.begin_transaction()
        await producer.send("t", b"aborted")
        await producer.abort_transaction()
        await trio.sleep(SECONDS)

        assert COUNT + 2 == committed(kit)
        nursery.cancel_scope.cancel()


async def test_large_compressed_batches_are_returned_without_a_wait_when_they_are_ready(
    network: MemoryNetwork,
) -> None:
    """They are decompressed in a thread, hence the real clock."""
    async with (
        open_broker(network=network) as broker,
        trionet.open_producer(
            broker.bootstrap_servers, compression_type="gzip", linger_ms=100, network=network
        ) as producer,
        trionet.open_consumer(
            broker.bootstrap_servers, auto_offset_reset="earliest", network=network
        ) as consumer,
    ):
        await producer.send_batch("t", [b"%1000d" % each for each in range(700)])
        consumer.assign([T0])
        found: list[int] = []
        with trio.fail_after(60):
            while len(found) < 700:
                await trio.lowlevel.checkpoint()
                with suppress(trio.WouldBlock):
                    found += consumer.next_batch_nowait().offsets

    assert list(range(700)) == found


async def test_what_has_been_fetched_is_returned_without_a_wait(
    autojump_clock: MockClock, broker: Broker, network: MemoryNetwork, kit: BrokerControl
) -> None:
    async with trionet.open_consumer(
        broker.bootstrap_servers,
        topics="t",
        group_id="g",
        auto_offset_reset="earliest",
        max_poll_records=CUT,
        network=network,
    ) as consumer:
        with pytest.raises(trio.WouldBlock):  # it has not joined its group
            consumer.next_batch_nowait()
        offsets = [*(await consumer.next_batch()).offsets]
        offsets += consumer.next_batch_nowait().offsets
        offsets += consumer.next_batch_nowait().offsets
        assert list(range(COUNT)) == offsets
        with pytest.raises(trio.WouldBlock):
            consumer.next_batch_nowait()
        await trio.sleep(SECONDS)
        assert COUNT == committed(kit)
        consumer.seek(T0, 0)
        consumer.stop_at({T0: CUT})
        assert CUT == len(await consumer.next_batch())
        with pytest.raises(StopAsyncIteration):
            consumer.next_batch_nowait()
        consumer.rejoin("a rebalance comes first")
        with pytest.raises(trio.WouldBlock):
            consumer.next_batch_nowait()
    with pytest.raises(trio.ClosedResourceError):
        consumer.next_batch_nowait()
