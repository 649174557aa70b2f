"""Ids that are given before they are used: a client that goes leaves no member (KIP-394)."""

from __future__ import annotations

import pytest

from support.groups import SESSION, GroupRig
from trionet.broker.groups._group_state import GroupState
from trionet.protocol import error_codes


@pytest.fixture
def rig() -> GroupRig:
    return GroupRig()


def ask(rig: GroupRig, session: float = SESSION) -> str:
    """Ask for an id."""
    reply = rig.join(must_know_id=True, session=session)
    assert error_codes.MEMBER_ID_REQUIRED == reply.error_code
    return reply.answer.member_id


def test_who_is_to_know_its_id_is_given_one_first(rig: GroupRig) -> None:
    id = ask(rig)

    assert id == "c-1"
    assert (GroupState.EMPTY, []) == (rig.state, rig.members)
    assert rig.group.members.pending


def test_with_that_id_it_becomes_a_member(rig: GroupRig) -> None:
    id = ask(rig)

    reply = rig.join(id, must_know_id=True)

    assert [id] == rig.gather(reply) == rig.members
    assert not rig.group.members.pending


def test_a_static_member_needs_no_id(rig: GroupRig) -> None:
    reply = rig.join(instance="i", must_know_id=True)

    assert ["i-1"] == rig.gather(reply)


def test_an_id_is_good_for_a_session(rig: GroupRig) -> None:
    id = ask(rig)

    rig.pass_time(SESSION - 0.1)
    assert rig.join(id).is_waiting

    other = ask(rig, session=5.0)
    rig.pass_time(5)
    assert error_codes.UNKNOWN_MEMBER_ID == rig.join(other).error_code


def test_it_is_used_once(rig: GroupRig) -> None:
    id = ask(rig)
    rig.gather(rig.join(id))
    rig.leave(id)

    assert error_codes.UNKNOWN_MEMBER_ID == rig.join(id).error_code


@pytest.mark.parametrize("call", ["sync", "heartbeat", "commit"])
def test_it_is_no_membership(rig: GroupRig, call: str) -> None:
    rig.stable()
    id = ask(rig)

    code = {
        "sync": lambda: rig.sync(id).error_code,
        "heartbeat": lambda: rig.heartbeat(id),
        "commit": lambda: rig.commit(id),
    }[call]()

    assert error_codes.UNKNOWN_MEMBER_ID == code
    assert GroupState.STABLE is rig.state


def test_a_static_member_cannot_use_it(rig: GroupRig) -> None:
    id = ask(rig)

    assert error_codes.UNKNOWN_MEMBER_ID == rig.join(id, instance="i").error_code


def test_a_rebalance_waits_for_who_was_given_an_id(rig: GroupRig) -> None:
    leader, follower = rig.stable()
    id = ask(rig)
    assert (GroupState.STABLE, 1) == (rig.state, rig.generation)
    replies = [rig.join(leader), rig.join(follower)]

    assert all(reply.is_waiting for reply in replies)
    replies.append(rig.join(id))

    assert [2, 2, 2] == [reply.answer.generation for reply in replies]


def test_it_waits_no_longer_than_the_id_is_good(rig: GroupRig) -> None:
    leader, follower = rig.stable(2)
    ask(rig, session=6.0)
    replies = [rig.join(leader), rig.join(follower)]

    rig.pass_time(5.9)
    assert GroupState.PREPARING is rig.state
    rig.pass_time(0.1)

    assert [2, 2] == [reply.answer.generation for reply in replies]


def test_it_waits_no_longer_than_a_rebalance_takes(rig: GroupRig) -> None:
    leader, follower = rig.stable(2, rebalance=20.0, session=100.0)
    id = ask(rig, session=100.0)
    replies = [rig.join(leader, rebalance=20.0), rig.join(follower, rebalance=20.0)]

    rig.pass_time(20)

    assert [2, 2] == [reply.answer.generation for reply in replies]
    assert rig.join(id).is_waiting


def test_it_does_not_wait_for_who_gives_the_id_back(rig: GroupRig) -> None:
    leader, follower = rig.stable()
    id = ask(rig)
    rig.join(leader)
    rig.join(follower)

    assert [error_codes.NONE] == rig.leave(id)

    assert GroupState.COMPLETING is rig.state
    assert error_codes.UNKNOWN_MEMBER_ID == rig.join(id).error_code


def test_giving_an_id_back_begins_no_rebalance(rig: GroupRig) -> None:
    rig.stable()
    id = ask(rig)

    assert [error_codes.NONE] == rig.leave(id)

    assert GroupState.STABLE is rig.state


def test_the_last_member_may_leave_before_the_id_is_used(rig: GroupRig) -> None:
    ids = rig.stable()
    id = ask(rig)

    rig.leave(*ids)
    rig.pass_time(0)

    assert GroupState.EMPTY is rig.state
    assert [id] == rig.gather(rig.join(id))
