"""Members that leave, and the end of their calls."""

from __future__ import annotations

import pytest

from support.groups import GroupRig
from trionet.broker.groups._group_state import GroupState
from trionet.protocol import error_codes
from trionet.protocol.error_codes import NONE, REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID


@pytest.fixture
def rig() -> GroupRig:
    return GroupRig()


@pytest.mark.parametrize("state", ["completing", "stable"])
def test_who_leaves_has_the_others_join_again(rig: GroupRig, state: str) -> None:
    first, second, third = rig.complete(3)
    if state == "stable":
        rig.stabilize(first, second, third)

    assert [NONE] == rig.leave(second)

    assert (GroupState.PREPARING, [first, third]) == (rig.state, rig.members)
    assert UNKNOWN_MEMBER_ID == rig.heartbeat(second)


def test_assignments_are_not_waited_for_any_more(rig: GroupRig) -> None:
    _leader, follower, other = rig.complete(3)
    waiting = rig.sync(follower)
    leaving = rig.sync(other)

    rig.leave(other)

    assert REBALANCE_IN_PROGRESS == waiting.error_code
    assert UNKNOWN_MEMBER_ID == leaving.error_code


def test_a_rebalance_goes_on_when_the_last_that_was_waited_for_leaves(rig: GroupRig) -> None:
    first, second, third = rig.stable(3)
    replies = [rig.join(first), rig.join(second)]

    rig.leave(third)

    assert GroupState.COMPLETING is rig.state
    assert [2, 2] == [reply.answer.generation for reply in replies]


def test_a_member_that_leaves_while_its_join_waits_gets_a_response(rig: GroupRig) -> None:
    first, second = rig.stable()
    waiting = rig.join(first)

    rig.leave(first)

    assert (UNKNOWN_MEMBER_ID, "") == (waiting.error_code, waiting.answer.member_id)
    assert (GroupState.PREPARING, [second]) == (rig.state, rig.members)


def test_several_leave_at_once_and_each_has_its_own_error(rig: GroupRig) -> None:
    first, second, third = rig.stable(3)

    codes = rig.leave(first, "nobody", third, first)

    assert [NONE, UNKNOWN_MEMBER_ID, NONE, UNKNOWN_MEMBER_ID] == codes
    assert [second] == rig.members


def test_several_that_leave_at_once_are_one_change(rig: GroupRig) -> None:
    """Between them no generation begins that the next one ends."""
    first, second, third = rig.stable(3)
    waiting = rig.join(first)
    other = rig.join(third)

    rig.leave(second, third)

    assert (2, [first]) == (waiting.answer.generation, rig.members)
    assert UNKNOWN_MEMBER_ID == other.error_code
    assert GroupState.COMPLETING is rig.state


def test_all_may_leave_at_once(rig: GroupRig) -> None:
    assert [NONE] * 3 == rig.leave(*rig.stable(3))

    assert (GroupState.EMPTY, 2) == (rig.state, rig.generation)


def test_who_is_no_member_leaves_nothing(rig: GroupRig) -> None:
    ids = rig.stable()

    assert [UNKNOWN_MEMBER_ID] * 2 == rig.leave("nobody", "")

    assert (GroupState.STABLE, ids) == (rig.state, rig.members)


def test_no_member_leaves_an_empty_group(rig: GroupRig) -> None:
    assert [UNKNOWN_MEMBER_ID] == rig.leave("c-1")
    assert [] == rig.leave()
    assert GroupState.EMPTY is rig.state


def test_a_group_that_is_being_deleted_has_who_leaves_try_again(rig: GroupRig) -> None:
    rig.group.state = GroupState.DEAD

    assert [error_codes.COORDINATOR_NOT_AVAILABLE] == rig.leave("c-1")


def test_the_leader_may_leave(rig: GroupRig) -> None:
    first, second, third = rig.stable(3)

    rig.leave(first)

    rig.gather(rig.join(third), rig.join(second))
    assert second == rig.leader


# All are turned away, because the broker stops.


def test_all_who_wait_are_turned_away_and_keep_their_places(rig: GroupRig) -> None:
    first, second, third = rig.stable(3)
    replies = [rig.join(first), rig.join(second)]

    rig.group.fail_waiting(error_codes.COORDINATOR_NOT_AVAILABLE)
    rig.settle()

    assert [error_codes.COORDINATOR_NOT_AVAILABLE] * 2 == [each.error_code for each in replies]
    assert [first, second] == [reply.answer.member_id for reply in replies]
    assert [first, second, third] == rig.members


def test_so_are_those_who_wait_for_assignments(rig: GroupRig) -> None:
    _leader, follower = rig.complete()
    waiting = rig.sync(follower)

    rig.group.fail_waiting(error_codes.COORDINATOR_NOT_AVAILABLE)
    rig.settle()

    assert error_codes.COORDINATOR_NOT_AVAILABLE == waiting.error_code
    assert rig.sync(follower).is_waiting
