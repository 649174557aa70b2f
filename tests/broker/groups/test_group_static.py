"""Static members: they keep their place while they start anew (KIP-345, KIP-814)."""

from __future__ import annotations

from operator import attrgetter

import pytest

from support.groups import RANGE, GroupRig
from trionet.broker.groups._group import GroupState
from trionet.protocol import error_codes
from trionet.protocol.error_codes import FENCED_INSTANCE_ID
from trionet.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember

_EMPTY, PREPARING, COMPLETING, STABLE, _DEAD = GroupState
OTHER = {"sticky": b"", "range": b"new"}


def gathered(rig: GroupRig) -> tuple[str, str]:
    """A static member "i" that leads, and a static member "j"."""
    leader, follower = rig.gather(rig.join(instance="i"), rig.join(instance="j"))
    return leader, follower


def settled(rig: GroupRig) -> tuple[str, str]:
    leader, follower = gathered(rig)
    rig.stabilize(leader, follower)
    return leader, follower


def test_its_id_begins_with_what_it_is_called(rig: GroupRig) -> None:
    assert ("i-1", "j-2") == gathered(rig)


def test_the_leader_learns_which_members_are_static(rig: GroupRig) -> None:
    reply = rig.join(instance="i")
    rig.gather(rig.join(), reply)

    assert [("i-1", "i"), ("c-2", None)] == [
        (member.member_id, member.group_instance_id) for member in reply.answer.members
    ]


# It starts anew while all is settled.


def test_a_follower_that_starts_anew_disturbs_no_other(rig: GroupRig) -> None:
    leader, _follower = settled(rig)

    reply = rig.join(instance="j")

    assert (STABLE, 1, [leader, "j-3"]) == (rig.state, rig.generation, rig.members)
    assert reply.answer == JoinGroupResponse(
        member_id="j-3",
        generation_id=1,
        protocol_type="consumer",
        protocol_name="range",
        leader=leader,
    )
    assert b"of j-2" == rig.sync("j-3", instance="j").answer.assignment


def test_its_old_id_is_fenced(rig: GroupRig) -> None:
    _leader, follower = settled(rig)
    rig.join(instance="j")

    assert FENCED_INSTANCE_ID == rig.heartbeat(follower, instance="j")
    assert FENCED_INSTANCE_ID == rig.commit(follower, instance="j")
    assert FENCED_INSTANCE_ID == rig.sync(follower, instance="j").error_code
    assert FENCED_INSTANCE_ID == rig.join(follower, instance="j").error_code
    assert [FENCED_INSTANCE_ID] == rig.leave((follower, "j"))
    assert error_codes.UNKNOWN_MEMBER_ID == rig.heartbeat(follower)


def test_a_leader_that_starts_anew_is_asked_to_assign_nothing(rig: GroupRig) -> None:
    _leader, follower = settled(rig)

    reply = rig.join(instance="i", can_skip=True)

    assert reply.answer == JoinGroupResponse(
        member_id="i-3",
        generation_id=1,
        protocol_type="consumer",
        protocol_name="range",
        leader="i-3",
        skip_assignment=True,
        members=[
            JoinGroupResponseMember(member_id="i-3", group_instance_id="i", metadata=b""),
            JoinGroupResponseMember(member_id=follower, group_instance_id="j", metadata=b""),
        ],
    )
    assert (STABLE, "i-3") == (rig.state, rig.leader)
    assert b"of i-1" == rig.sync("i-3", instance="i").answer.assignment


def test_one_that_would_not_understand_is_not_made_leader(rig: GroupRig) -> None:
    """It would assign anew, and others would not hear of it."""
    leader, _follower = settled(rig)

    reply = rig.join(instance="i")

    assert (leader, False, []) == attrgetter("leader", "skip_assignment", "members")(reply.answer)
    assert "i-3" == rig.leader


def test_only_a_leader_can_skip_the_assignment(rig: GroupRig) -> None:
    settled(rig)

    reply = rig.join(instance="j", can_skip=True)

    assert ("i-1", False, []) == attrgetter("leader", "skip_assignment", "members")(reply.answer)


