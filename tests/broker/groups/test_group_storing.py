"""What a group has stored before it responds."""

from __future__ import annotations

import pytest

from support.groups import GroupRig
from trionet.broker.groups._group_state import GroupState
from trionet.protocol import error_codes


@pytest.fixture
def rig() -> GroupRig:
    """A group whose writes end when the test says so."""
    return GroupRig(stores=False)


def test_assignments_are_handed_out_when_they_are_stored(rig: GroupRig) -> None:
    leader, follower = rig.complete()
    waiting = [rig.sync(follower), rig.sync(leader, {leader: b"x", follower: b"y"})]

    assert {leader: b"x", follower: b"y"} == rig.group.proposed
    assert all(reply.is_waiting for reply in waiting)
    rig.store()

    assert (GroupState.STABLE, 1) == (rig.state, rig.generation)
    assert [b"y", b"x"] == [reply.answer.assignment for reply in waiting]


def test_the_first_assignments_of_a_generation_count(rig: GroupRig) -> None:
    leader, _ = rig.complete()
    first = rig.sync(leader, {leader: b"first"})

    second = rig.sync(leader, {leader: b"second"})
    rig.store()

    assert error_codes.REBALANCE_IN_PROGRESS == first.error_code
    assert b"first" == second.answer.assignment
    assert [] == rig.begun


def test_the_group_begins_anew_if_assignments_cannot_be_stored(rig: GroupRig) -> None:
    leader, follower = rig.complete()
    waiting = [rig.sync(follower), rig.sync(leader, {leader: b"x"})]

    rig.store(error_codes.COORDINATOR_NOT_AVAILABLE)

    assert [error_codes.COORDINATOR_NOT_AVAILABLE] * 2 == [each.error_code for each in waiting]
    assert GroupState.PREPARING is rig.state
    rig.join(leader)
    rig.join(follower)
    assert 2 == rig.generation


def test_what_is_stored_too_late_is_not_handed_out(rig: GroupRig) -> None:
    """Another rebalance has begun, and even been completed."""
    leader, follower = rig.complete()
    rig.sync(leader, {leader: b"old"})
    rig.join(follower, protocols={"range": b"new"})
    rig.join(leader)
    assert (GroupState.COMPLETING, 2) == (rig.state, rig.generation)
    waiting = rig.sync(leader, {leader: b"new"})

    rig.store()
    assert waiting.is_waiting
    assert GroupState.COMPLETING is rig.state
    rig.store()

    assert b"new" == waiting.answer.assignment


def test_a_failure_that_comes_too_late_changes_nothing(rig: GroupRig) -> None:
    leader, follower = rig.complete()
    rig.sync(leader)
    rig.join(follower, protocols={"range": b"new"})

    rig.store(error_codes.COORDINATOR_NOT_AVAILABLE)

    assert (GroupState.PREPARING, 1) == (rig.state, rig.generation)
    assert rig.join(leader).answer.generation == 2


def test_who_joins_while_assignments_are_stored_begins_a_rebalance(rig: GroupRig) -> None:
    leader, _follower = rig.complete()
    waiting = rig.sync(leader)

    rig.join()

    assert (GroupState.PREPARING, None) == (rig.state, rig.group.proposed)
    assert error_codes.REBALANCE_IN_PROGRESS == waiting.error_code


def test_that_a_group_is_empty_is_stored(rig: GroupRig) -> None:
    ids = rig.complete()
    assert rig.group.is_stored

    rig.leave(*ids)

    assert 1 == len(rig.begun)
    rig.store(error_codes.COORDINATOR_NOT_AVAILABLE)
    assert GroupState.EMPTY is rig.state


def test_nothing_is_stored_of_a_rebalance_that_goes_on(rig: GroupRig) -> None:
    leader, follower = rig.complete()
    rig.join(leader, protocols={"range": b"new"})
    rig.heartbeat(follower)
    rig.join(follower)
    rig.join(must_know_id=True)

    assert (2, []) == (rig.generation, rig.begun)
