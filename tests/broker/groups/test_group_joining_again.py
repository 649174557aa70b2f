"""A member that joins again: told the same again, or the beginning of a rebalance."""

from __future__ import annotations

import pytest

from support.groups import RANGE, GroupRig
from trionet.broker.groups._group_state import GroupState
from trionet.protocol import error_codes

CHANGED = {"range": b"other topics"}


@pytest.fixture
def rig() -> GroupRig:
    return GroupRig()


# While assignments are made.


def test_a_member_whose_response_was_lost_gets_it_again_while_assignments_are_made(
    rig: GroupRig,
) -> None:
    replies = [rig.join(), rig.join()]
    leader, follower = rig.gather(*replies)

    again = [rig.join(leader), rig.join(follower)]

    assert [reply.answer for reply in replies] == [reply.answer for reply in again]
    assert (GroupState.COMPLETING, 1) == (rig.state, rig.generation)
    assert 2 == len(again[0].answer.members)


def test_that_takes_no_assignment_away(rig: GroupRig) -> None:
    leader, follower = rig.complete()
    waiting = rig.sync(follower)

    rig.join(follower)

    assert waiting.is_waiting
    rig.sync(leader, {follower: b"x"})
    assert b"x" == waiting.answer.assignment


@pytest.mark.parametrize(
    "protocols",
    [CHANGED, {**RANGE, "more": b""}, {"more": b"", **RANGE}],
    ids=["metadata", "one more", "another order"],
)
def test_who_has_changed_while_assignments_are_made_begins_a_rebalance(
    rig: GroupRig, protocols: dict[str, bytes]
) -> None:
    leader, follower = rig.complete()
    waiting = rig.sync(follower)

    reply = rig.join(leader, protocols=protocols)

    assert GroupState.PREPARING is rig.state
    assert error_codes.REBALANCE_IN_PROGRESS == waiting.error_code
    rig.join(follower)
    assert 2 == reply.answer.generation
    assert protocols["range"] == reply.answer.members[0].metadata


def test_the_order_of_protocols_is_a_change(rig: GroupRig) -> None:
    both = {"range": b"", "sticky": b""}
    _leader, follower = rig.stable(2, protocols=both)

    rig.join(follower, protocols=dict(reversed(both.items())))

    assert GroupState.PREPARING is rig.state


# When all is settled.


def test_a_follower_that_joins_again_learns_the_same(rig: GroupRig) -> None:
    replies = [rig.join(), rig.join()]
    leader, follower = rig.gather(*replies)
    rig.stabilize(leader, follower)

    again = rig.join(follower)

    assert (GroupState.STABLE, replies[1].answer) == (rig.state, again.answer)
    assert b"of c-2" == rig.sync(follower).answer.assignment


def test_a_follower_that_has_changed_begins_a_rebalance(rig: GroupRig) -> None:
    leader, follower = rig.stable()

    reply = rig.join(follower, protocols=CHANGED)

    assert GroupState.PREPARING is rig.state
    assert reply.is_waiting
    assert b"other topics" == rig.join(leader).answer.members[1].metadata


def test_a_leader_that_joins_again_begins_a_rebalance(rig: GroupRig) -> None:
    """Partitions of its topics may have been added, which no metadata reports."""
    leader, follower = rig.stable()

    reply = rig.join(leader)

    assert GroupState.PREPARING is rig.state
    rig.join(follower)
    assert 2 == reply.answer.generation


# While others are waited for.


def test_a_second_join_gets_the_same_response(rig: GroupRig) -> None:
    """Its first call is over for it, or there would not be a second."""
    leader, follower = rig.stable()
    first = rig.join(leader)

    second = rig.join(leader)

    assert error_codes.REBALANCE_IN_PROGRESS == first.error_code
    assert second.is_waiting
    rig.join(follower)
    assert (0, 2) == (second.error_code, second.answer.generation)


def test_what_a_member_says_last_counts(rig: GroupRig) -> None:
    leader, follower = rig.stable()
    rig.join(leader)
    rig.join(leader, protocols=CHANGED, session=20, rebalance=200, client_id="d")

    rig.join(follower)

    member = rig.member(leader)
    assert (CHANGED, 20, 200, "d") == (
        member.protocols,
        member.session_seconds,
        member.rebalance_seconds,
        member.client_id,
    )


# Who is no member.


@pytest.mark.parametrize("state", ["empty", "preparing", "completing", "stable"])
def test_an_id_that_was_never_assigned_is_unknown_in_every_state(rig: GroupRig, state: str) -> None:
    match state:
        case "preparing":
            rig.join()
        case "completing":
            rig.complete()
        case "stable":
            rig.stable()
    before = rig.state, rig.generation, rig.members

    reply = rig.join("nobody")

    assert (error_codes.UNKNOWN_MEMBER_ID, "nobody", -1) == (
        reply.error_code,
        reply.answer.member_id,
        reply.answer.generation,
    )
    assert before == (rig.state, rig.generation, rig.members)


def test_an_id_of_before_the_group_was_empty_is_unknown(rig: GroupRig) -> None:
    [id] = rig.stable(1)
    rig.leave(id)

    assert error_codes.UNKNOWN_MEMBER_ID == rig.join(id).error_code
    assert GroupState.EMPTY is rig.state


def test_a_group_that_is_being_deleted_has_who_joins_try_again(rig: GroupRig) -> None:
    rig.group.state = GroupState.DEAD

    for id in ("", "c-1"):
        reply = rig.join(id)
        assert (error_codes.COORDINATOR_NOT_AVAILABLE, id) == (
            reply.error_code,
            reply.answer.member_id,
        )
    assert [] == rig.members