def test_it_is_reported_when_its_new_id_is_stored() -> None:
    """Else a broker that is killed now would fence it, for it would know the old id only."""
    rig = GroupRig()
    settled(rig)
    rig.stores = False

    reply = rig.join(instance="j")
    assert reply.is_waiting
    assert rig.begun
    rig.store()

    assert (0, "j-3") == (reply.error_code, reply.answer.member_id)


def test_it_has_to_try_again_if_its_new_id_could_not_be_stored() -> None:
    rig = GroupRig()
    leader, _ = settled(rig)
    rig.stores = False
    reply = rig.join(instance="j")

    rig.store(error_codes.COORDINATOR_NOT_AVAILABLE)

    assert (error_codes.COORDINATOR_NOT_AVAILABLE, "") == (
        reply.error_code,
        reply.answer.member_id,
    )
    rig.stores = True
    assert "j-4" == rig.join(instance="j").answer.member_id
    assert (STABLE, [leader, "j-4"]) == (rig.state, rig.members)


def test_its_old_id_counts_again_if_its_new_one_could_not_be_stored() -> None:
    """It is the one that a broker that is killed now would know."""
    rig = GroupRig()
    leader, follower = settled(rig)
    rig.stores = False
    rig.join(instance="i", protocols={"range": b"new", "sticky": b""})

    rig.store(error_codes.COORDINATOR_NOT_AVAILABLE)

    assert (STABLE, [leader, follower], leader) == (rig.state, rig.members, rig.leader)
    assert 0 == rig.heartbeat(leader, instance="i")
    assert FENCED_INSTANCE_ID == rig.heartbeat("i-3", instance="i")
    assert b"of i-1" == rig.sync(leader, instance="i").answer.assignment
    assert {"range": b""} == rig.member(leader).protocols
    assert rig.now + 10 == rig.member(leader).expires_at


@pytest.mark.parametrize(
    ("first", "second", "stays"),
    [(True, True, "j-4"), (True, False, "j-3"), (False, True, "j-4"), (False, False, "j-2")],
)
def test_of_two_that_replace_it_the_last_one_that_is_stored_stays(
    first: bool, second: bool, stays: str
) -> None:
    rig = GroupRig()
    leader, _follower = settled(rig)
    rig.stores = False
    rig.join(instance="j")
    rig.join(instance="j")

    for is_stored in (first, second):
        rig.store(0 if is_stored else error_codes.COORDINATOR_NOT_AVAILABLE)

    assert (STABLE, [leader, stays]) == (rig.state, rig.members)


@pytest.mark.parametrize("what", ["leaves", "rebalance", "next generation"])
def test_what_happened_before_its_new_id_could_not_be_stored_counts(what: str) -> None:
    rig = GroupRig()
    leader, follower = settled(rig)
    rig.stores = False
    rig.join(instance="j")
    if what == "leaves":
        rig.leave(("", "j"))
    else:
        rig.join(leader, instance="i", protocols={"range": b"new"})
    if what == "next generation":
        while rig.state is PREPARING:
            rig.heartbeat("j-3", instance="j")
            rig.pass_time(5)

    rig.store(error_codes.COORDINATOR_NOT_AVAILABLE)

    members = {
        "leaves": [leader],
        "rebalance": [leader, follower],
        "next generation": [leader, "j-3"],
    }
    assert members[what] == rig.members
    rig.stores = True
    if what == "next generation":
        rig.sync(leader, {leader: b"x", "j-3": b"y"}, instance="i")
        assert (STABLE, b"y") == (rig.state, rig.member("j-3").assignment)


def test_who_has_changed_does_not_disturb_as_long_as_the_protocol_stays(rig: GroupRig) -> None:
    settled(rig)

    reply = rig.join(instance="j", protocols={"range": b"new", "sticky": b""}, session=20.0)

    assert (STABLE, 1) == (rig.state, reply.answer.generation_id)
    member = rig.member("j-3")
    assert (b"new", 20.0) == (member.protocols["range"], member.session_seconds)


def test_a_change_of_the_protocol_begins_a_rebalance(rig: GroupRig) -> None:
    both = {"range": b"", "sticky": b""}
    leader, follower = rig.gather(
        rig.join(instance="i", protocols=both), rig.join(instance="j", protocols=both)
    )
    rig.stabilize(leader, follower)

    reply = rig.join(instance="j", protocols={"sticky": b""})

    assert PREPARING is rig.state
    rig.join(leader, instance="i", protocols=both)
    assert (2, "sticky") == (reply.answer.generation_id, reply.answer.protocol_name)


