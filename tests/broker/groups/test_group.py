"""The life of a group: its generations, who may call when, and members that leave."""

from __future__ import annotations

from operator import attrgetter

import pytest

from support.groups import SESSION, GroupRig
from trionet.broker.groups._group import GroupState
from trionet.protocol import error_codes
from trionet.protocol.error_codes import (
    COORDINATOR_NOT_AVAILABLE,
    FENCED_INSTANCE_ID,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from trionet.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from trionet.protocol.messages.sync_group import SyncGroupResponse

EMPTY, PREPARING, COMPLETING, STABLE, _DEAD = GroupState


def test_a_new_group_is_empty_and_wants_nothing(rig: GroupRig) -> None:
    group = rig.group

    assert (EMPTY, 0, None, None) == attrgetter(
        "state", "generation", "protocol_type", "protocol_name"
    )(group)
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
    assert first.answer == JoinGroupResponse(
        member_id="c-1",
        generation_id=1,
        protocol_type="consumer",
        protocol_name="range",
        leader="c-1",
        members=[
            JoinGroupResponseMember(member_id="c-1", group_instance_id=None, metadata=b"of first"),
            JoinGroupResponseMember(member_id="c-2", group_instance_id=None, metadata=b"of second"),
        ],
    )
    assert second.answer == JoinGroupResponse(
        member_id="c-2",
        generation_id=1,
        protocol_type="consumer",
        protocol_name="range",
        leader="c-1",
    )


def test_members_wait_for_their_assignments_until_the_leader_gives_them(rig: GroupRig) -> None:
    leader, follower = rig.complete()

    waiting = rig.sync(follower)
    assert waiting.is_waiting
    own = rig.sync(leader, {leader: b"mine", follower: b"yours"})

    assert STABLE is rig.state
    assert (
        SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=b"mine")
        == own.answer
    )
    assert (
        SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=b"yours")
        == waiting.answer
    )


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
    assert {2} == {reply.answer.generation_id for reply in [third, *again]}
    assert leader == third.answer.leader
    assert [leader, follower, "c-3"] == [member.member_id for member in again[1].answer.members]


def test_a_generation_ends_as_soon_as_the_last_one_has_joined_again(rig: GroupRig) -> None:
    ids = rig.stable(5)
    rig.join(ids[0])

    replies = [rig.join(id) for id in ids[1:4]]
    assert PREPARING is rig.state
    assert all(reply.is_waiting for reply in replies)
    rig.join(ids[4])

    assert COMPLETING is rig.state
    assert [2, 2, 2] == [reply.answer.generation_id for reply in replies]


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


CALLS = ["sync", "heartbeat", "commit"]
WITH_MEMBERS = ["preparing", "completing", "stable"]


def lead_to(rig: GroupRig, state: str) -> tuple[str, str]:
    """Bring the group to a state; the ids of a static member "i" that leads, and of another one."""
    leader, follower = rig.gather(rig.join(instance="i"), rig.join())
    if state in ("stable", "preparing"):
        rig.stabilize(leader, follower)
    if state == "preparing":
        rig.join()
    if state == "empty":
        rig.leave(leader, follower)
    if state == "dead":
        rig.group.state = GroupState.DEAD
    return leader, follower


def call(
    rig: GroupRig, name: str, id: str, generation: int | None = None, instance: str | None = None
) -> int | None:
    """The error code; None if it waits."""
    match name:
        case "sync":
            reply = rig.sync(id, generation=generation, instance=instance)
            return None if reply.is_waiting else reply.error_code
        case "heartbeat":
            return rig.heartbeat(id, generation, instance)
        case _:
            return rig.commit(id, generation, instance)


