"""How long a group waits: for the first members, for those that join again, for silent ones."""

from __future__ import annotations

import pytest

from support.groups import DELAY, GroupRig
from trionet.broker.groups._group import NEW_MEMBER_SECONDS_MAX, GroupState
from trionet.protocol import error_codes

EMPTY, PREPARING, COMPLETING, STABLE, _DEAD = GroupState


# The first members of an empty group (KIP-134).


def test_the_first_generation_is_given_a_delay(rig: GroupRig) -> None:
    reply = rig.join()

    rig.pass_time(DELAY - 0.1)
    assert reply.is_waiting
    rig.pass_time(0.1)

    assert 1 == reply.answer.generation_id


def test_without_a_delay_it_begins_at_once() -> None:
    rig = GroupRig(delay=0)

    reply = rig.join()

    assert (COMPLETING, 1) == (rig.state, reply.answer.generation_id)


def test_a_member_that_comes_meanwhile_adds_another_delay(rig: GroupRig) -> None:
    replies = [rig.join()]
    for _ in range(3):
        rig.pass_time(DELAY - 0.5)
        replies.append(rig.join())
    # They came at 2.5, 5 and 7.5: of each delay one.
    assert all(reply.is_waiting for reply in replies)

    rig.pass_time(4 * DELAY - 3 * (DELAY - 0.5) - 0.1)
    assert PREPARING is rig.state
    rig.pass_time(0.1)

    assert [1, 1, 1, 1] == [reply.answer.generation_id for reply in replies]


@pytest.mark.parametrize("rebalance", [10.0, 5.0, 7.0, 3.0, 1.0])
def test_all_delays_together_are_no_longer_than_a_rebalance(rebalance: float) -> None:
    rig = GroupRig()
    replies = [rig.join(rebalance=rebalance)]
    began = rig.now
    while PREPARING is rig.state:
        replies.append(rig.join(rebalance=rebalance))
        rig.wake()

    assert max(rebalance, DELAY) == pytest.approx(rig.now - began)
    assert {1} == {reply.answer.generation_id for reply in replies}


def test_it_is_the_patience_of_the_first_one_that_counts(rig: GroupRig) -> None:
    rig.join(rebalance=5.0)
    rig.join(rebalance=500.0)

    rig.pass_time(3)
    rig.join(rebalance=500.0)
    rig.pass_time(2)

    assert COMPLETING is rig.state


def test_who_joins_again_adds_no_delay(rig: GroupRig) -> None:
    [id] = [rig.join(must_know_id=True).answer.member_id]
    rig.join(id)
    rig.join(id)

    rig.pass_time(DELAY)

    assert COMPLETING is rig.state


def test_the_delay_is_for_an_empty_group_only(rig: GroupRig) -> None:
    leader, follower = rig.stable()
    new = rig.join()
    rig.join(leader)

    rig.join(follower)

    assert 2 == new.answer.generation_id


def test_a_group_that_has_become_empty_is_given_it_again(rig: GroupRig) -> None:
    rig.leave(*rig.stable())
    reply = rig.join()

    rig.pass_time(DELAY - 0.1)
    assert reply.is_waiting
    rig.pass_time(0.1)

    assert 3 == reply.answer.generation_id


def test_a_member_of_a_past_delay_adds_none_to_the_next(rig: GroupRig) -> None:
    replies = [rig.join(rebalance=4.0), rig.join(rebalance=4.0)]
    rig.pass_time(3.5)
    replies.append(rig.join(rebalance=4.0))
    rig.leave(*rig.gather(*replies))

    rig.join()
    rig.pass_time(DELAY)

    assert COMPLETING is rig.state


def test_all_may_leave_during_the_delay(rig: GroupRig) -> None:
    ids = [rig.join(must_know_id=True).answer.member_id for _ in range(2)]
    replies = [rig.join(id) for id in ids]

    rig.leave(*ids)
    assert [error_codes.UNKNOWN_MEMBER_ID] * 2 == [reply.error_code for reply in replies]
    rig.pass_time(2 * DELAY)

    assert (EMPTY, [], None) == (rig.state, rig.members, rig.leader)


# Members that join again.


def test_members_have_the_longest_of_their_patience_to_join_again(rig: GroupRig) -> None:
    patient, hasty = rig.gather(rig.join(rebalance=30.0), rig.join(rebalance=5.0))
    rig.stabilize(patient, hasty)
    reply = rig.join(hasty, protocols={"range": b"new"}, rebalance=5.0)

    for _ in range(29):
        rig.pass_time(1)
        rig.heartbeat(patient)
    assert reply.is_waiting
    rig.pass_time(1)

    assert (COMPLETING, 2, [hasty]) == (rig.state, reply.answer.generation_id, rig.members)


