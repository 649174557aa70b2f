"""How many members a group may have (KIP-389)."""

from __future__ import annotations

import pytest

from support.groups import GroupRig
from trionet.broker.groups._group_state import GroupState
from trionet.protocol import error_codes
from trionet.protocol.error_codes import GROUP_MAX_SIZE_REACHED


@pytest.fixture
def rig() -> GroupRig:
    return GroupRig(members_max=2)


@pytest.mark.parametrize("state", ["preparing", "completing", "stable"])
def test_one_more_is_refused_in_every_state(rig: GroupRig, state: str) -> None:
    match state:
        case "preparing":
            rig.join()
            rig.join()
        case "completing":
            rig.complete()
        case "stable":
            rig.stable()
    before = rig.state, rig.members

    for must_know_id in (False, True):
        reply = rig.join(must_know_id=must_know_id)
        assert (GROUP_MAX_SIZE_REACHED, "") == (reply.error_code, reply.answer.member_id)

    assert before == (rig.state, rig.members)


@pytest.mark.parametrize("state", ["completing", "stable"])
def test_members_of_a_full_group_may_join_again(rig: GroupRig, state: str) -> None:
    ids = rig.complete() if state == "completing" else rig.stable()

    assert error_codes.NONE == rig.join(ids[1]).error_code


def test_the_group_is_asked_before_anything_else(rig: GroupRig) -> None:
    rig.stable()

    assert GROUP_MAX_SIZE_REACHED == rig.join(protocol_type="connect").error_code


def test_there_is_room_again_when_a_connection_has_closed(rig: GroupRig) -> None:
    first, second = rig.stable()
    rig.leave(second)

    reply = rig.join()

    assert reply.is_waiting
    rig.join(first)
    assert error_codes.NONE == reply.error_code


def test_more_ids_are_given_than_there_is_room_for_and_the_first_ones_win(rig: GroupRig) -> None:
    ids = [rig.join(must_know_id=True).answer.member_id for _ in range(3)]

    replies = [rig.join(id) for id in ids]

    assert (GROUP_MAX_SIZE_REACHED, "") == (replies[2].error_code, replies[2].answer.member_id)
    assert ids[:2] == rig.gather(*replies[:2]) == rig.members


def test_an_id_that_found_no_room_is_not_waited_for(rig: GroupRig) -> None:
    [first] = rig.stable(1)
    ids = [rig.join(must_know_id=True).answer.member_id for _ in range(2)]
    replies = [rig.join(first), rig.join(ids[0])]
    assert all(reply.is_waiting for reply in replies)

    assert GROUP_MAX_SIZE_REACHED == rig.join(ids[1]).error_code

    assert [0, 0] == [reply.error_code for reply in replies]
    assert not rig.group.members.pending


def grown(members_max: int) -> tuple[GroupRig, list[str]]:
    """A group with three members whose broker was started anew with a lower limit."""
    rig = GroupRig(members_max=3)
    ids = rig.stable(3)
    rig.restart(members_max=members_max)
    return rig, ids


def test_a_group_that_has_become_too_large_has_all_join_again() -> None:
    """So that those who will be out can commit what they have read."""
    rig, ids = grown(2)

    assert GroupState.PREPARING is rig.state
    assert [error_codes.REBALANCE_IN_PROGRESS] * 3 == [rig.heartbeat(id) for id in ids]
    assert [error_codes.NONE] * 3 == [rig.commit(id) for id in ids]


def test_a_group_that_is_just_full_goes_on() -> None:
    rig, ids = grown(3)

    assert [error_codes.NONE] * 3 == [rig.heartbeat(id) for id in ids]


def test_those_who_come_last_are_out() -> None:
    rig, ids = grown(2)
    replies = [rig.join(ids[0]), rig.join(ids[2])]

    assert GROUP_MAX_SIZE_REACHED == rig.join(ids[1]).error_code

    assert [0, 0] == [reply.error_code for reply in replies]
    assert [ids[0], ids[2]] == rig.members
    assert error_codes.UNKNOWN_MEMBER_ID == rig.heartbeat(ids[1])


def test_who_has_joined_may_ask_again_although_there_is_no_room() -> None:
    rig, ids = grown(1)
    rig.join(ids[0])

    assert rig.join(ids[0]).is_waiting
    assert GROUP_MAX_SIZE_REACHED == rig.join(ids[1]).error_code


def test_a_static_member_that_is_back_finds_no_room_in_a_full_group(rig: GroupRig) -> None:
    """As in Kafka: whoever has no id counts as new."""
    rig.stable()

    assert GROUP_MAX_SIZE_REACHED == rig.join(instance="i").error_code
