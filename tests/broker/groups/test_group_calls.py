"""Every call in every state: who may make it, and the error code of who may not."""

from __future__ import annotations

import pytest

from support.groups import GroupRig
from trionet.broker.groups._group_state import GroupState
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

CALLS = ["sync", "heartbeat", "commit"]
WITH_MEMBERS = ["preparing", "completing", "stable"]


@pytest.fixture
def rig() -> GroupRig:
    return GroupRig()


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


# Calls that ask twice.


def test_a_second_request_for_an_assignment_gets_the_same_response(rig: GroupRig) -> None:
    leader, follower = rig.complete()
    first = rig.sync(follower)

    second = rig.sync(follower)

    assert error_codes.REBALANCE_IN_PROGRESS == first.error_code
    rig.sync(leader, {follower: b"x"})
    assert b"x" == second.answer.assignment
