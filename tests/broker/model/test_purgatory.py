from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from trio.testing import MockClock

from support.turns import turns_during
from trionet import open_broker
from trionet.broker.model._purgatory import (
    AT_ONCE_MAX,
    COMPLETED_PER_PASS,
    SWEEP_AT_LEAST,
    Purgatory,
)
from trionet.broker.run._broker import STOP_GRACE_SECONDS

NEVER = float("inf")


class Waits:
    """An operation that needs some amount, and knows how often it was completed."""

    def __init__(self, amount: int = 1) -> None:
        self.missing = amount
        self.completed = 0
        self.completed_at = NEVER
        self.is_abandoned = False

    def is_satisfied_by(self, amount: int) -> bool:
        self.missing -= amount
        return self.missing <= 0

    def complete(self) -> None:
        self.completed += 1
        self.completed_at = trio.current_time()


@pytest.fixture
async def purgatory(nursery: trio.Nursery) -> AsyncIterator[Purgatory]:
    """One whose deadlines are watched."""
    purgatory = Purgatory()
    nursery.start_soon(purgatory.run)
    yield purgatory
    nursery.cancel_scope.cancel()


async def test_an_operation_is_completed_when_it_has_enough(purgatory: Purgatory) -> None:
    operation = Waits(10)
    purgatory.add(operation, ["a"], NEVER)

    purgatory.notify("a", 4)
    purgatory.notify("b", 100)
    before = operation.completed
    purgatory.notify("a", 6)

    assert (0, 1) == (before, operation.completed)
    assert 0 == len(purgatory)


async def test_any_of_its_keys_completes_it_and_only_once(purgatory: Purgatory) -> None:
    operation = Waits()
    purgatory.add(operation, ["a", "b"], NEVER)

    purgatory.notify("b", 1)
    purgatory.notify("a", 1)

    assert 1 == operation.completed


async def test_a_key_may_be_named_twice(
    autojump_clock: trio.testing.MockClock, purgatory: Purgatory
) -> None:
    by_key, by_deadline = Waits(2), Waits(2)
    purgatory.add(by_key, ["a", "a"], NEVER)
    purgatory.add(by_deadline, ["b", "b"], trio.current_time() + 1)

    purgatory.notify("a", 1)
    purgatory.notify("a", 1)
    await trio.sleep(2)

    assert (1, 1) == (by_key.completed, by_deadline.completed)


async def test_all_that_watch_a_key_are_completed(purgatory: Purgatory) -> None:
    operations = [Waits() for _ in range(5)]
    for operation in operations:
        purgatory.add(operation, ["a"], NEVER)

    purgatory.notify("a", 1)

    assert [1] * 5 == [operation.completed for operation in operations]


async def test_deadlines_come_in_their_order_whatever_that_of_adding(
    autojump_clock: trio.testing.MockClock, purgatory: Purgatory
) -> None:
    began = trio.current_time()
    operations = {seconds: Waits() for seconds in (3, 1, 2, 1.5)}
    for seconds, operation in operations.items():
        purgatory.add(operation, ["a"], began + seconds)

    await trio.sleep(10)

    assert {seconds: seconds for seconds in operations} == {
        seconds: operation.completed_at - began for seconds, operation in operations.items()
    }
    assert 0 == len(purgatory)


async def test_a_deadline_that_has_passed_already_is_due_at_once(
    autojump_clock: trio.testing.MockClock, purgatory: Purgatory
) -> None:
    await trio.sleep(5)
    operation = Waits()

    purgatory.add(operation, [], trio.current_time() - 1)
    await trio.testing.wait_all_tasks_blocked()

    assert 1 == operation.completed


async def test_what_was_completed_is_not_completed_again_at_its_deadline(
    autojump_clock: trio.testing.MockClock, purgatory: Purgatory
) -> None:
    operation = Waits()
    purgatory.add(operation, ["a"], trio.current_time() + 1)
    purgatory.notify("a", 1)

    await trio.sleep(2)

    assert 1 == operation.completed


async def test_all_that_watch_any_of_some_keys_are_completed_once(purgatory: Purgatory) -> None:
    both, one, other = Waits(100), Waits(100), Waits(100)
    purgatory.add(both, ["a", "b"], NEVER)
    purgatory.add(one, ["b"], NEVER)
    purgatory.add(other, ["c"], NEVER)

    purgatory.complete_all("a", "b", "unknown")

    assert [1, 1, 0] == [each.completed for each in (both, one, other)]


async def test_all_that_watch_one_key_can_be_completed(purgatory: Purgatory) -> None:
    deleted, other = Waits(100), Waits(100)
    purgatory.add(deleted, ["a", "b"], NEVER)
    purgatory.add(other, ["b"], NEVER)

    purgatory.complete_all("a")

    assert (1, 0, 1) == (deleted.completed, other.completed, len(purgatory))


async def test_a_closed_one_keeps_no_task_waiting(purgatory: Purgatory) -> None:
    before, after = Waits(), Waits()
    purgatory.add(before, ["a"], NEVER)

    purgatory.close()
    purgatory.add(after, ["a"], NEVER)
    assert (0, 1) == (before.completed, after.completed)
    await purgatory.drain()

    assert (1, 1, 0) == (before.completed, after.completed, len(purgatory))


async def test_all_of_them_complete_in_turns_that_can_be_given_up(purgatory: Purgatory) -> None:
    """Together they may take longer than a stop."""

    class NeedsLongCall(Waits):
        def complete(self) -> None:
            super().complete()
            if sum(each.completed for each in operations) == 3:
                scope.cancel()

    operations = [NeedsLongCall() for _ in range(10)]
    for operation in operations:
        purgatory.add(operation, ["a"], NEVER)

    with trio.CancelScope() as scope:
        await purgatory.drain()

    assert scope.cancelled_caught
    assert 3 == sum(each.completed for each in operations)