def test_a_new_member_gives_them_no_more_time(rig: GroupRig) -> None:
    """The delay of an empty group is over."""
    late, early = rig.stable(2, session=1000.0)
    new = rig.join()
    rig.join(early, session=1000.0)
    rig.pass_time(59.9)
    assert new.is_waiting

    rig.pass_time(0.1)

    assert (2, late in rig.members) == (new.answer.generation_id, False)


def test_who_comes_too_late_is_no_member_any_more(rig: GroupRig) -> None:
    late, early = rig.stable(2, rebalance=5.0)
    rig.join(early, protocols={"range": b"new"}, rebalance=5.0)

    rig.pass_time(5)

    assert error_codes.UNKNOWN_MEMBER_ID == rig.heartbeat(late, 1)
    assert error_codes.UNKNOWN_MEMBER_ID == rig.join(late).error_code


def test_a_group_to_which_no_member_comes_back_is_empty(rig: GroupRig) -> None:
    ids = rig.stable(3, rebalance=5.0)
    rig.leave(ids[0])
    assert PREPARING is rig.state

    rig.pass_time(5)

    assert (EMPTY, 2, []) == (rig.state, rig.generation, rig.members)


# Silence.


def test_a_member_that_is_silent_for_its_session_is_dropped(rig: GroupRig) -> None:
    leader, _follower = rig.stable(2, session=10.0)
    rig.pass_time(9)
    rig.heartbeat(leader)

    rig.pass_time(0.9)
    assert STABLE is rig.state
    rig.pass_time(0.1)

    assert (PREPARING, [leader]) == (rig.state, rig.members)
    assert error_codes.REBALANCE_IN_PROGRESS == rig.heartbeat(leader)


@pytest.mark.parametrize("call", ["heartbeat", "commit", "sync", "join"])
def test_every_call_is_a_sign_of_life(rig: GroupRig, call: str) -> None:
    leader, follower = rig.stable(2, session=10.0)
    for _ in range(5):
        rig.pass_time(6)
        rig.heartbeat(leader)
        match call:
            case "heartbeat":
                rig.heartbeat(follower)
            case "commit":
                rig.commit(follower)
            case "sync":
                rig.sync(follower)
            case _:
                rig.join(follower)

    assert (STABLE, [leader, follower]) == (rig.state, rig.members)


def test_a_call_that_is_refused_is_none(rig: GroupRig) -> None:
    [id] = rig.stable(1, session=10.0)
    rig.pass_time(6)

    assert error_codes.ILLEGAL_GENERATION == rig.heartbeat(id, 7)
    rig.pass_time(4)

    assert EMPTY is rig.state


def test_a_member_that_is_silent_during_a_rebalance_is_not_waited_for(rig: GroupRig) -> None:
    _silent, other = rig.stable(2, session=10.0, rebalance=60.0)
    rig.pass_time(4)
    reply = rig.join(other, protocols={"range": b"new"})

    rig.pass_time(5.9)
    assert reply.is_waiting
    rig.pass_time(0.1)

    assert (2, [other]) == (reply.answer.generation_id, rig.members)


def test_who_waits_for_others_is_not_silent(rig: GroupRig) -> None:
    slow, quick = rig.stable(2, session=10.0, rebalance=60.0)
    reply = rig.join(quick, protocols={"range": b"new"})

    for _ in range(10):
        rig.pass_time(5)
        rig.heartbeat(slow)
    rig.join(slow)

    assert (2, [slow, quick]) == (reply.answer.generation_id, rig.members)


def test_who_waits_for_its_assignment_is_not_silent(rig: GroupRig) -> None:
    leader, follower = rig.complete(2, session=10.0, rebalance=60.0)
    waiting = rig.sync(follower)

    for _ in range(10):
        rig.pass_time(5)
        rig.heartbeat(leader)
    rig.sync(leader, {follower: b"x"})

    assert b"x" == waiting.answer.assignment


def test_silence_is_counted_from_the_response(rig: GroupRig) -> None:
    """Of who has waited for longer than its session."""
    leader, follower = rig.complete(2, session=10.0, rebalance=60.0)
    rig.sync(follower)
    for _ in range(4):
        rig.pass_time(5)
        rig.heartbeat(leader)
    rig.sync(leader)

    rig.pass_time(9.9)
    assert error_codes.NONE == rig.heartbeat(follower)
    rig.pass_time(9.9)
    assert error_codes.REBALANCE_IN_PROGRESS == rig.heartbeat(follower)


