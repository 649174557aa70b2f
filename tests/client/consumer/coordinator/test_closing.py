"""The end of a member: bounded, and what it has finished with is committed."""

from __future__ import annotations

import attrs
import pytest
import trio
from trio.testing import MockClock

from support.coordinator_members import COOPERATIVE, GROUP, GroupMember, open_member
from trionet import Broker
from trionet.client._topic_partition import OffsetAndMetadata, TopicPartition
from trionet.client.consumer.coordinator._rebalance_steps import RebalanceCallbacks
from trionet.client.consumer.records._chunk import Chunk, FetchPosition
from trionet.protocol.records._types import Columns
from trionet.testing import BrokerControl, MemoryNetwork

T0 = TopicPartition("t", 0)


async def take_record(member: GroupMember, offset: int) -> None:
    """Be in the group, with a record of partition 0 in hand."""
    await member.read(
        lambda: bool(member.has and not member.subscription.assignment.initializing())
    )
    member.subscription.assignment.seek(T0, FetchPosition(offset, 0))
    state = member.subscription.assignment.state(T0)
    assert state is not None
    chunk = Chunk(
        T0,
        Columns(range(offset, offset + 1), [0], [None], [b"a"], [()]),
        timestamp_type=0,
        epoch=0,
        start=FetchPosition(offset, 0),
        end=FetchPosition(offset + 1, 0),
        broker_id=1,
    )
    next(chunk.records)
    state.hand_out(chunk)


def lose_broker(kit: BrokerControl, *, hangs: bool) -> None:
    """Have nothing answered any more, or every connection closed."""
    if hangs:
        kit.faults.swallow(times=None)
    else:
        kit.faults.close(times=None)


class Failed(Exception):
    """What a user's block raises."""