def test_a_protocol_that_others_do_not_know_is_refused(rig: GroupRig) -> None:
    leader, follower = settled(rig)

    reply = rig.join(instance="j", protocols={"sticky": b""})

    assert error_codes.INCONSISTENT_GROUP_PROTOCOL == reply.error_code
    assert (STABLE, [leader, follower]) == (rig.state, rig.members)


def test_it_has_a_session_again(rig: GroupRig) -> None:
    settled(rig)
    rig.pass_time(9)
    rig.heartbeat("i-1", instance="i")
    rig.join(instance="j")

    rig.pass_time(9)
    rig.heartbeat("i-1", instance="i")

    assert (STABLE, ["i-1", "j-3"]) == (rig.state, rig.members)
    rig.pass_time(1)
    assert (PREPARING, ["i-1"]) == (rig.state, rig.members)


def test_who_had_not_asked_for_its_assignment_has_to_after_it_started_anew(
    rig: GroupRig,
) -> None:
    leader, _follower = rig.gather(
        *(rig.join(instance=name, session=1000.0, rebalance=20.0) for name in "ij")
    )
    rig.sync(leader)
    rig.join(instance="j", session=1000.0, rebalance=20.0)

    rig.pass_time(20)

    assert (PREPARING, [leader]) == (rig.state, rig.members)


def test_who_had_asked_need_not(rig: GroupRig) -> None:
    leader, follower = rig.gather(
        *(rig.join(instance=name, session=1000.0, rebalance=20.0) for name in "ij")
    )
    rig.stabilize(leader, follower)
    rig.join(instance="j", session=1000.0, rebalance=20.0)

    rig.pass_time(20)

    assert (STABLE, [leader, "j-3"]) == (rig.state, rig.members)


# It starts anew while others are waited for.


def test_one_that_starts_anew_during_a_rebalance_joins_it(rig: GroupRig) -> None:
    leader, _follower = settled(rig)
    waiting = rig.join(leader, instance="i")

    reply = rig.join(instance="j")

    assert (COMPLETING, 2, ["i-1", "j-3"]) == (rig.state, rig.generation, rig.members)
    assert [0, 0] == [reply.error_code, waiting.error_code]


def test_who_waited_under_the_old_id_is_fenced(rig: GroupRig) -> None:
    settled(rig)
    waiting = rig.join("i-1", instance="i")

    reply = rig.join(instance="i")

    assert (FENCED_INSTANCE_ID, "i-1") == (waiting.error_code, waiting.answer.member_id)
    assert reply.is_waiting


def test_one_may_start_anew_before_the_first_generation(rig: GroupRig) -> None:
    first = rig.join(instance="i")

    second = rig.join(instance="i")

    assert FENCED_INSTANCE_ID == first.error_code
    assert ["i-2"] == rig.gather(second) == rig.members
    assert "i-2" == rig.leader


def test_it_waits_as_a_member_that_is_known(rig: GroupRig) -> None:
    """Which is not dropped while it waits, however long that takes."""
    [slow] = rig.stable(1, rebalance=3600.0)
    rig.join(instance="i")
    reply = rig.join(instance="i")

    for _ in range(100):
        rig.pass_time(9)
        rig.heartbeat(slow)

    assert reply.is_waiting


# It starts anew while assignments are made.


def test_one_that_starts_anew_while_assignments_are_made_begins_a_rebalance(
    rig: GroupRig,
) -> None:
    """The leader would assign to the old id."""
    leader, follower = gathered(rig)
    waiting = rig.sync(follower, instance="j")

    reply = rig.join(instance="j", protocols=RANGE)

    assert (PREPARING, FENCED_INSTANCE_ID) == (rig.state, waiting.error_code)
    rig.join(leader, instance="i")
    assert (2, "j-3") == (reply.answer.generation_id, reply.answer.member_id)


