from __future__ import annotations

import attrs
import pytest

from trionet.client.consumer.coordinator._classic_member import (
    ClassicMember,
    Generation,
    GroupSettings,
    MemberState,
    Verdict,
)
from trionet.errors import ApiError, FencedInstanceIdError
from trionet.protocol import error_codes as codes
from trionet.protocol.messages.heartbeat import HeartbeatResponse
from trionet.protocol.messages.join_group import JoinGroupResponse
from trionet.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from trionet.protocol.messages.sync_group import SyncGroupResponse

SETTINGS = GroupSettings(group_id="readers")
JOINED = JoinGroupResponse(
    generation_id=3,
    protocol_type="consumer",
    protocol_name="range",
    leader="m",
    member_id="m",
)


def stable(settings: GroupSettings = SETTINGS) -> ClassicMember:
    member = ClassicMember(settings)
    member.join_request([("range", b"")])
    member.handle_join(JOINED)
    member.handle_sync(SyncGroupResponse(protocol_type="consumer", protocol_name="range"))
    return member


def refused(member: ClassicMember, code: int) -> Verdict:
    return member.handle_join(JoinGroupResponse(error_code=code))


def test_a_new_member_wants_to_join() -> None:
    member = ClassicMember(SETTINGS)

    assert (MemberState.UNJOINED, Generation(), "") == (
        member.state,
        member.generation,
        member.rejoin_reason,
    )


def test_a_join_asks_in_milliseconds_and_waits_as_long_as_a_user_may_take() -> None:
    settings = attrs.evolve(SETTINGS, session_timeout_seconds=45.0, max_poll_interval_seconds=300.0)
    asked = ClassicMember(settings).join_request([("range", b"x")])

    assert (45_000, 300_000, "consumer") == (
        asked.session_timeout_ms,
        asked.rebalance_timeout_ms,
        asked.protocol_type,
    )


def test_the_id_that_a_broker_gives_is_used_for_the_next_try_at_once() -> None:
    member = ClassicMember(SETTINGS)
    member.join_request([])
    verdict = member.handle_join(
        JoinGroupResponse(error_code=codes.MEMBER_ID_REQUIRED, member_id="given")
    )

    assert (Verdict.RETRY_NOW, "given") == (verdict, member.join_request([]).member_id)


def test_a_member_is_in_its_generation_when_it_has_its_assignment() -> None:
    member = ClassicMember(SETTINGS)
    member.join_request([("range", b"")])
    joined = member.handle_join(JOINED)
    between = member.state
    synced = member.handle_sync(SyncGroupResponse(assignment=b"mine"))

    assert (Verdict.DONE, MemberState.COMPLETING_REBALANCE) == (joined, between)
    assert (Verdict.DONE, MemberState.STABLE, b"mine", None) == (
        synced,
        member.state,
        member.assignment,
        member.rejoin_reason,
    )
    assert Generation(3, "m", "range") == member.generation


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (codes.COORDINATOR_LOAD_IN_PROGRESS, Verdict.RETRY_LATER),
        (codes.COORDINATOR_NOT_AVAILABLE, Verdict.FIND_COORDINATOR),
        (codes.NOT_COORDINATOR, Verdict.FIND_COORDINATOR),
        (codes.REBALANCE_IN_PROGRESS, Verdict.RETRY_NOW),
        (codes.UNKNOWN_MEMBER_ID, Verdict.RETRY_NOW),
        (codes.ILLEGAL_GENERATION, Verdict.RETRY_NOW),
    ],
)
def test_a_refusal_that_passes_is_tried_again(code: int, verdict: Verdict) -> None:
    member = ClassicMember(SETTINGS)
    member.join_request([])

    assert verdict == refused(member, code)
    assert MemberState.UNJOINED == member.state


@pytest.mark.parametrize(
    "code",
    [
        codes.INCONSISTENT_GROUP_PROTOCOL,
        codes.INVALID_SESSION_TIMEOUT,
        codes.INVALID_GROUP_ID,
        codes.GROUP_AUTHORIZATION_FAILED,
        codes.GROUP_MAX_SIZE_REACHED,
    ],
)
def test_a_refusal_that_stays_is_reported(code: int) -> None:
    member = ClassicMember(SETTINGS)
    member.join_request([])
    with pytest.raises(ApiError, match="group readers") as caught:
        refused(member, code)

    assert code == caught.value.error_code


def test_an_unknown_member_forgets_who_it_was() -> None:
    member = stable()
    refused(member, codes.UNKNOWN_MEMBER_ID)

    assert Generation() == member.generation


def test_a_member_of_an_older_generation_keeps_its_id() -> None:
    member = stable()
    member.handle_sync(SyncGroupResponse(error_code=codes.ILLEGAL_GENERATION))

    assert Generation(-1, "m") == member.generation


def test_another_type_of_group_is_refused() -> None:
    member = ClassicMember(SETTINGS)
    member.join_request([])
    with pytest.raises(ApiError, match="type connect") as caught:
        member.handle_join(JoinGroupResponse(protocol_type="connect", member_id="m"))

    assert codes.INCONSISTENT_GROUP_PROTOCOL == caught.value.error_code


def test_another_assignor_than_that_of_the_group_is_refused() -> None:
    member = ClassicMember(SETTINGS)
    member.join_request([("range", b"")])
    member.handle_join(JOINED)
    with pytest.raises(ApiError, match="range, but the SyncGroup response names sticky"):
        member.handle_sync(SyncGroupResponse(protocol_name="sticky"))


def test_a_heartbeat_reports_a_rebalance() -> None:
    member = stable()
    answer = HeartbeatResponse(error_code=codes.REBALANCE_IN_PROGRESS)

    assert Verdict.DONE == member.handle_heartbeat(answer, member.generation)
    assert "the group is rebalancing" == member.rejoin_reason
    assert MemberState.STABLE == member.state


def test_a_response_to_a_former_self_changes_nothing() -> None:
    member = stable()
    answer = HeartbeatResponse(error_code=codes.UNKNOWN_MEMBER_ID)

    assert Verdict.DONE == member.handle_heartbeat(answer, Generation(2, "m", "range"))
    assert Generation(3, "m", "range") == member.generation


def test_who_is_not_known_any_more_joins_anew() -> None:
    member = stable()
    member.handle_heartbeat(
        HeartbeatResponse(error_code=codes.UNKNOWN_MEMBER_ID), member.generation
    )

    assert member.has_lost_generation
    assert member.rejoin_reason is not None
    assert MemberState.UNJOINED == member.state


def test_a_heartbeat_reports_that_another_has_the_instance_id() -> None:
    settings = attrs.evolve(SETTINGS, instance_id="one")
    member = stable(settings)
    with pytest.raises(FencedInstanceIdError, match="'one'"):
        member.handle_heartbeat(
            HeartbeatResponse(error_code=codes.FENCED_INSTANCE_ID), member.generation
        )


def test_a_farewell_says_why_where_the_broker_listens() -> None:
    member = stable()

    assert LeaveGroupRequest(group_id="readers", member_id="m") == member.leave_request("bye", 2)
    assert [MemberIdentity(member_id="m", reason="bye")] == member.leave_request("bye", 5).members


def test_a_long_reason_is_cut() -> None:
    members = stable().leave_request("x" * 1000, 5).members

    assert [255] == [len(each.reason or "") for each in members]
