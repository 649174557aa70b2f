"""Which protocol a group works by: one that all its members know."""

from __future__ import annotations

import pytest

from support.groups import GroupRig
from trionet.broker.groups._group_state import GroupState
from trionet.protocol.error_codes import INCONSISTENT_GROUP_PROTOCOL, NONE


@pytest.fixture
def rig() -> GroupRig:
    return GroupRig()


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