def test_what_its_leader_had_given_then_is_lost() -> None:
    rig = GroupRig()
    leader, _follower = gathered(rig)
    rig.stores = False
    waiting = rig.sync(leader, {leader: b"x"}, instance="i")

    rig.join(instance="j")
    rig.store()

    assert (PREPARING, error_codes.REBALANCE_IN_PROGRESS) == (rig.state, waiting.error_code)


# It is away.


def test_a_rebalance_goes_on_without_one_that_is_away_and_keeps_its_place(rig: GroupRig) -> None:
    away, other = rig.gather(
        rig.join(instance="i", session=1000.0), rig.join(instance="j", session=1000.0)
    )
    rig.stabilize(away, other)
    reply = rig.join(other, instance="j", protocols={"range": b"new"}, session=1000.0)

    rig.pass_time(60)

    assert (COMPLETING, [away, other], other) == (rig.state, rig.members, rig.leader)
    assert [away, other] == [member.member_id for member in reply.answer.members]


def test_it_finds_its_assignment_when_it_is_back(rig: GroupRig) -> None:
    away, other = rig.gather(
        rig.join(instance="i", session=1000.0), rig.join(instance="j", session=1000.0)
    )
    rig.stabilize(away, other)
    rig.join(other, instance="j", protocols={"range": b"new"}, session=1000.0)
    rig.pass_time(60)
    rig.sync(other, {away: b"kept for you"}, instance="j")

    reply = rig.join(instance="i", session=1000.0)

    assert (STABLE, 2) == (rig.state, reply.answer.generation_id)
    assert b"kept for you" == rig.sync("i-3", instance="i").answer.assignment


def test_a_rebalance_does_not_end_while_all_are_away(rig: GroupRig) -> None:
    ids = rig.gather(rig.join(instance="i", session=1000.0), rig.join(session=1000.0))
    rig.stabilize(*ids)
    rig.leave(ids[1])

    rig.pass_time(600)
    assert (PREPARING, ["i-1"]) == (rig.state, rig.members)
    reply = rig.join(instance="i", session=1000.0)

    assert (COMPLETING, 2) == (rig.state, reply.answer.generation_id)


@pytest.mark.parametrize("rebalance", [0.0, -1.0])
def test_nor_does_it_keep_the_broker_busy_if_members_have_no_patience(
    rig: GroupRig, rebalance: float
) -> None:
    """The rig gives up a group that wants to be woken again and again."""
    ids = rig.gather(
        rig.join(instance="i", session=1000.0, rebalance=rebalance),
        rig.join(session=1000.0, rebalance=rebalance),
    )
    rig.stabilize(*ids)
    rig.leave(ids[1])

    rig.pass_time(50)

    assert (PREPARING, ["i-1"]) == (rig.state, rig.members)


def test_it_loses_its_place_by_silence(rig: GroupRig) -> None:
    settled(rig)

    for _ in range(2):
        rig.pass_time(5)
        rig.heartbeat("j-2", instance="j")

    assert (PREPARING, ["j-2"]) == (rig.state, rig.members)
    reply = rig.join(instance="i")
    assert reply.is_waiting
    assert rig.member("i-3").is_new


# It is removed.


def test_an_administrator_removes_it_by_what_it_is_called(rig: GroupRig) -> None:
    settled(rig)

    assert [0] == rig.leave(("", "i"))

    assert (PREPARING, ["j-2"]) == (rig.state, rig.members)


@pytest.mark.parametrize(
    ("leaving", "expected"),
    [
        (("", "nobody"), error_codes.UNKNOWN_MEMBER_ID),
        (("", None), error_codes.UNKNOWN_MEMBER_ID),
        (("i-1", "nobody"), error_codes.UNKNOWN_MEMBER_ID),
        (("j-2", "i"), FENCED_INSTANCE_ID),
        (("nobody", "i"), FENCED_INSTANCE_ID),
        (("i-1", "i"), error_codes.NONE),
        (("i-1", None), error_codes.NONE),
    ],
)
def test_both_its_ids_must_be_right_if_both_are_given(
    rig: GroupRig, leaving: tuple[str, str | None], expected: int
) -> None:
    ids = settled(rig)

    assert [expected] == rig.leave(leaving)

    assert (ids[0] in rig.members) == (expected != 0)
