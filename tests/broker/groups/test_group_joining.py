"""Members that join: for the first time or again, with which protocols, and how many."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.counted_calls import counted_calls
from support.groups import RANGE, GroupRig
from trionet.broker.groups._group import GroupState, subscribed_topics
from trionet.protocol import error_codes
from trionet.protocol.error_codes import GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL, NONE
from trionet.protocol.messages.consumer_protocol_subscription import (
    MESSAGES,
    ConsumerProtocolSubscription,
)

CHANGED = {"range": b"other topics"}


def test_a_join_costs_the_same_however_many_members_there_are() -> None:
    def calls_for_a_join(count: int) -> int:
        rig = GroupRig()
        *others, last, _ = rig.stable(count)
        for id in others:
            rig.join(id, protocols=CHANGED)
        with counted_calls() as calls:
            rig.join(last, protocols=CHANGED)
        return calls[0]

    assert calls_for_a_join(10) == calls_for_a_join(100)


# While assignments are made.


def test_a_member_whose_response_was_lost_gets_it_again_while_assignments_are_made(
    rig: GroupRig,
) -> None:
    replies = [rig.join(), rig.join()]
    leader, follower = rig.gather(*replies)

    again = [rig.join(leader), rig.join(follower)]

    assert [reply.answer for reply in replies] == [reply.answer for reply in again]
    assert (GroupState.COMPLETING, 1) == (rig.state, rig.generation)
    assert 2 == len(again[0].answer.members)


def test_that_takes_no_assignment_away(rig: GroupRig) -> None:
    leader, follower = rig.complete()
    waiting = rig.sync(follower)

    rig.join(follower)

    assert waiting.is_waiting
    rig.sync(leader, {follower: b"x"})
    assert b"x" == waiting.answer.assignment


@pytest.mark.parametrize(
    "protocols",
    [CHANGED, {**RANGE, "more": b""}, {"more": b"", **RANGE}],
    ids=["metadata", "one more", "another order"],
)
def test_who_has_changed_while_assignments_are_made_begins_a_rebalance(
    rig: GroupRig, protocols: dict[str, bytes]
) -> None:
    leader, follower = rig.complete()
    waiting = rig.sync(follower)

    reply = rig.join(leader, protocols=protocols)

    assert GroupState.PREPARING is rig.state
    assert error_codes.REBALANCE_IN_PROGRESS == waiting.error_code
    rig.join(follower)
    assert 2 == reply.answer.generation_id
    assert protocols["range"] == reply.answer.members[0].metadata


def test_the_order_of_protocols_is_a_change(rig: GroupRig) -> None:
    both = {"range": b"", "sticky": b""}
    _leader, follower = rig.stable(2, protocols=both)

    rig.join(follower, protocols=dict(reversed(both.items())))

    assert GroupState.PREPARING is rig.state


# When all is settled.


def test_a_follower_that_joins_again_learns_the_same(rig: GroupRig) -> None:
    replies = [rig.join(), rig.join()]
    leader, follower = rig.gather(*replies)
    rig.stabilize(leader, follower)

    again = rig.join(follower)

    assert (GroupState.STABLE, replies[1].answer) == (rig.state, again.answer)
    assert b"of c-2" == rig.sync(follower).answer.assignment


def test_a_follower_that_has_changed_begins_a_rebalance(rig: GroupRig) -> None:
    leader, follower = rig.stable()

    reply = rig.join(follower, protocols=CHANGED)

    assert GroupState.PREPARING is rig.state
    assert reply.is_waiting
    assert b"other topics" == rig.join(leader).answer.members[1].metadata


def test_a_leader_that_joins_again_begins_a_rebalance(rig: GroupRig) -> None:
    """Partitions of its topics may have been added, which no metadata reports."""
    leader, follower = rig.stable()

    reply = rig.join(leader)

    assert GroupState.PREPARING is rig.state
    rig.join(follower)
    assert 2 == reply.answer.generation_id


# While others are waited for.


def test_a_second_join_gets_the_same_response(rig: GroupRig) -> None:
    """Its first call is over for it, or there would not be a second."""
    leader, follower = rig.stable()
    first = rig.join(leader)

    second = rig.join(leader)

    assert error_codes.REBALANCE_IN_PROGRESS == first.error_code
    assert second.is_waiting
    rig.join(follower)
    assert (0, 2) == (second.error_code, second.answer.generation_id)


def test_what_a_member_says_last_counts(rig: GroupRig) -> None:
    leader, follower = rig.stable()
    rig.join(leader)
    rig.join(leader, protocols=CHANGED, session=20, rebalance=200, client_id="d")

    rig.join(follower)

    member = rig.member(leader)
    assert (CHANGED, 20, 200, "d") == attrgetter(
        "protocols", "session_seconds", "rebalance_seconds", "client_id"
    )(member)


# Who is no member.


@pytest.mark.parametrize("state", ["empty", "preparing", "completing", "stable"])
def test_an_id_that_was_never_assigned_is_unknown_in_every_state(rig: GroupRig, state: str) -> None:
    match state:
        case "preparing":
            rig.join()
        case "completing":
            rig.complete()
        case "stable":
            rig.stable()
    before = rig.state, rig.generation, rig.members

    reply = rig.join("nobody")

    assert (error_codes.UNKNOWN_MEMBER_ID, "nobody", -1) == (
        reply.error_code,
        reply.answer.member_id,
        reply.answer.generation_id,
    )
    assert before == (rig.state, rig.generation, rig.members)


def test_an_id_of_before_the_group_was_empty_is_unknown(rig: GroupRig) -> None:
    [id] = rig.stable(1)
    rig.leave(id)

    assert error_codes.UNKNOWN_MEMBER_ID == rig.join(id).error_code
    assert GroupState.EMPTY is rig.state


def test_a_group_that_is_being_deleted_has_who_joins_try_again(rig: GroupRig) -> None:
    rig.group.state = GroupState.DEAD

    for id in ("", "c-1"):
        reply = rig.join(id)
        assert (error_codes.COORDINATOR_NOT_AVAILABLE, id) == (
            reply.error_code,
            reply.answer.member_id,
        )
    assert [] == rig.members


def known(names: str) -> dict[str, bytes]:
    """Protocols of one letter each, the one that is liked best first, with metadata."""
    return {name: f"as {name}".encode() for name in names}


@pytest.mark.parametrize(
    ("members", "chosen"),
    [
        (["a"], "a"),
        (["ab"], "a"),
        (["ab", "ba", "ba"], "b"),
        (["abc", "cba", "bca"], "abc"),
        # Most like `a` best, but one does not know it.
        (["abc", "abc", "cb"], "b"),
        (["ab", "cb", "db"], "b"),
    ],
)
def test_most_votes_win_among_those_that_all_know(
    rig: GroupRig, members: list[str], chosen: str
) -> None:
    replies = [rig.join(protocols=known(names)) for names in members]

    rig.gather(*replies)

    assert rig.group.protocol_name is not None
    assert rig.group.protocol_name in chosen
    assert {rig.group.protocol_name} == {reply.answer.protocol_name for reply in replies}


def test_the_leader_learns_what_members_say_in_that_protocol(rig: GroupRig) -> None:
    leader = rig.join(protocols=known("ab"))
    rig.gather(rig.join(protocols=known("cb")))

    assert [b"as b", b"as b"] == [member.metadata for member in leader.answer.members]


@pytest.mark.parametrize("state", ["preparing", "completing", "stable"])
@pytest.mark.parametrize(
    ("protocol_type", "names"),
    [("consumer", "c"), ("connect", "ab"), ("consumer", ""), ("", "ab"), ("Consumer", "a")],
)
def test_who_has_nothing_in_common_with_the_others_is_refused(
    rig: GroupRig, state: str, protocol_type: str, names: str
) -> None:
    match state:
        case "preparing":
            rig.join(protocols=known("ab"))
        case "completing":
            rig.complete(protocols=known("ab"))
        case "stable":
            rig.stable(protocols=known("ab"))
    before = rig.state, rig.members

    for must_know_id in (True, False):
        reply = rig.join(
            protocol_type=protocol_type, protocols=known(names), must_know_id=must_know_id
        )
        assert (INCONSISTENT_GROUP_PROTOCOL, "") == (reply.error_code, reply.answer.member_id)

    assert before == (rig.state, rig.members)


@pytest.mark.parametrize(("protocol_type", "names"), [("", "a"), ("consumer", ""), ("", "")])
def test_the_first_member_must_name_a_type_and_a_protocol(
    rig: GroupRig, protocol_type: str, names: str
) -> None:
    reply = rig.join(protocol_type=protocol_type, protocols=known(names))

    assert INCONSISTENT_GROUP_PROTOCOL == reply.error_code
    assert GroupState.EMPTY is rig.state


def test_a_member_cannot_give_up_what_it_has_in_common(rig: GroupRig) -> None:
    _leader, follower = rig.stable(protocols=known("ab"))

    reply = rig.join(follower, protocols=known("c"))

    assert (INCONSISTENT_GROUP_PROTOCOL, follower) == (reply.error_code, reply.answer.member_id)
    assert (GroupState.STABLE, 0) == (rig.state, rig.heartbeat(follower))


def test_a_group_moves_to_another_protocol_in_two_steps(rig: GroupRig) -> None:
    """Each member learns the new one first, and gives the old one up after all have."""
    first, second = rig.stable(protocols=known("a"))
    for step, protocol in (("ba", "b"), ("b", "b")):
        rig.gather(rig.join(first, protocols=known(step)), rig.join(second, protocols=known(step)))
        rig.stabilize(first, second)
        assert protocol == rig.group.protocol_name


def test_the_type_stays_while_there_are_members(rig: GroupRig) -> None:
    rig.stable(protocol_type="connect")

    assert INCONSISTENT_GROUP_PROTOCOL == rig.join(protocol_type="consumer").error_code
    assert "connect" == rig.group.protocol_type


def test_a_protocol_is_known_to_all_when_those_who_did_not_have_left(rig: GroupRig) -> None:
    first, second = rig.gather(rig.join(protocols=known("ab")), rig.join(protocols=known("b")))
    rig.stabilize(first, second)
    assert INCONSISTENT_GROUP_PROTOCOL == rig.join(protocols=known("a")).error_code

    rig.leave(second)

    reply = rig.join(protocols=known("a"))
    rig.join(first, protocols=known("ab"))
    assert (NONE, "a") == (reply.error_code, reply.answer.protocol_name)


@pytest.fixture
def small() -> GroupRig:
    return GroupRig(members_max=2)


@pytest.mark.parametrize("state", ["preparing", "completing", "stable"])
def test_one_more_is_refused_in_every_state(small: GroupRig, state: str) -> None:
    match state:
        case "preparing":
            small.join()
            small.join()
        case "completing":
            small.complete()
        case "stable":
            small.stable()
    before = small.state, small.members

    for must_know_id in (False, True):
        reply = small.join(must_know_id=must_know_id)
        assert (GROUP_MAX_SIZE_REACHED, "") == (reply.error_code, reply.answer.member_id)

    assert before == (small.state, small.members)


@pytest.mark.parametrize("state", ["completing", "stable"])
def test_members_of_a_full_group_may_join_again(small: GroupRig, state: str) -> None:
    ids = small.complete() if state == "completing" else small.stable()

    assert error_codes.NONE == small.join(ids[1]).error_code


def test_the_group_is_asked_before_anything_else(small: GroupRig) -> None:
    small.stable()

    assert GROUP_MAX_SIZE_REACHED == small.join(protocol_type="connect").error_code


def test_there_is_room_again_when_a_connection_has_closed(small: GroupRig) -> None:
    first, second = small.stable()
    small.leave(second)

    reply = small.join()

    assert reply.is_waiting
    small.join(first)
    assert error_codes.NONE == reply.error_code


def test_more_ids_are_given_than_there_is_room_for_and_the_first_ones_win(small: GroupRig) -> None:
    ids = [small.join(must_know_id=True).answer.member_id for _ in range(3)]

    replies = [small.join(id) for id in ids]

    assert (GROUP_MAX_SIZE_REACHED, "") == (replies[2].error_code, replies[2].answer.member_id)
    assert ids[:2] == small.gather(*replies[:2]) == small.members


def test_an_id_that_found_no_room_is_not_waited_for(small: GroupRig) -> None:
    [first] = small.stable(1)
    ids = [small.join(must_know_id=True).answer.member_id for _ in range(2)]
    replies = [small.join(first), small.join(ids[0])]
    assert all(reply.is_waiting for reply in replies)

    assert GROUP_MAX_SIZE_REACHED == small.join(ids[1]).error_code

    assert [0, 0] == [reply.error_code for reply in replies]
    assert not small.group.members.pending


def grown(members_max: int) -> tuple[GroupRig, list[str]]:
    """A group with three members whose broker was started anew with a lower limit."""
    small = GroupRig(members_max=3)
    ids = small.stable(3)
    small.restart(members_max=members_max)
    return small, ids


def test_a_group_that_has_become_too_large_has_all_join_again() -> None:
    """So that those who will be out can commit what they have read."""
    small, ids = grown(2)

    assert GroupState.PREPARING is small.state
    assert [error_codes.REBALANCE_IN_PROGRESS] * 3 == [small.heartbeat(id) for id in ids]
    assert [error_codes.NONE] * 3 == [small.commit(id) for id in ids]


def test_a_group_that_is_just_full_goes_on() -> None:
    small, ids = grown(3)

    assert [error_codes.NONE] * 3 == [small.heartbeat(id) for id in ids]


def test_those_who_come_last_are_out() -> None:
    small, ids = grown(2)
    replies = [small.join(ids[0]), small.join(ids[2])]

    assert GROUP_MAX_SIZE_REACHED == small.join(ids[1]).error_code

    assert [0, 0] == [reply.error_code for reply in replies]
    assert [ids[0], ids[2]] == small.members
    assert error_codes.UNKNOWN_MEMBER_ID == small.heartbeat(ids[1])


def test_who_has_joined_may_ask_again_although_there_is_no_room() -> None:
    small, ids = grown(1)
    small.join(ids[0])

    assert small.join(ids[0]).is_waiting
    assert GROUP_MAX_SIZE_REACHED == small.join(ids[1]).error_code


def test_a_static_member_that_is_back_finds_no_room_in_a_full_group(small: GroupRig) -> None:
    """As in Kafka: whoever has no id counts as new."""
    small.stable()

    assert GROUP_MAX_SIZE_REACHED == small.join(instance="i").error_code


def subscription(*topics: str, version: int = 3, more: bytes = b"") -> bytes:
    """A member's metadata as its client writes it."""
    out: list[Any] = [version.to_bytes(2, "big", signed=True)]
    _, encode = MESSAGES[min(version, max(MESSAGES))]
    encode(ConsumerProtocolSubscription(topics=list(topics), user_data=b"u"), out)
    return b"".join(out) + more


