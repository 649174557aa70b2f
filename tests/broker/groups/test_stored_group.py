"""What is stored of a group, in which bytes, and when; and a group after a restart."""

from __future__ import annotations

from operator import attrgetter

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.groups import GroupRig
from trionet.broker.groups._group import GroupState
from trionet.broker.groups._stored_group import (
    CHUNK_BYTES,
    StoredGroup,
    StoredMember,
    decode_members,
    encode_members,
    record_bytes,
    restored,
    snapshot,
)
from trionet.protocol import error_codes


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

    assert (2, "consumer", None, None, ()) == attrgetter(
        "generation", "protocol_type", "protocol_name", "leader_id", "members"
    )(stored)


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
    assert 1 == rig.join(follower).answer.generation_id


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
    assert 1 == rig.join(follower).answer.generation_id


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


@pytest.fixture
def slow() -> GroupRig:
    """A group whose writes end when the test says so."""
    return GroupRig(stores=False)


def test_assignments_are_handed_out_when_they_are_stored(slow: GroupRig) -> None:
    leader, follower = slow.complete()
    waiting = [slow.sync(follower), slow.sync(leader, {leader: b"x", follower: b"y"})]

    assert {leader: b"x", follower: b"y"} == slow.group.proposed
    assert all(reply.is_waiting for reply in waiting)
    slow.store()

    assert (GroupState.STABLE, 1) == (slow.state, slow.generation)
    assert [b"y", b"x"] == [reply.answer.assignment for reply in waiting]


def test_the_first_assignments_of_a_generation_count(slow: GroupRig) -> None:
    leader, _ = slow.complete()
    first = slow.sync(leader, {leader: b"first"})

    second = slow.sync(leader, {leader: b"second"})
    slow.store()

    assert error_codes.REBALANCE_IN_PROGRESS == first.error_code
    assert b"first" == second.answer.assignment
    assert [] == slow.begun


def test_the_group_begins_anew_if_assignments_cannot_be_stored(slow: GroupRig) -> None:
    leader, follower = slow.complete()
    waiting = [slow.sync(follower), slow.sync(leader, {leader: b"x"})]

    slow.store(error_codes.COORDINATOR_NOT_AVAILABLE)

    assert [error_codes.COORDINATOR_NOT_AVAILABLE] * 2 == [each.error_code for each in waiting]
    assert GroupState.PREPARING is slow.state
    slow.join(leader)
    slow.join(follower)
    assert 2 == slow.generation


def test_what_is_stored_too_late_is_not_handed_out(slow: GroupRig) -> None:
    """Another rebalance has begun, and even been completed."""
    leader, follower = slow.complete()
    slow.sync(leader, {leader: b"old"})
    slow.join(follower, protocols={"range": b"new"})
    slow.join(leader)
    assert (GroupState.COMPLETING, 2) == (slow.state, slow.generation)
    waiting = slow.sync(leader, {leader: b"new"})

    slow.store()
    assert waiting.is_waiting
    assert GroupState.COMPLETING is slow.state
    slow.store()

    assert b"new" == waiting.answer.assignment


def test_a_failure_that_comes_too_late_changes_nothing(slow: GroupRig) -> None:
    leader, follower = slow.complete()
    slow.sync(leader)
    slow.join(follower, protocols={"range": b"new"})

    slow.store(error_codes.COORDINATOR_NOT_AVAILABLE)

    assert (GroupState.PREPARING, 1) == (slow.state, slow.generation)
    assert slow.join(leader).answer.generation_id == 2


def test_who_joins_while_assignments_are_stored_begins_a_rebalance(slow: GroupRig) -> None:
    leader, _follower = slow.complete()
    waiting = slow.sync(leader)

    slow.join()

    assert (GroupState.PREPARING, None) == (slow.state, slow.group.proposed)
    assert error_codes.REBALANCE_IN_PROGRESS == waiting.error_code


def test_that_a_group_is_empty_is_stored(slow: GroupRig) -> None:
    ids = slow.complete()
    assert slow.group.is_stored

    slow.leave(*ids)

    assert 1 == len(slow.begun)
    slow.store(error_codes.COORDINATOR_NOT_AVAILABLE)
    assert GroupState.EMPTY is slow.state


def test_nothing_is_stored_of_a_rebalance_that_goes_on(slow: GroupRig) -> None:
    leader, follower = slow.complete()
    slow.join(leader, protocols={"range": b"new"})
    slow.heartbeat(follower)
    slow.join(follower)
    slow.join(must_know_id=True)

    assert (2, []) == (slow.generation, slow.begun)


texts = st.text(max_size=20)
MEMBERS = st.builds(
    StoredMember,
    id=texts,
    instance_id=st.none() | texts,
    client_id=texts,
    client_host=texts,
    session_seconds=st.floats(0, 1e6),
    rebalance_seconds=st.floats(0, 1e6),
    metadata=st.binary(max_size=100) | st.just(bytes(100_000)),
    assignment=st.binary(max_size=100) | st.just(b"\n" * CHUNK_BYTES),
)


@given(st.lists(MEMBERS, max_size=5).map(tuple))
def test_members_come_out_of_pieces_as_they_were(members: tuple[StoredMember, ...]) -> None:
    written = list(encode_members(members))

    assert members == decode_members(b"".join(written))
    assert all(len(piece) == CHUNK_BYTES for piece in written[:-1])
    assert all(0 < len(piece) <= CHUNK_BYTES for piece in written)


@pytest.mark.parametrize("size", [-1, -250, 1_000_000])
def test_members_of_another_size_than_there_is_are_refused(size: int) -> None:
    """A negative one would lead back to the same member for ever."""
    member = StoredMember("id", None, "c", "/h", 1, 1, b"", b"")
    [piece] = encode_members([member])

    with pytest.raises(ValueError, match="remain"):
        decode_members(piece.replace(b'"metadata": 0', b'"metadata": %d' % size))


def test_a_group_has_the_size_of_kafkas_record() -> None:
    empty = StoredGroup("g", 1, None, None, None, 0, ())
    member = StoredMember("id", None, "c", "/h", 1, 1, bytes(1000), bytes(2000))

    assert record_bytes(empty) < 150
    one = record_bytes(attrs.evolve(empty, members=(member,)))
    assert 3000 < one - record_bytes(empty) < 3050
    assert 2 * (one - record_bytes(empty)) == (
        record_bytes(attrs.evolve(empty, members=(member, member))) - record_bytes(empty)
    )
