"""What groups commit, and when offsets and groups that nothing needs are removed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.coordinating import NO_MEMBER, Asked, Coordinating, coordinating
from support.groups import RANGE
from trionet.broker.groups._committed_offsets import CommittedOffset
from trionet.broker.groups._group import GroupState
from trionet.broker.groups._group_coordinator import GROUPS_AT_ONCE
from trionet.broker.groups._group_timeouts import TIMEOUTS_AT_ONCE
from trionet.broker.groups._members import Caller
from trionet.broker.storage._database import DATABASE_NAME
from trionet.protocol import error_codes
from trionet.protocol.messages.consumer_protocol_subscription import (
    MESSAGES,
    ConsumerProtocolSubscription,
)


async def test_an_offset_is_known_when_it_is_stored() -> None:
    async with coordinating() as it:
        asked = it.commit(("t", 0, 5), ("t", 1, 6))
        before = list(asked.answers), it.offsets()

        assert 0 == await asked.answer()
        assert ([], {}) == before
        assert {("t", 0): 5, ("t", 1): 6} == it.offsets()


async def test_a_later_one_takes_the_place_of_an_earlier_one() -> None:
    async with coordinating() as it:
        await it.commit(("t", 0, 5), ("t", 1, 6)).answer()
        await it.commit(("t", 0, 3)).answer()

        assert {("t", 0): 3, ("t", 1): 6} == it.offsets()


async def test_of_many_at_once_the_last_one_counts() -> None:
    async with coordinating() as it:
        asked = [it.commit(("t", 0, offset)) for offset in range(100)]

        assert [0] * 100 == [await each.answer() for each in asked]
        assert {("t", 0): 99} == it.offsets()


async def test_who_has_no_group_makes_one_that_has_no_members() -> None:
    async with coordinating() as it:
        await it.commit(("t", 0, 5)).answer()
        await it.commit(("t", 0, 7), group="").answer()

        assert [GroupState.EMPTY] * 2 == [it.state("g"), it.state("")]
        assert {("t", 0): 7} == it.offsets("")


async def test_who_says_to_be_a_member_of_a_group_that_is_not_there_is_refused() -> None:
    async with coordinating() as it:
        asked = it.commit(("t", 0, 5), caller=Caller("c-1", None, 3))
        with_another_error = Asked[int]()
        it.coordinator.commit(
            "g",
            Caller("c-1", None, 0),
            {},
            with_another_error,
            missing=error_codes.GROUP_ID_NOT_FOUND,
        )

        assert [error_codes.ILLEGAL_GENERATION] == asked.answers
        assert [error_codes.GROUP_ID_NOT_FOUND] == with_another_error.answers
        assert it.state() is None


async def test_only_members_commit_while_there_are_any() -> None:
    async with coordinating() as it:
        answer = await it.stable()
        member = Caller(answer.member_id, None, answer.generation_id)

        assert [error_codes.UNKNOWN_MEMBER_ID] == it.commit(("t", 0, 5)).answers
        assert 0 == await it.commit(("t", 0, 6), caller=member).answer()
        assert {("t", 0): 6} == it.offsets()


async def test_what_cannot_be_stored_is_not_known() -> None:
    async with coordinating() as it:
        await it.commit(("t", 0, 5)).answer()
        async with it.broken("committed_offset"):
            refused = await it.commit(("t", 0, 6)).answer()

        assert error_codes.COORDINATOR_NOT_AVAILABLE == refused
        assert {("t", 0): 5} == it.offsets()
        assert 0 == await it.commit(("t", 0, 6)).answer()


async def test_a_commit_of_nothing_is_checked_and_is_no_write() -> None:
    async with coordinating() as it:
        await it.stable()

        assert [error_codes.UNKNOWN_MEMBER_ID] == it.commit().answers
        assert [0] == it.commit(group="h").answers


# Deleting some.


def drop(it: Coordinating, *partitions: tuple[str, int]) -> Asked[int]:
    asked = Asked[int]()
    it.coordinator.delete_offsets("g", partitions, asked)
    return asked


async def test_some_can_be_deleted() -> None:
    async with coordinating() as it:
        await it.commit(("t", 0, 5), ("t", 1, 6)).answer()

        assert 0 == await drop(it, ("t", 1), ("never", 0)).answer()
        assert {("t", 0): 5} == it.offsets()


async def test_what_cannot_be_deleted_stays() -> None:
    async with coordinating() as it:
        await it.commit(("t", 0, 5)).answer()
        async with it.broken("committed_offset"):
            refused = await drop(it, ("t", 0)).answer()

        assert error_codes.COORDINATOR_NOT_AVAILABLE == refused
        assert {("t", 0): 5} == it.offsets()


async def test_writes_happen_in_the_order_of_their_calls() -> None:
    async with coordinating() as it:
        asked = [
            it.commit(("t", 0, 1)),
            drop(it, ("t", 0)),
            it.commit(("t", 0, 2)),
            it.commit(("u", 0, 3)),
            drop(it, ("u", 0)),
        ]
        for each in asked:
            await each.answer()

        assert {("t", 0): 2} == it.offsets()


# Deleting a topic.


async def test_offsets_go_with_their_topic() -> None:
    async with coordinating() as it:
        for group in "gh":
            await it.commit(("t", 0, 5), ("u", 0, 6), group=group).answer()

        it.store.forget_topic("t")
        await wait_all_tasks_blocked()

        assert [{("u", 0): 6}] * 2 == [it.offsets(group) for group in "gh"]


async def test_offsets_whose_topic_could_not_be_forgotten_stay() -> None:
    """What is known is what the next start will find."""
    async with coordinating() as it:
        await it.commit(("t", 0, 5)).answer()
        async with it.broken("committed_offset"):
            it.store.forget_topic("t")
            await wait_all_tasks_blocked()

        assert {("t", 0): 5} == it.offsets()


async def test_offsets_that_are_just_being_stored_go_too() -> None:
    """Else a topic of that name that is created later would be read from the middle."""
    async with coordinating() as it:
        asked = it.commit(("t", 0, 5))
        it.store.forget_topic("t")
        later = it.commit(("t", 1, 1))
        await asked.answer()
        await later.answer()

        assert {("t", 1): 1} == it.offsets()


# Deleting a group.


async def test_a_group_without_members_can_be_deleted_with_its_offsets() -> None:
    async with coordinating() as it:
        await it.commit(("t", 0, 5)).answer()

        assert 0 == await it.delete().answer()

        assert (None, {}) == (it.state(), it.offsets())
        assert [error_codes.GROUP_ID_NOT_FOUND] == it.delete().answers


@pytest.mark.parametrize("group", ["nobody's", ""])
async def test_a_group_that_is_not_there_is_not_found(group: str) -> None:
    async with coordinating() as it:
        assert [error_codes.GROUP_ID_NOT_FOUND] == it.delete(group).answers


async def test_a_group_with_members_cannot_be_deleted() -> None:
    async with coordinating() as it:
        answer = await it.stable()
        refused = it.delete().answers
        it.join(answer.member_id, protocols={"range": b"new"})
        it.join()
        refused += it.delete().answers

        assert [error_codes.NON_EMPTY_GROUP] * 2 == refused


async def test_while_it_is_deleted_calls_are_to_be_made_again() -> None:
    async with coordinating() as it:
        await it.commit(("t", 0, 5)).answer()
        deleted = it.delete()
        later = error_codes.COORDINATOR_NOT_AVAILABLE

        assert [later] == [answer.error_code for answer in it.join().answers]
        assert [later] == it.commit(("t", 0, 6)).answers
        assert [error_codes.GROUP_ID_NOT_FOUND] == it.delete().answers
        assert 0 == await deleted.answer()
        assert 0 == await it.commit(("t", 0, 6)).answer()
        assert {("t", 0): 6} == it.offsets()


async def test_a_group_that_cannot_be_deleted_stays() -> None:
    async with coordinating() as it:
        await it.commit(("t", 0, 5)).answer()
        async with it.broken("committed_offset"):
            refused = await it.delete().answer()

        assert error_codes.COORDINATOR_NOT_AVAILABLE == refused
        assert (GroupState.EMPTY, {("t", 0): 5}) == (it.state(), it.offsets())
        assert 0 == (await it.join().answer()).error_code


async def test_what_is_being_committed_goes_with_its_group() -> None:
    async with coordinating() as it:
        committed: list[Any] = [it.commit(("t", 0, 5)), it.delete()]

        assert [0, 0] == [await each.answer() for each in committed]
        assert (None, {}) == (it.state(), it.offsets())


async def test_an_id_that_was_given_goes_with_its_group() -> None:
    async with coordinating() as it:
        [answer] = it.join(must_know_id=True).answers
        await it.delete().answer()

        assert [error_codes.UNKNOWN_MEMBER_ID] == [
            refused.error_code for refused in it.join(answer.member_id).answers
        ]


DAY = 24 * 3600.0
DAY_MS = round(DAY * 1000)


@pytest.fixture
def clock(autojump_clock: MockClock) -> MockClock:
    return autojump_clock


async def expire(it: Coordinating) -> None:
    """One round, with a retention of a day."""
    await it.coordinator.expire_offsets(DAY_MS)
    await wait_all_tasks_blocked()


def reading(topic: str) -> dict[str, bytes]:
    """Protocols of a member that reads a topic."""
    out = [b"\0\0"]
    _, encode = MESSAGES[0]
    encode(ConsumerProtocolSubscription(topics=[topic]), out)  # type: ignore[arg-type]
    return {"range": b"".join(out)}


async def test_offsets_of_no_members_are_kept_for_a_while_after_their_commit(
    clock: MockClock,
) -> None:
    async with coordinating() as it:
        await it.commit(("t", 0, 5)).answer()
        await trio.sleep(DAY / 2)
        await it.commit(("t", 1, 6)).answer()
        await trio.sleep(DAY / 2 - 1)
        await expire(it)
        assert {("t", 0): 5, ("t", 1): 6} == it.offsets()

        await trio.sleep(1)
        await expire(it)

        assert {("t", 1): 6} == it.offsets()
        assert GroupState.EMPTY is it.state()


async def test_with_its_last_offset_a_group_goes(clock: MockClock) -> None:
    async with coordinating() as it:
        await it.commit(("t", 0, 5), ("t", 1, 6)).answer()
        await trio.sleep(DAY)
        await expire(it)

        assert (None, {}) == (it.state(), it.offsets())


async def test_the_retention_begins_when_the_last_member_leaves(clock: MockClock) -> None:
    async with coordinating() as it:
        answer = await it.stable(session=1800.0)
        caller = Caller(answer.member_id, None, answer.generation_id)
        await it.commit(("t", 0, 5), caller=caller).answer()
        for _ in range(100):
            await trio.sleep(1000)
            it.heartbeat(answer)
        it.coordinator.leave("g", [(answer.member_id, None)])

        await trio.sleep(DAY - 1)
        await expire(it)
        assert {("t", 0): 5} == it.offsets()
        await trio.sleep(1)
        await expire(it)

        assert (None, {}) == (it.state(), it.offsets())


async def test_what_members_do_not_read_any_more_expires(clock: MockClock) -> None:
    async with coordinating() as it:
        answer = await it.stable(session=1800.0, protocols=reading("t"))
        caller = Caller(answer.member_id, None, answer.generation_id)
        await it.commit(("t", 0, 5), ("old", 0, 6), caller=caller).answer()
        for _ in range(87):
            await trio.sleep(1000)
            it.heartbeat(answer)

        await expire(it)

        assert {("t", 0): 5} == it.offsets()
        assert GroupState.STABLE is it.state()


async def test_nothing_expires_while_members_change(clock: MockClock) -> None:
    async with coordinating() as it:
        answer = await it.stable(session=1800.0, rebalance=1800.0, protocols=reading("t"))
        caller = Caller(answer.member_id, None, answer.generation_id)
        await it.commit(("old", 0, 6), caller=caller).answer()
        for _ in range(87):
            await trio.sleep(1000)
            it.heartbeat(answer)
        it.join(protocols=reading("t"))
        assert GroupState.PREPARING is it.state()

        await expire(it)
        assert {("old", 0): 6} == it.offsets()
        answer = await it.join(answer.member_id, protocols=reading("t")).answer()
        await expire(it)
        assert {("old", 0): 6} == it.offsets()
        await it.sync(answer).answer()
        await expire(it)

        assert {} == it.offsets()


async def test_nothing_expires_while_it_is_not_known_what_members_read(clock: MockClock) -> None:
    async with coordinating() as it:
        answer = await it.stable(session=1800.0, protocols=RANGE)
        caller = Caller(answer.member_id, None, answer.generation_id)
        await it.commit(("t", 0, 5), caller=caller, expires_at_ms=0).answer()

        await expire(it)

        assert {("t", 0): 5} == it.offsets()


async def test_a_client_may_say_how_long_an_offset_is_kept(clock: MockClock) -> None:
    async with coordinating() as it:
        now_ms = it.coordinator._now_ms()
        await it.commit(("t", 0, 5), expires_at_ms=now_ms + 1000).answer()
        await it.commit(("t", 1, 6), expires_at_ms=now_ms + 10 * DAY_MS).answer()
        await trio.sleep(2 * DAY)

        await expire(it)

        assert {("t", 1): 6} == it.offsets()


async def test_a_group_that_committed_nothing_goes_when_it_is_empty(clock: MockClock) -> None:
    async with coordinating() as it:
        answer = await it.stable()
        await expire(it)
        before = it.state()
        it.coordinator.leave("g", [(answer.member_id, None)])

        await expire(it)

        assert (GroupState.STABLE, None) == (before, it.state())


async def test_an_id_that_was_given_keeps_its_group(clock: MockClock) -> None:
    async with coordinating() as it:
        [given] = it.join(must_know_id=True).answers
        await expire(it)
        assert GroupState.EMPTY is it.state()

        answer = await it.join(given.member_id).answer()

        assert 1 == answer.generation_id


async def test_an_offset_that_is_just_being_stored_keeps_its_group(clock: MockClock) -> None:
    """It will be acknowledged, so it must not go with a group that looks empty without it."""
    async with coordinating() as it:
        asked = it.commit(("t", 0, 5))
        await it.coordinator.expire_offsets(DAY_MS)

        assert 0 == await asked.answer()
        await wait_all_tasks_blocked()
        assert ({("t", 0): 5}, GroupState.EMPTY) == (it.offsets(), it.state())


async def test_nor_does_it_go_in_the_place_of_an_old_one(clock: MockClock) -> None:
    async with coordinating() as it:
        await it.commit(("t", 0, 5), ("t", 1, 6)).answer()
        await trio.sleep(DAY)
        asked = it.commit(("t", 0, 7))
        await it.coordinator.expire_offsets(DAY_MS)

        assert 0 == await asked.answer()
        await wait_all_tasks_blocked()
        assert {("t", 0): 7, ("t", 1): 6} == it.offsets()
        await expire(it)
        assert {("t", 0): 7} == it.offsets()


async def test_a_group_that_is_being_deleted_is_left_alone(clock: MockClock) -> None:
    async with coordinating() as it:
        await it.commit(("t", 0, 5)).answer()
        await trio.sleep(DAY)
        deleted = it.delete()
        await it.coordinator.expire_offsets(DAY_MS)

        assert 0 == await deleted.answer()
        await wait_all_tasks_blocked()
        assert it.state() is None


async def test_what_cannot_be_removed_is_tried_again(clock: MockClock) -> None:
    async with coordinating() as it:
        await it.commit(("t", 0, 5)).answer()
        await trio.sleep(DAY)
        async with it.broken("committed_offset"):
            await expire(it)
        assert (GroupState.EMPTY, {("t", 0): 5}) == (it.state(), it.offsets())

        await expire(it)

        assert (None, {}) == (it.state(), it.offsets())


# In transactions.

PRODUCER = 7


def pend(
    it: Coordinating,
    *offsets: tuple[str, int, int],
    caller: Caller = NO_MEMBER,
) -> Asked[int]:
    """A TxnOffsetCommit of topics, partitions and offsets."""
    asked = Asked[int]()
    pending = {
        (topic, partition): CommittedOffset(offset, -1, "", it.coordinator._now_ms())
        for topic, partition, offset in offsets
    }
    it.coordinator.commit_in_transaction("g", caller, PRODUCER, pending, asked)
    return asked


async def end(it: Coordinating, *, is_commit: bool) -> None:
    it.writes.write(
        it.store.end_pending(PRODUCER, is_commit),
        lambda _: it.store.pending_ended(PRODUCER, is_commit),
    )
    await it.writes.flush()


async def test_an_offset_in_a_transaction_creates_the_group_and_waits() -> None:
    async with coordinating() as it:
        assert 0 == await pend(it, ("t", 0, 5)).answer()
        assert (GroupState.EMPTY, {}) == (it.state(), it.offsets())

        await end(it, is_commit=True)

        assert {("t", 0): 5} == it.offsets()


async def test_the_group_of_a_member_must_be_there_in_a_transaction() -> None:
    async with coordinating() as it:
        asked = pend(it, ("t", 0, 5), caller=Caller("c-1", None, 0))

        assert [error_codes.ILLEGAL_GENERATION] == asked.answers
        assert it.state() is None


async def test_a_pending_offset_keeps_its_group_and_the_committed_one(clock: MockClock) -> None:
    """Which is needed again if the transaction is aborted."""
    async with coordinating() as it:
        await it.commit(("t", 0, 1), ("t", 1, 2)).answer()
        await pend(it, ("t", 0, 5)).answer()
        await trio.sleep(DAY)
        await expire(it)
        assert {("t", 0): 1} == it.offsets()

        await end(it, is_commit=False)
        await expire(it)

        assert (None, {}) == (it.state(), it.offsets())


async def test_a_group_that_has_pending_offsets_only_is_kept(clock: MockClock) -> None:
    async with coordinating() as it:
        await pend(it, ("t", 0, 5)).answer()
        await trio.sleep(DAY)
        await expire(it)
        assert GroupState.EMPTY is it.state()

        await end(it, is_commit=False)
        await expire(it)

        assert it.state() is None


async def test_one_that_is_just_being_stored_keeps_its_group(clock: MockClock) -> None:
    async with coordinating() as it:
        asked = pend(it, ("t", 0, 5))
        await it.coordinator.expire_offsets(DAY_MS)

        assert 0 == await asked.answer()
        assert GroupState.EMPTY is it.state()


async def test_a_transaction_does_not_keep_a_group_from_being_deleted() -> None:
    async with coordinating() as it:
        await pend(it, ("t", 0, 5)).answer()

        assert 0 == await it.delete().answer()
        await end(it, is_commit=True)

        assert (None, {}) == (it.state(), it.offsets())


async def test_after_a_restart_a_group_with_pending_offsets_only_is_there(tmp_path: Path) -> None:
    path = str(tmp_path / DATABASE_NAME)
    async with coordinating(path) as it:
        await pend(it, ("t", 0, 5)).answer()
    async with coordinating(path) as it:
        assert GroupState.EMPTY is it.state()
        await end(it, is_commit=True)

        assert {("t", 0): 5} == it.offsets()


@asynccontextmanager
async def most_at_once(count: Callable[[], int]) -> AsyncIterator[list[int]]:
    """By how much a count has changed at most while another task waited for its turn."""
    changes = [0]

    async def watch(*, task_status: trio.TaskStatus[None]) -> None:
        last = count()
        task_status.started()
        while True:
            await trio.lowlevel.checkpoint()
            now = count()
            changes[0] = max(changes[0], abs(now - last))
            last = now

    async with trio.open_nursery() as nursery:
        await nursery.start(watch)
        yield changes
        nursery.cancel_scope.cancel()


async def test_groups_that_expire_at_the_same_time_do_not_hold_the_loop() -> None:
    groups = 5 * GROUPS_AT_ONCE
    async with coordinating() as it:
        for number in range(groups):
            await it.commit(("t", 0, 5), group=f"g{number}", expires_at_ms=1).answer()

        def dead() -> int:
            states = [group.state for group in it.coordinator.groups.values()]
            return groups - len(states) + states.count(GroupState.DEAD)

        async with most_at_once(dead) as changes:
            await it.coordinator.expire_offsets(DAY_MS)
        await it.writes.flush()

        assert {} == it.coordinator.groups
        assert changes[0] <= 2 * GROUPS_AT_ONCE  # trio may take tasks in another order each time


async def test_sessions_that_end_at_the_same_time_do_not_hold_the_loop(
    mock_clock: MockClock,
) -> None:
    async with coordinating() as it:
        for number in range(10 * TIMEOUTS_AT_ONCE):
            await it.stable(group=f"g{number}", session=10.0)
        groups = list(it.coordinator.groups.values())

        async with most_at_once(lambda: sum(len(each.members) for each in groups)) as changes:
            mock_clock.jump(10.1)
            while any(group.members for group in groups):
                await trio.lowlevel.checkpoint()

        assert changes[0] <= 2 * TIMEOUTS_AT_ONCE