def join(rig: GroupRig, *metadata: bytes) -> None:
    rig.gather(*(rig.join(protocols={"range": each}) for each in metadata))


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 99])
def test_it_is_what_any_of_them_reads_in_every_version(rig: GroupRig, version: int) -> None:
    join(rig, subscription("a", "b", version=version), subscription("b", "ä", version=version))

    assert frozenset({"a", "b", "ä"}) == subscribed_topics(rig.group)


def test_what_a_later_version_has_at_the_end_is_passed_over(rig: GroupRig) -> None:
    join(rig, subscription("a", version=50, more=b"what nobody knows yet"))

    assert frozenset({"a"}) == subscribed_topics(rig.group)


def test_a_member_may_read_nothing(rig: GroupRig) -> None:
    join(rig, subscription())

    assert frozenset() == subscribed_topics(rig.group)


def test_a_group_without_members_reads_nothing(rig: GroupRig) -> None:
    assert frozenset() == subscribed_topics(rig.group)
    rig.leave(*rig.stable())
    assert frozenset() == subscribed_topics(rig.group)


def test_members_of_another_type_do_not_say(rig: GroupRig) -> None:
    rig.stable(1, protocol_type="connect", protocols={"range": subscription("a")})

    assert subscribed_topics(rig.group) is None


def test_it_is_not_known_before_there_is_a_protocol(rig: GroupRig) -> None:
    rig.join(protocols={"range": subscription("a")})

    assert subscribed_topics(rig.group) is None


def test_it_is_not_known_of_a_new_member_that_gave_up_the_old_protocol(rig: GroupRig) -> None:
    both = {"range": subscription("a"), "sticky": subscription("a")}
    rig.stable(2, protocols=both)
    rig.join(protocols={"sticky": subscription("b")})

    assert subscribed_topics(rig.group) is None


@pytest.mark.parametrize(
    "metadata", [b"", b"\0", b"\0\0", b"\0\0\0\0\0\1\0\5top", b"\0\3\x7f\xff\xff\xff"]
)
def test_one_that_cannot_be_read_makes_all_unknown(rig: GroupRig, metadata: bytes) -> None:
    join(rig, subscription("a"), metadata)

    assert subscribed_topics(rig.group) is None


@given(st.binary(max_size=60))
def test_any_metadata_is_read_or_unknown(metadata: bytes) -> None:
    rig = GroupRig()
    join(rig, metadata)

    topics = subscribed_topics(rig.group)

    assert topics is None or all(isinstance(topic, str) for topic in topics)
