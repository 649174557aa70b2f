"""What outlives the broker: a group is as it was when it was stored, and waits for its members."""

from __future__ import annotations

import pytest

from support.groups import GroupRig
from trionet.broker.groups._group_state import GroupState
from trionet.broker.groups._stored_group import StoredGroup, StoredMember, restored, snapshot
from trionet.protocol import error_codes


@pytest.fixture
def rig() -> GroupRig:
    return GroupRig()


def test_a_group_is_stored_with_what_is_proposed(rig: GroupRig) -> None:
    protocols = {"range": b"topics", "sticky": b"more"}
    leader, follower = rig.gather(
        rig.join(instance="i", protocols=protocols), rig.join(protocols=protocols, rebalance=7.0)
    )
    rig.stores = False
    rig.sync(leader, {leader: b"x"})

    assert snapshot(rig.group, 1234) == StoredGroup(
        "g",
        generation=1,
        protocol_type="consumer",
        protocol_name="range",
        leader_id=leader,
        changed_at_ms=1234,
        members=(
            StoredMember(leader, "i", "c", "/127.0.0.1", 10.0, 60.0, b"topics", b"x"),
            StoredMember(follower, None, "c", "/127.0.0.1", 10.0, 7.0, b"topics", b""),
        ),
    )


def test_an_empty_group_is_stored_without_members(rig: GroupRig) -> None:
    rig.leave(*rig.stable())

    stored = snapshot(rig.group, 0)

    assert (2, "consumer", None, None, ()) == (
        stored.generation,
        stored.protocol_type,
        stored.protocol_name,
        stored.leader_id,
        stored.members,
    )


@pytest.mark.parametrize("ends", ["stable", "empty"])
def test_what_is_restored_is_what_was_stored(rig: GroupRig, ends: str) -> None:
    ids = rig.gather(rig.join(instance="i"), rig.join())
    rig.stabilize(*ids)
    if ends == "empty":
        rig.leave(*ids)
    before = snapshot(rig.group, 5)

    assert before == snapshot(restored(before, rig.settings, 77.0), 5)


def test_members_go_on_as_if_nothing_had_happened(rig: GroupRig) -> None:
    leader, follower = rig.gather(rig.join(instance="i"), rig.join())
    rig.stabilize(leader, follower)

    rig.restart()

    assert (GroupState.STABLE, 1, leader) == (rig.state, rig.generation, rig.leader)
    assert [0, 0] == [rig.heartbeat(leader, 1, "i"), rig.commit(follower, 1)]
    assert b"of c-2" == rig.sync(follower, protocol=("consumer", "range")).answer.assignment
    assert 1 == rig.join(follower).answer.generation


def test_they_have_their_session_to_be_heard_of(rig: GroupRig) -> None:
    leader, follower = rig.stable(2, session=10.0, rebalance=1000.0)
    rig.restart()
    assert rig.now + 10 == rig.group.timeouts.wake_at

    rig.pass_time(9.9)
    rig.heartbeat(leader)
    rig.pass_time(0.1)

    assert (GroupState.PREPARING, [leader]) == (rig.state, rig.members)
    assert error_codes.UNKNOWN_MEMBER_ID == rig.heartbeat(follower)


def test_a_member_that_joins_again_and_waits_is_one_that_is_known(rig: GroupRig) -> None:
    slow, quick = rig.stable(2, rebalance=3600.0)
    rig.restart()
    waiting = rig.join(quick, protocols={"range": b"new"}, rebalance=3600.0)

    for _ in range(100):
        rig.heartbeat(slow)
        rig.pass_time(9)

    assert waiting.is_waiting


def test_no_member_has_to_ask_for_its_assignment_again(rig: GroupRig) -> None:
    ids = rig.stable(2, session=1000.0, rebalance=20.0)
    rig.restart()

    rig.pass_time(50)

    assert (GroupState.STABLE, ids) == (rig.state, rig.members)


def test_a_generation_that_was_not_stored_is_forgotten(rig: GroupRig) -> None:
    leader, follower = rig.stable()
    rig.gather(rig.join(leader), rig.join(follower))
    assert 2 == rig.generation

    rig.restart()

    assert 1 == rig.generation
    assert error_codes.ILLEGAL_GENERATION == rig.sync(follower, generation=2).error_code
    assert 1 == rig.join(follower).answer.generation


def test_a_static_member_finds_its_place_after_it_and_the_broker_started_anew(
    rig: GroupRig,
) -> None:
    leader, _ = rig.gather(rig.join(instance="i"), rig.join(instance="j"))
    rig.stabilize(*rig.members)
    rig.restart()

    reply = rig.join(instance="j")
    rig.restart()

    assert (GroupState.STABLE, [leader, "j-3"]) == (rig.state, rig.members)
    assert 0 == rig.heartbeat(reply.answer.member_id, 1, "j")


def test_only_the_protocol_that_was_chosen_is_known_of_each_member(rig: GroupRig) -> None:
    both = {"range": b"", "sticky": b""}
    rig.stable(2, protocols=both)

    rig.restart()

    reply = rig.join(protocols={"sticky": b""})
    assert error_codes.INCONSISTENT_GROUP_PROTOCOL == reply.error_code
