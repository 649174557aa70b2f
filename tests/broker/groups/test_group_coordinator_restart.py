"""A broker that starts anew: groups, members and offsets are there, and time has gone on."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.coordinating import EPOCH_MS, Coordinating, coordinating, coordinating_in
from trionet.broker.groups._group_calls import Caller, SyncGroupResult
from trionet.broker.groups._group_state import GroupState
from trionet.broker.storage._database import DATABASE_NAME, IN_MEMORY, open_database
from trionet.protocol import error_codes

DAY_MS = 24 * 3_600_000


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / DATABASE_NAME)


async def expire(it: Coordinating) -> None:
    """One round, with a retention of a day."""
    it.coordinator.expire_offsets(DAY_MS)
    await it.coordinator._store.flush()


async def test_a_member_goes_on_where_it_was(path: str) -> None:
    async with coordinating(path) as it:
        answer = await it.stable()
        caller = Caller(answer.member_id, None, answer.generation)
        await it.commit(("t", 0, 5), ("t", 1, 6), caller=caller).answer()

    async with coordinating(path) as it:
        assert 0 == it.heartbeat(answer)
        assert (
            SyncGroupResult(0, "consumer", "range", b"assigned") == await it.sync(answer).answer()
        )
        assert {("t", 0): 5, ("t", 1): 6} == it.offsets()
        assert 0 == await it.commit(("t", 0, 7), caller=caller).answer()
        assert {("t", 0): 7, ("t", 1): 6} == it.offsets()


async def test_who_never_comes_back_is_dropped(autojump_clock: MockClock) -> None:
    async with open_database(IN_MEMORY) as database:
        async with coordinating_in(database) as it:
            await it.stable(session=10.0)
        async with coordinating_in(database) as it:
            began = trio.current_time()
            assert GroupState.STABLE is it.state()

            await trio.sleep(9.9)
            before = it.state()
            await trio.sleep(0.1)
            await wait_all_tasks_blocked()

            assert (GroupState.STABLE, GroupState.EMPTY) == (before, it.state())
            assert 10 == pytest.approx(trio.current_time() - began)


async def test_a_static_member_keeps_its_last_id(path: str) -> None:
    async with coordinating(path) as it:
        first = await it.stable(instance="i")
        second = await it.join(instance="i").answer()

    async with coordinating(path) as it:
        assert error_codes.FENCED_INSTANCE_ID == it.heartbeat(first, instance="i")
        assert 0 == it.heartbeat(second, instance="i")


async def test_a_group_that_only_has_offsets_is_there(path: str) -> None:
    async with coordinating(path) as it:
        await it.commit(("t", 0, 5)).answer()

    async with coordinating(path) as it:
        assert (GroupState.EMPTY, {("t", 0): 5}) == (it.state(), it.offsets())
        assert 0 == await it.commit(("t", 0, 6)).answer()
        assert 0 == await it.delete().answer()

    async with coordinating(path) as it:
        assert (None, {}) == (it.state(), it.offsets())


async def test_its_offsets_expire_in_the_end(path: str) -> None:
    async with coordinating(path, now_ms=lambda: EPOCH_MS) as it:
        await it.commit(("t", 0, 5)).answer()

    async with coordinating(path, now_ms=lambda: EPOCH_MS + DAY_MS) as it:
        await expire(it)
        assert (None, {}) == (it.state(), it.offsets())


async def test_the_retention_goes_on_while_the_broker_is_down(path: str) -> None:
    async with coordinating(path, now_ms=lambda: EPOCH_MS) as it:
        answer = await it.stable()
        caller = Caller(answer.member_id, None, answer.generation)
        await it.commit(("t", 0, 5), caller=caller).answer()
        it.coordinator.leave("g", [(answer.member_id, None)])
        await it.coordinator._store.flush()

    # Two seconds are more than this test takes.
    async with coordinating(path, now_ms=lambda: EPOCH_MS + DAY_MS - 2000) as it:
        await expire(it)
        assert {("t", 0): 5} == it.offsets()
    async with coordinating(path, now_ms=lambda: EPOCH_MS + DAY_MS) as it:
        await expire(it)
        assert (None, {}) == (it.state(), it.offsets())


async def test_a_clock_that_was_set_back_makes_nothing_old(path: str) -> None:
    async with coordinating(path, now_ms=lambda: EPOCH_MS) as it:
        answer = await it.stable()
        caller = Caller(answer.member_id, None, answer.generation)
        await it.commit(("t", 0, 5), caller=caller).answer()
        it.coordinator.leave("g", [(answer.member_id, None)])
        await it.coordinator._store.flush()

    async with coordinating(path, now_ms=lambda: EPOCH_MS - 10 * DAY_MS) as it:
        await expire(it)
        assert {("t", 0): 5} == it.offsets()


async def test_a_group_that_all_have_left_goes_on_counting(path: str) -> None:
    async with coordinating(path) as it:
        answer = await it.stable()
        caller = Caller(answer.member_id, None, answer.generation)
        await it.commit(("t", 0, 5), caller=caller).answer()
        it.coordinator.leave("g", [(answer.member_id, None)])
        await it.coordinator._store.flush()

    async with coordinating(path) as it:
        assert GroupState.EMPTY is it.state()
        assert 3 == (await it.join().answer()).generation


async def test_a_group_that_has_become_too_large_has_all_join_again(path: str) -> None:
    async with coordinating(path) as it:
        first = await it.stable(rebalance=60.0)
        second = it.join()
        again = await it.join(first.member_id).answer()
        await it.sync(again).answer()
        other = await second.answer()

    async with coordinating(path, group_max_size=1) as it:
        assert error_codes.REBALANCE_IN_PROGRESS == it.heartbeat(again)
        joined = it.join(other.member_id)
        refused = it.join(first.member_id)

        assert [error_codes.GROUP_MAX_SIZE_REACHED] == [a.error_code for a in refused.answers]
        assert 3 == (await joined.answer()).generation


async def test_an_id_that_was_given_is_not_kept(path: str) -> None:
    async with coordinating(path) as it:
        [given] = it.join(must_know_id=True).answers

    async with coordinating(path) as it:
        [refused] = it.join(given.member_id).answers
        assert error_codes.UNKNOWN_MEMBER_ID == refused.error_code
        assert it.state() is None
