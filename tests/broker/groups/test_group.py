"""The life of a group: from one generation to the next, and what its members learn."""

from __future__ import annotations

import pytest

from support.groups import GroupRig
from trionet.broker.groups._group_calls import JoinGroupResult, MemberMetadata, SyncGroupResult
from trionet.broker.groups._group_state import GroupState
from trionet.protocol import error_codes

EMPTY, PREPARING, COMPLETING, STABLE = (
    GroupState.EMPTY,
    GroupState.PREPARING,
    GroupState.COMPLETING,
    GroupState.STABLE,
)


@pytest.fixture
def rig() -> GroupRig:
    return GroupRig()


def test_a_new_group_is_empty_and_wants_nothing(rig: GroupRig) -> None:
    group = rig.group

    assert (EMPTY, 0, None, None) == (
        group.state,
        group.generation,
        group.protocol_type,
        group.protocol_name,
    )
    assert (float("inf"), True, []) == (group.timeouts.wake_at, group.is_stored, group.outbox)
    assert [] == rig.members


def test_who_joins_first_waits_for_others_and_then_leads(rig: GroupRig) -> None:
    first = rig.join(protocols={"range": b"of first"})
    second = rig.join(protocols={"range": b"of second"})
    assert PREPARING is rig.state
    assert first.is_waiting
    assert second.is_waiting

    rig.gather()

    assert COMPLETING is rig.state
    assert first.answer == JoinGroupResult(
        "c-1",
        generation=1,
        protocol_type="consumer",
        protocol_name="range",
        leader_id="c-1",
        members=(
            MemberMetadata("c-1", None, b"of first"),
            MemberMetadata("c-2", None, b"of second"),
        ),
    )
    assert second.answer == JoinGroupResult(
        "c-2", generation=1, protocol_type="consumer", protocol_name="range", leader_id="c-1"
    )


def test_members_wait_for_their_assignments_until_the_leader_gives_them(rig: GroupRig) -> None:
    leader, follower = rig.complete()

    waiting = rig.sync(follower)
    assert waiting.is_waiting
    own = rig.sync(leader, {leader: b"mine", follower: b"yours"})

    assert STABLE is rig.state
    assert SyncGroupResult(0, "consumer", "range", b"mine") == own.answer
    assert SyncGroupResult(0, "consumer", "range", b"yours") == waiting.answer


def test_a_sync_when_the_assignments_are_there_gets_them_at_once(rig: GroupRig) -> None:
    leader, follower = rig.complete()
    rig.sync(leader, {follower: b"yours"})

    assert b"yours" == rig.sync(follower).answer.assignment
    assert b"yours" == rig.sync(follower).answer.assignment


def test_a_member_that_the_leader_forgets_is_assigned_nothing(rig: GroupRig) -> None:
    leader, follower = rig.complete()

    own = rig.sync(leader, {"a stranger": b"x"})

    assert [b"", b""] == [own.answer.assignment, rig.sync(follower).answer.assignment]


def test_a_new_member_makes_all_members_join_again(rig: GroupRig) -> None:
    leader, follower = rig.stable()

    third = rig.join()

    assert PREPARING is rig.state
    for id in (leader, follower):
        assert error_codes.REBALANCE_IN_PROGRESS == rig.heartbeat(id)
        assert error_codes.REBALANCE_IN_PROGRESS == rig.sync(id).error_code
    again = [rig.join(follower), rig.join(leader)]
    assert COMPLETING is rig.state
    assert {2} == {reply.answer.generation for reply in [third, *again]}
    assert leader == third.answer.leader_id
    assert [leader, follower, "c-3"] == [member.id for member in again[1].answer.members]


def test_a_generation_ends_as_soon_as_the_last_one_has_joined_again(rig: GroupRig) -> None:
    ids = rig.stable(5)
    rig.join(ids[0])

    replies = [rig.join(id) for id in ids[1:4]]
    assert PREPARING is rig.state
    assert all(reply.is_waiting for reply in replies)
    rig.join(ids[4])

    assert COMPLETING is rig.state
    assert [2, 2, 2] == [reply.answer.generation for reply in replies]


def test_the_leader_leads_on_in_the_next_generation(rig: GroupRig) -> None:
    first, second, third = rig.stable(3)

    rig.gather(rig.join(first), rig.join(third), rig.join(second))

    assert first == rig.leader


def test_another_one_leads_if_the_leader_does_not_join_again(rig: GroupRig) -> None:
    first, second, third = rig.stable(3)
    new = rig.join()
    rig.join(third)
    rig.join(second)

    rig.gather(new)

    assert first not in rig.members
    assert second == rig.leader


def test_a_leader_by_seniority_that_is_not_back_does_not_lead(rig: GroupRig) -> None:
    """The oldest that is left would, but it must have joined."""
    [late] = rig.complete(1, instance="late", session=1000)
    rig.stabilize(late)

    [new] = rig.gather(rig.join())

    assert [late, new] == rig.members
    assert new == rig.leader


def test_a_group_that_all_have_left_is_empty_and_keeps_its_type(rig: GroupRig) -> None:
    ids = rig.stable()

    rig.leave(*ids)

    assert (EMPTY, 2, "consumer", None) == (
        rig.state,
        rig.generation,
        rig.group.protocol_type,
        rig.group.protocol_name,
    )


def test_generations_go_on_after_a_group_was_empty(rig: GroupRig) -> None:
    rig.leave(*rig.stable())

    [id] = rig.complete(1)

    assert (3, [id], id) == (rig.generation, rig.members, rig.leader)


def test_an_empty_group_may_change_its_type(rig: GroupRig) -> None:
    rig.leave(*rig.stable())

    rig.complete(1, protocol_type="connect", protocols={"sessioned": b""})

    assert ("connect", "sessioned") == (rig.group.protocol_type, rig.group.protocol_name)


def test_the_generation_after_the_highest_one_is_1(rig: GroupRig) -> None:
    """The field has 32 bits, and -1 is the generation of who is in none."""
    rig.group.generation = 2**31 - 1

    rig.complete(1)

    assert 1 == rig.generation


def test_assignments_of_the_last_generation_are_not_those_of_the_next(rig: GroupRig) -> None:
    leader, follower = rig.stable()
    rig.gather(rig.join(leader), rig.join(follower))

    waiting = rig.sync(follower)

    assert waiting.is_waiting
    rig.sync(leader)
    assert b"" == waiting.answer.assignment


def test_assignments_are_kept_until_others_are_made(rig: GroupRig) -> None:
    """They are what tools show."""
    leader, follower = rig.stable()
    rig.join(leader)
    assert b"of c-2" == rig.member(follower).assignment
    rig.join(follower)
    assert b"of c-2" == rig.member(follower).assignment

    rig.join(leader, protocols={"range": b"new"})

    assert b"" == rig.member(follower).assignment


def test_it_is_noted_when_a_group_came_into_its_state(rig: GroupRig) -> None:
    rig.pass_time(5)
    reply = rig.join()
    began = rig.now
    rig.pass_time(1)
    assert began == rig.group.changed_at

    [id] = rig.gather(reply)
    rig.pass_time(1)
    rig.heartbeat(id)
    rig.sync(id)
    assert rig.now == rig.group.changed_at
    rig.pass_time(1)
    rig.leave(id)

    assert rig.now == rig.group.changed_at