async def test_the_end_of_the_block_does_not_finish_the_record_in_hand(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    async with open_member(broker, network) as member:
        await take_record(member, 6)

    assert {("t", 0): 6} == kit.group("readers").offsets
    assert [] == kit.group("readers").members


async def test_a_record_whose_handling_failed_is_not_committed(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    async def fail() -> None:
        async with open_member(broker, network) as member:
            await take_record(member, 6)
            raise Failed

    with pytest.raises(Failed):
        await fail()

    assert {("t", 0): 6} == kit.group("readers").offsets
    assert [] == kit.group("readers").members


async def test_a_record_whose_handling_was_cancelled_is_not_committed(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    with trio.move_on_after(10) as scope:
        async with open_member(broker, network) as member:
            await take_record(member, 6)
            await trio.sleep_forever()

    assert scope.cancelled_caught
    assert {("t", 0): 6} == kit.group("readers").offsets
    assert [] == kit.group("readers").members


async def test_the_user_hears_that_partitions_are_given_up_at_the_end(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    async with open_member(broker, network) as member:
        await member.read(lambda: bool(member.has))

    assert ("revoked", [0, 1, 2, 3]) == member.told[-1]


async def test_what_the_last_callback_raises_is_raised_and_the_member_leaves(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    def refuse(_: object) -> None:
        raise Failed

    async def live() -> None:
        async with open_member(broker, network) as member:
            await member.read(lambda: bool(member.has))
            member.coordinator.listeners.callbacks = RebalanceCallbacks(revoked=refuse)

    with pytest.raises(Failed):
        await live()

    assert [] == kit.group("readers").members


async def test_a_last_callback_that_is_cancelled_is_called_again_before_the_member_leaves(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    """Offsets can still be committed in it."""
    told: list[str] = []

    async def give_up(_: object) -> None:
        told.append("begun")
        if len(told) == 1:
            scope.cancel()
        await member.coordinator.commit({T0: OffsetAndMetadata(3)})
        told.append("committed")

    async def refuse(_: object) -> None:
        raise Failed

    with trio.CancelScope() as scope:
        async with open_member(broker, network) as member:
            await member.read(lambda: bool(member.has))
            member.coordinator.listeners.callbacks = RebalanceCallbacks(
                revoked=give_up, lost=refuse
            )

    assert ["begun", "begun", "committed"] == told
    assert {("t", 0): 3} == kit.group("readers").offsets
    assert [] == kit.group("readers").members


@pytest.mark.parametrize("hangs", [True, False])
async def test_the_end_is_bounded_without_any_broker(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    broker: Broker,
    kit: BrokerControl,
    hangs: bool,
) -> None:
    async with open_member(broker, network) as member:
        await take_record(member, 6)
        lose_broker(kit, hangs=hangs)
        began = trio.current_time()

    assert trio.current_time() - began <= 30


@pytest.mark.parametrize("hangs", [True, False])
async def test_the_end_after_a_cancellation_is_quick_without_any_broker(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    broker: Broker,
    kit: BrokerControl,
    hangs: bool,
) -> None:
    began = 0.0
    with trio.move_on_after(10):
        async with open_member(broker, network) as member:
            await take_record(member, 6)
            lose_broker(kit, hangs=hangs)
            began = trio.current_effective_deadline()
            await trio.sleep_forever()

    assert trio.current_time() - began <= 1


async def test_a_member_whose_last_commit_is_never_accepted_leaves_all_the_same(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    """Else its partitions would have no owner until its session ends."""
    async with open_member(broker, network) as member:
        await take_record(member, 6)
        kit.faults.fail("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", times=None)

    assert [] == kit.group("readers").members


async def test_a_cancelled_member_whose_last_commit_hangs_leaves_all_the_same(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    with trio.move_on_after(10):
        async with open_member(broker, network, auto_commit_seconds=60.0) as member:
            await take_record(member, 6)
            kit.faults.delay("OffsetCommit", 1.5, times=None)
            await trio.sleep_forever()
    await trio.sleep(1)  # the broker looks at what is behind the commit when it has handled that

    assert [] == kit.group("readers").members


async def test_a_member_that_waits_for_others_leaves_at_once(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    """The broker holds its JoinGroup, and would look at nothing behind it."""
    async with open_member(broker, network) as slow:
        await slow.read(lambda: bool(slow.has))
        async with open_member(broker, network) as member:
            with trio.move_on_after(5):
                await member.read_on()
            began = trio.current_time()

        assert trio.current_time() - began < 1
        assert 1 == len(kit.group("readers").members)


@pytest.mark.parametrize(
    "count", [10, pytest.param(1000, marks=[pytest.mark.soak, pytest.mark.timeout(600)])]
)
@pytest.mark.parametrize("groups", [1, 5])
async def test_many_members_that_are_cancelled_together_end_together(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    broker: Broker,
    kit: BrokerControl,
    count: int,
    groups: int,
) -> None:
    joined = 0

    async def live(number: int) -> None:
        nonlocal joined
        settings = attrs.evolve(GROUP, group_id=f"g{number % groups}", assignors=COOPERATIVE)
        async with open_member(broker, network, settings=settings) as member:
            await member.read(lambda: bool(member.told), look_seconds=60)
            joined += 1
            await member.read_on()

    with trio.move_on_after(20) as scope:
        async with trio.open_nursery() as nursery:
            for each in range(count):
                nursery.start_soon(live, each)

    assert count == joined
    assert trio.current_time() - scope.deadline < 1
    assert [[]] * groups == [kit.group(f"g{each}").members for each in range(groups)]


async def test_a_member_may_leave_while_a_callback_of_it_waits(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker
) -> None:
    called = trio.Event()

    async def wait(_: list[TopicPartition]) -> None:
        called.set()
        await trio.sleep(5)

    async with open_member(broker, network) as member, trio.open_nursery() as nursery:
        member.coordinator.listeners.callbacks = RebalanceCallbacks(assigned=wait)
        nursery.start_soon(member.read, lambda: bool(member.has))
        await called.wait()

        await member.coordinator.leave("enough")
        await trio.sleep(5)

        nursery.cancel_scope.cancel()
