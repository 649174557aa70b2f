"""Offsets that nobody needed for the retention, and groups that nothing is left of (KIP-211)."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.coordinating import Coordinating, coordinating
from support.groups import RANGE
from trionet.broker.groups._group_calls import Caller
from trionet.broker.groups._group_state import GroupState
from trionet.protocol.messages.consumer_protocol_subscription import (
    MESSAGES,
    ConsumerProtocolSubscription,
)

DAY = 24 * 3600.0
DAY_MS = round(DAY * 1000)


@pytest.fixture
def clock(autojump_clock: MockClock) -> MockClock:
    return autojump_clock


async def expire(it: Coordinating) -> None:
    """One round, with a retention of a day."""
    it.coordinator.expire_offsets(DAY_MS)
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
        caller = Caller(answer.member_id, None, answer.generation)
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
        caller = Caller(answer.member_id, None, answer.generation)
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
        caller = Caller(answer.member_id, None, answer.generation)
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
        caller = Caller(answer.member_id, None, answer.generation)
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

        assert 1 == answer.generation


async def test_an_offset_that_is_just_being_stored_keeps_its_group(clock: MockClock) -> None:
    """It will be acknowledged, so it must not go with a group that looks empty without it."""
    async with coordinating() as it:
        asked = it.commit(("t", 0, 5))
        it.coordinator.expire_offsets(DAY_MS)

        assert 0 == await asked.answer()
        await wait_all_tasks_blocked()
        assert ({("t", 0): 5}, GroupState.EMPTY) == (it.offsets(), it.state())


async def test_nor_does_it_go_in_the_place_of_an_old_one(clock: MockClock) -> None:
    async with coordinating() as it:
        await it.commit(("t", 0, 5), ("t", 1, 6)).answer()
        await trio.sleep(DAY)
        asked = it.commit(("t", 0, 7))
        it.coordinator.expire_offsets(DAY_MS)

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
        it.coordinator.expire_offsets(DAY_MS)

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