async def test_operations_that_are_done_are_let_go_long_before_their_deadline(
    purgatory: Purgatory,
) -> None:
    for _ in range(10 * SWEEP_AT_LEAST):
        purgatory.add(Waits(), ["a"], NEVER)
        purgatory.notify("a", 1)

    assert len(purgatory._deadlines) <= SWEEP_AT_LEAST


async def test_operations_without_a_waiting_task_are_let_go_too(purgatory: Purgatory) -> None:
    staying = Waits()
    purgatory.add(staying, ["a"], NEVER)
    for _ in range(10 * SWEEP_AT_LEAST):
        leaving = Waits()
        purgatory.add(leaving, ["a"], NEVER)
        leaving.is_abandoned = True

    assert len(purgatory) <= SWEEP_AT_LEAST
    purgatory.notify("a", 1)
    assert 1 == staying.completed


async def test_many_that_wait_are_all_kept(purgatory: Purgatory) -> None:
    operations = [Waits() for _ in range(5 * SWEEP_AT_LEAST)]
    for operation in operations:
        purgatory.add(operation, ["a"], NEVER)

    assert len(operations) == len(purgatory)
    purgatory.notify("a", 1)
    await trio.testing.wait_all_tasks_blocked()
    assert {1} == {operation.completed for operation in operations}
    assert 0 == len(purgatory)


class Noted(Waits):
    """One that can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.has_completed = trio.Event()

    def complete(self) -> None:
        super().complete()
        self.has_completed.set()


async def test_who_completes_many_leaves_the_others_their_turn(purgatory: Purgatory) -> None:
    """A record that a thousand consumers wait for is not to hold the loop until all have it."""
    operations = [Noted() for _ in range(AT_ONCE_MAX + 10 * COMPLETED_PER_PASS)]
    for operation in operations:
        purgatory.add(operation, ["a"], NEVER)

    purgatory.allowance = AT_ONCE_MAX
    purgatory.notify("a", 1)
    at_once = sum(operation.completed for operation in operations)
    turns = await turns_during(operations[-1].has_completed.wait())

    assert AT_ONCE_MAX == at_once
    assert {1} == {operation.completed for operation in operations}
    assert 5 <= turns


async def test_what_is_due_is_completed_before_the_purgatory_closes() -> None:
    purgatory = Purgatory()
    operations = [Waits() for _ in range(AT_ONCE_MAX + 1)]
    for operation in operations:
        purgatory.add(operation, ["a"], NEVER)
    purgatory.notify("a", 1)
    assert 1 == len(purgatory)

    purgatory.close()
    await purgatory.drain()

    assert {1} == {operation.completed for operation in operations}


class Operations(RuleBasedStateMachine):
    """Whatever happens, an operation is completed exactly when it is due by its keys."""

    def __init__(self) -> None:
        super().__init__()
        self.purgatory = Purgatory()
        self.waiting: list[tuple[Waits, frozenset[int], int]] = []
        self.completed: list[Waits] = []

    @rule(keys=st.frozensets(st.integers(0, 3)), amount=st.integers(1, 5))
    def add(self, keys: frozenset[int], amount: int) -> None:
        operation = Waits(amount)
        # Deadlines are for the task that runs; here none comes.
        self.purgatory.add(operation, keys, NEVER)
        self.waiting.append((operation, keys, amount))

    @rule(key=st.integers(0, 3), amount=st.integers(1, 3))
    def notify(self, key: int, amount: int) -> None:
        self.purgatory.allowance = AT_ONCE_MAX
        self.purgatory.notify(key, amount)
        self.settle(
            [
                (operation, keys, missing - amount if key in keys else missing)
                for operation, keys, missing in self.waiting
            ]
        )

    @rule(key=st.integers(0, 3))
    def complete_all_of(self, key: int) -> None:
        self.purgatory.complete_all(key)
        self.settle(
            [
                (operation, keys, 0 if key in keys else missing)
                for operation, keys, missing in self.waiting
            ]
        )

    def settle(self, then: list[tuple[Waits, frozenset[int], int]]) -> None:
        self.completed += [operation for operation, _, missing in then if missing <= 0]
        self.waiting = [entry for entry in then if entry[2] > 0]

    @invariant()
    def exactly_those_are_completed(self) -> None:
        assert {1} >= {operation.completed for operation in self.completed}
        assert {0} >= {operation.completed for operation, _, _ in self.waiting}
        assert len(self.waiting) == len(self.purgatory)
        watched = {key for _, keys, _ in self.waiting for key in keys}
        assert watched == set(self.purgatory._watchers)
        assert all(operation.completed for operation in self.completed)


# Completing looks at trio's clock, so the machine runs inside trio.
@pytest.mark.slow
async def test_any_course_of_events() -> None:
    await trio.lowlevel.checkpoint()
    run_state_machine_as_test(Operations)


async def test_a_stop_takes_its_grace_whatever_waits(mock_clock: MockClock) -> None:
    """A hundred fetches that take a second each, as those of ten thousand partitions may."""

    class TakesASecond(Waits):
        def complete(self) -> None:
            super().complete()
            mock_clock.jump(1)

    operations = [TakesASecond() for _ in range(100)]
    async with open_broker() as broker:
        for operation in operations:
            broker._cluster.purgatory.add(operation, ["a"], NEVER)
        began_at = trio.current_time()

    assert STOP_GRACE_SECONDS == trio.current_time() - began_at
