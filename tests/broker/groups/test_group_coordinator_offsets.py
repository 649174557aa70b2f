"""What groups commit: stored first, then known; and gone with its topic or group."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

from support.coordinating import Asked, Coordinating, coordinating
from trionet.broker.groups._group_calls import Caller
from trionet.broker.groups._group_state import GroupState
from trionet.protocol import error_codes


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
        member = Caller(answer.member_id, None, answer.generation)

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
    it.coordinator.offsets.delete("g", partitions, asked)
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

        it.coordinator._store.forget_topic("t")
        await wait_all_tasks_blocked()

        assert [{("u", 0): 6}] * 2 == [it.offsets(group) for group in "gh"]


async def test_offsets_whose_topic_could_not_be_forgotten_stay() -> None:
    """What is known is what the next start will find."""
    async with coordinating() as it:
        await it.commit(("t", 0, 5)).answer()
        async with it.broken("committed_offset"):
            it.coordinator._store.forget_topic("t")
            await wait_all_tasks_blocked()

        assert {("t", 0): 5} == it.offsets()


async def test_offsets_that_are_just_being_stored_go_too() -> None:
    """Else a topic of that name that is created later would be read from the middle."""
    async with coordinating() as it:
        asked = it.commit(("t", 0, 5))
        it.coordinator._store.forget_topic("t")
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