def test_members_of_a_new_generation_have_a_whole_session(rig: GroupRig) -> None:
    leader, follower = rig.stable(2, session=10.0, rebalance=60.0)
    replies = [rig.join(leader)]
    for _ in range(5):
        rig.pass_time(9)
        rig.heartbeat(follower)
    replies.append(rig.join(follower))

    rig.pass_time(9.9)

    assert (COMPLETING, [leader, follower]) == (rig.state, rig.members)
    rig.pass_time(0.1)
    assert [] == rig.members


def test_a_first_call_that_waits_too_long_is_over() -> None:
    rig = GroupRig(delay=1000.0)

    reply = rig.join()

    assert rig.group.timeouts.wake_at <= rig.now + NEW_MEMBER_SECONDS_MAX
    rig.pass_time(NEW_MEMBER_SECONDS_MAX)

    assert (error_codes.UNKNOWN_MEMBER_ID, []) == (reply.error_code, rig.members)


def test_a_client_that_joins_and_goes_does_not_hold_up_a_group_for_ever(rig: GroupRig) -> None:
    """It is not known, and nothing is heard of it: its call waits, so it sends no heartbeats."""
    [slow] = rig.stable(1, rebalance=3600.0)
    gone = rig.join()

    for _ in range(60):
        assert gone.is_waiting
        rig.heartbeat(slow)
        rig.pass_time(5)

    assert NEW_MEMBER_SECONDS_MAX == 60 * 5
    assert (error_codes.UNKNOWN_MEMBER_ID, "") == (gone.error_code, gone.answer.member_id)
    assert [slow] == rig.members


# Assignments.


def test_who_does_not_ask_for_its_assignment_is_dropped(rig: GroupRig) -> None:
    """It sends heartbeats, but does not go on."""
    leader, stuck = rig.complete(2, session=10.0, rebalance=20.0)
    rig.sync(leader)
    assert STABLE is rig.state

    for _ in range(4):
        assert error_codes.NONE == rig.heartbeat(stuck)
        rig.heartbeat(leader)
        rig.pass_time(5)

    assert (PREPARING, [leader]) == (rig.state, rig.members)
    assert error_codes.UNKNOWN_MEMBER_ID == rig.heartbeat(stuck)


def test_it_has_to_ask_in_each_generation(rig: GroupRig) -> None:
    leader, stuck = rig.stable(2, session=1000.0, rebalance=20.0)
    for id in (leader, stuck):
        rig.join(id, session=1000.0, rebalance=20.0)
    rig.sync(leader)

    rig.pass_time(20)

    assert (PREPARING, [leader]) == (rig.state, rig.members)


def test_a_group_that_waits_for_assignments_wakes_when_they_are_due() -> None:
    rig = GroupRig(delay=0)

    rig.join(session=1000.0, rebalance=20.0)

    assert (COMPLETING, rig.now + 20) == (rig.state, rig.group.timeouts.wake_at)


def test_a_leader_that_gives_no_assignments_is_dropped(rig: GroupRig) -> None:
    stuck, follower = rig.complete(2, session=10.0, rebalance=20.0)
    waiting = rig.sync(follower)

    for _ in range(4):
        rig.heartbeat(stuck)
        rig.pass_time(5)

    assert error_codes.REBALANCE_IN_PROGRESS == waiting.error_code
    reply = rig.join(follower)
    assert (2, follower) == (reply.answer.generation_id, reply.answer.leader)


def test_no_member_is_dropped_when_all_have_asked(rig: GroupRig) -> None:
    ids = rig.stable(3, session=1000.0, rebalance=20.0)

    rig.pass_time(100)

    assert (STABLE, ids) == (rig.state, rig.members)


def test_the_time_to_ask_is_counted_anew_in_each_generation(rig: GroupRig) -> None:
    leader, follower = rig.complete(2, session=1000.0, rebalance=20.0)
    rig.pass_time(15)
    for id in (leader, follower):
        rig.join(id, protocols={"range": b"new"}, session=1000.0, rebalance=20.0)

    rig.pass_time(15)
    assert (COMPLETING, 2) == (rig.state, rig.generation)
    rig.stabilize(leader, follower)
    rig.pass_time(10)

    assert STABLE is rig.state


# Waking.


def test_a_group_says_when_it_wants_to_be_woken(rig: GroupRig) -> None:
    rig.join()
    assert rig.now + DELAY == rig.group.timeouts.wake_at
    rig.wake()
    assert rig.now + 10 == rig.group.timeouts.wake_at


def test_an_empty_group_sleeps_for_ever(rig: GroupRig) -> None:
    rig.leave(*rig.stable())
    rig.pass_time(1000)

    assert float("inf") == rig.group.timeouts.wake_at