@pytest.mark.parametrize(
    ("state", "name", "expected"),
    [
        ("preparing", "sync", REBALANCE_IN_PROGRESS),
        ("preparing", "heartbeat", REBALANCE_IN_PROGRESS),
        # What it has read so far is its own until it joins again.
        ("preparing", "commit", NONE),
        ("completing", "sync", None),
        ("completing", "heartbeat", NONE),
        # Its partitions may be another's by now, and it cannot know.
        ("completing", "commit", REBALANCE_IN_PROGRESS),
        ("stable", "sync", NONE),
        ("stable", "heartbeat", NONE),
        ("stable", "commit", NONE),
        ("empty", "sync", UNKNOWN_MEMBER_ID),
        ("empty", "heartbeat", UNKNOWN_MEMBER_ID),
        ("empty", "commit", UNKNOWN_MEMBER_ID),
        ("dead", "sync", COORDINATOR_NOT_AVAILABLE),
        ("dead", "heartbeat", COORDINATOR_NOT_AVAILABLE),
        ("dead", "commit", COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_a_member_of_the_generation(
    rig: GroupRig, state: str, name: str, expected: int | None
) -> None:
    _leader, follower = lead_to(rig, state)

    assert expected == call(rig, name, follower)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("state", WITH_MEMBERS)
@pytest.mark.parametrize("off", [-2, -1, 1])
def test_a_member_of_another_generation(rig: GroupRig, state: str, name: str, off: int) -> None:
    _leader, follower = lead_to(rig, state)

    assert ILLEGAL_GENERATION == call(rig, name, follower, rig.generation + off)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("state", [*WITH_MEMBERS, "empty"])
@pytest.mark.parametrize("id", ["", "nobody"])
def test_who_is_no_member(rig: GroupRig, state: str, name: str, id: str) -> None:
    lead_to(rig, state)

    assert UNKNOWN_MEMBER_ID == call(rig, name, id)
    assert UNKNOWN_MEMBER_ID == call(rig, name, id, instance="another")


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("state", WITH_MEMBERS)
def test_a_static_member_is_known_by_both_its_ids(rig: GroupRig, state: str, name: str) -> None:
    leader, follower = lead_to(rig, state)

    assert FENCED_INSTANCE_ID == call(rig, name, "an older id", instance="i")
    assert FENCED_INSTANCE_ID == call(rig, name, follower, instance="i")
    assert FENCED_INSTANCE_ID == call(rig, name, "", instance="i")
    assert call(rig, name, leader, instance="i") in (None, NONE, REBALANCE_IN_PROGRESS)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("state", WITH_MEMBERS)
def test_a_stranger_is_rejected_whatever_generation_it_names(
    rig: GroupRig, state: str, name: str
) -> None:
    lead_to(rig, state)

    assert UNKNOWN_MEMBER_ID == call(rig, name, "nobody", 77)
    assert FENCED_INSTANCE_ID == call(rig, name, "nobody", 77, "i")


# The protocol that a SyncGroup names (KIP-559).


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        (("consumer", "range"), NONE),
        ((None, None), NONE),
        (("connect", "range"), INCONSISTENT_GROUP_PROTOCOL),
        (("consumer", "sticky"), INCONSISTENT_GROUP_PROTOCOL),
        (("", ""), INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_who_believes_in_another_protocol_gets_no_assignment(
    rig: GroupRig, protocol: tuple[str | None, str | None], expected: int
) -> None:
    _leader, follower = rig.stable()

    assert expected == rig.sync(follower, protocol=protocol).error_code


def test_a_leader_that_believes_in_another_protocol_assigns_nothing(rig: GroupRig) -> None:
    leader, _follower = rig.complete()

    reply = rig.sync(leader, {leader: b"x"}, protocol=("consumer", "sticky"))

    assert INCONSISTENT_GROUP_PROTOCOL == reply.error_code
    assert GroupState.COMPLETING is rig.state


def test_before_there_is_a_protocol_none_is_wrong(rig: GroupRig) -> None:
    rig.join()
    [id] = rig.members

    reply = rig.sync(id, protocol=("consumer", "range"))

    assert REBALANCE_IN_PROGRESS == reply.error_code


# Commits of who is in no group.


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("empty", NONE),
        ("preparing", UNKNOWN_MEMBER_ID),
        ("completing", UNKNOWN_MEMBER_ID),
        ("stable", UNKNOWN_MEMBER_ID),
        ("dead", COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_without_a_generation_one_may_commit_while_there_are_no_members(
    rig: GroupRig, state: str, expected: int
) -> None:
    lead_to(rig, state)

    assert expected == rig.commit("", -1)


def test_so_may_who_has_an_id_from_elsewhere(rig: GroupRig) -> None:
    """A consumer of which all partitions were assigned by hand, after it was a member."""
    assert NONE == rig.commit("an older id", -1)
    assert NONE == rig.commit("", -1, "i")


# Commits in transactions.


@pytest.mark.parametrize(
    ("state", "member", "expected"),
    [
        # A member of the generation, also during a rebalance: its generation is not over.
        ("preparing", "follower", NONE),
        ("completing", "follower", NONE),
        ("stable", "follower", NONE),
        ("empty", "follower", UNKNOWN_MEMBER_ID),
        ("dead", "follower", COORDINATOR_NOT_AVAILABLE),
        # A caller that names no member, as all do before version 3.
        ("preparing", "nobody", NONE),
        ("completing", "nobody", NONE),
        ("stable", "nobody", NONE),
        ("empty", "nobody", NONE),
        ("dead", "nobody", COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_a_commit_in_a_transaction_does_not_depend_on_the_rebalance(
    rig: GroupRig, state: str, member: str, expected: int
) -> None:
    _leader, follower = lead_to(rig, state)

    if member == "follower":
        assert expected == rig.commit_in_transaction(follower)
    else:
        assert expected == rig.commit_in_transaction("", -1)


def test_a_commit_in_a_transaction_is_fenced_by_what_the_caller_names(rig: GroupRig) -> None:
    """KIP-447: a consumer whose partitions are another's must not commit for them."""
    leader, follower = lead_to(rig, "stable")
    generation = rig.group.generation

    assert NONE == rig.commit_in_transaction(leader, generation, "i")
    assert ILLEGAL_GENERATION == rig.commit_in_transaction(follower, generation - 1)
    assert ILLEGAL_GENERATION == rig.commit_in_transaction(follower, -1)
    assert UNKNOWN_MEMBER_ID == rig.commit_in_transaction("an older id", generation)
    assert UNKNOWN_MEMBER_ID == rig.commit_in_transaction("", generation)
    assert UNKNOWN_MEMBER_ID == rig.commit_in_transaction(follower, generation, "unknown")
    assert FENCED_INSTANCE_ID == rig.commit_in_transaction(follower, generation, "i")
    assert FENCED_INSTANCE_ID == rig.commit_in_transaction("", -1, "i")


def test_a_commit_in_a_transaction_is_no_heartbeat(rig: GroupRig) -> None:
    _leader, follower = lead_to(rig, "stable")
    expires_at = rig.group.members[follower].expires_at
    rig.now += 1

    rig.commit_in_transaction(follower)

    assert expires_at == rig.group.members[follower].expires_at


def test_to_a_group_without_members_any_id_may_commit_in_a_transaction(rig: GroupRig) -> None:
    assert NONE == rig.commit_in_transaction("an older id", -1, "i")
    assert UNKNOWN_MEMBER_ID == rig.commit_in_transaction("an older id", 1)


# Calls that ask twice.


def test_a_second_request_for_an_assignment_gets_the_same_response(rig: GroupRig) -> None:
    leader, follower = rig.complete()
    first = rig.sync(follower)

    second = rig.sync(follower)

    assert error_codes.REBALANCE_IN_PROGRESS == first.error_code
    rig.sync(leader, {follower: b"x"})
    assert b"x" == second.answer.assignment


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
    assert [2, 2] == [reply.answer.generation_id for reply in replies]


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

    assert (2, [first]) == (waiting.answer.generation_id, rig.members)
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

    assert [2, 2, 2] == [reply.answer.generation_id for reply in replies]


def test_it_waits_no_longer_than_the_id_is_good(rig: GroupRig) -> None:
    leader, follower = rig.stable(2)
    ask(rig, session=6.0)
    replies = [rig.join(leader), rig.join(follower)]

    rig.pass_time(5.9)
    assert GroupState.PREPARING is rig.state
    rig.pass_time(0.1)

    assert [2, 2] == [reply.answer.generation_id for reply in replies]


def test_it_waits_no_longer_than_a_rebalance_takes(rig: GroupRig) -> None:
    leader, follower = rig.stable(2, rebalance=20.0, session=100.0)
    id = ask(rig, session=100.0)
    replies = [rig.join(leader, rebalance=20.0), rig.join(follower, rebalance=20.0)]

    rig.pass_time(20)

    assert [2, 2] == [reply.answer.generation_id for reply in replies]
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
