"""Whatever a member's user waits for is cancelled, at every point in turn, and nothing is lost."""

from __future__ import annotations

import random

import pytest
import trio
from trio.testing import MockClock

from support.coordinator_members import COOPERATIVE, EAGER, GroupMember, open_member
from trionet import Broker
from trionet.client._topic_partition import OffsetAndMetadata, TopicPartition
from trionet.client.consumer.assignors import Assignor
from trionet.client.consumer.coordinator._rebalance_steps import RebalanceCallbacks
from trionet.client.consumer.records._chunk import FetchPosition
from trionet.errors import CommitFailedError, RebalanceInProgressError
from trionet.testing import BrokerControl, MemoryNetwork

T0 = TopicPartition("t", 0)
STEPS_MAX = 60


class CancelAtStep(trio.abc.Instrument):
    """Cancels a scope before the n-th step of a task, counted from now."""

    def __init__(self, scope: trio.CancelScope, step: int) -> None:
        self._scope = scope
        self._left = step
        self._task = trio.lowlevel.current_task()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task:
            self._left -= 1
            if self._left == 0:
                self._scope.cancel()


async def read_cancelled_at(member: GroupMember, step: int) -> bool:
    """Ask for records until the member has partitions; whether it came to the step before."""
    with trio.CancelScope() as scope:
        instrument = CancelAtStep(scope, step)
        trio.lowlevel.add_instrument(instrument)
        try:
            await member.read(
                lambda: bool(member.has and not member.subscription.assignment.initializing())
            )
        finally:
            trio.lowlevel.remove_instrument(instrument)
    return scope.cancelled_caught


@pytest.mark.parametrize("assignors", [EAGER, COOPERATIVE])
async def test_a_join_that_is_cancelled_anywhere_goes_on_with_the_next_request(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    broker: Broker,
    kit: BrokerControl,
    assignors: tuple[Assignor, ...],
) -> None:
    async def pause(_: list[TopicPartition]) -> None:
        await trio.lowlevel.checkpoint()
        await trio.sleep(0.001)

    for step in range(1, STEPS_MAX):
        async with open_member(broker, network, assignors=assignors) as member:
            member.coordinator.listeners.callbacks = RebalanceCallbacks(
                assigned=pause, revoked=pause
            )
            was_cancelled = await read_cancelled_at(member, step)
            await member.read(
                lambda: bool(member.has and not member.subscription.assignment.initializing())
            )

            assert [0, 1, 2, 3] == member.has
        assert [] == kit.group("readers").members
        if not was_cancelled:
            return
    pytest.fail(f"no end after {STEPS_MAX} steps")


@pytest.mark.parametrize("seed", range(3))
async def test_commits_that_are_cancelled_anywhere_are_made_or_not_and_the_next_one_works(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl, seed: int
) -> None:
    rng = random.Random(seed)
    async with (
        open_member(broker, network, assignors=COOPERATIVE) as member,
        open_member(broker, network, assignors=COOPERATIVE) as other,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(other.read_on)
        await member.read(lambda: len(member.has) == 2)
        for offset in range(20):
            if rng.random() < 0.2:
                other.coordinator.rejoin("a test wants it")
            partition = min(member.subscription.assignment.partitions)
            with trio.move_on_after(rng.choice([0, 0.0005, 0.001, 0.01])):
                try:
                    await member.coordinator.commit({partition: OffsetAndMetadata(offset)})
                except (CommitFailedError, RebalanceInProgressError):
                    await member.read(lambda: len(member.has) == 2)
        await member.read(lambda: len(member.has) == 2)
        while True:
            partition = min(member.subscription.assignment.partitions)
            try:
                await member.coordinator.commit({partition: OffsetAndMetadata(1000)})
                break
            except RebalanceInProgressError:
                # The background task is joining. The member keeps its partitions meanwhile, so that
                # a read may end at once: without a wait, this loop would never let that task run.
                await trio.sleep(0.001)
                await member.read(lambda: len(member.has) == 2)

        assert 1000 == kit.group("readers").offsets[partition]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("step", range(1, 12))
async def test_an_end_that_is_cancelled_anywhere_leaves_the_group_all_the_same(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl, step: int
) -> None:
    with trio.CancelScope() as scope:
        async with open_member(broker, network) as member:
            await member.read(
                lambda: bool(member.has and not member.subscription.assignment.initializing())
            )
            member.subscription.assignment.seek(T0, FetchPosition(5, 0))
            instrument = CancelAtStep(scope, step)
            trio.lowlevel.add_instrument(instrument)
    trio.lowlevel.remove_instrument(instrument)

    assert {("t", 0): 5} == kit.group("readers").offsets
    assert [] == kit.group("readers").members
