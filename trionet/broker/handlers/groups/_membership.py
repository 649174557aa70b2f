"""Implements consumer group membership: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from __future__ import annotations

from itertools import islice

from ....protocol import api_keys, error_codes
from ....protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ....protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from ....protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from ....protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ...api._call import Call
from ...api._dispatch import serves
from ...groups._group_calls import Caller, Join, JoinGroupResult, SyncGroupResult
from ...model._broker_state import BrokerState

# From this version on, a new member must rejoin with the member id that it is assigned (KIP-394).
MUST_KNOW_ID_VERSION = 4
# Before this version, "no protocol" is encoded as "" instead of null.
NULL_PROTOCOL_VERSION = 7
CAN_SKIP_ASSIGNMENT_VERSION = 9
# From this version on, clients send the protocol that they expect (KIP-559).
STATES_PROTOCOL_VERSION = 5
MANY_MEMBERS_VERSION = 3
# More members leave in several steps, as if by several requests.
LEFT_AT_ONCE = 1000


@serves(api_keys.JOIN_GROUP, 0, 9)
async def join_group(
    broker: BrokerState, request: JoinGroupRequest, call: Call
) -> JoinGroupResponse | None:
    """Handle JoinGroup, versions 0 to 9: join a consumer group, or rejoin in a rebalance.

    The response is sent once the join phase is complete. Until then, the call occupies no handler.
    """
    if len(request.protocols) > broker.config.integer("group.member.max.protocols"):
        return JoinGroupResponse(
            error_code=error_codes.INCONSISTENT_GROUP_PROTOCOL, member_id=request.member_id
        )
    rebalance_ms = request.rebalance_timeout_ms
    if call.version == 0:
        rebalance_ms = request.session_timeout_ms
    join = Join(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=call.client_id or "",
        client_host=f"/{call.request.peer_address}",
        session_seconds=request.session_timeout_ms / 1000,
        rebalance_seconds=rebalance_ms / 1000,
        protocol_type=request.protocol_type,
        protocols={each.name: bytes(each.metadata) for each in request.protocols},
        must_know_id=call.version >= MUST_KNOW_ID_VERSION,
        can_skip_assignment=call.version >= CAN_SKIP_ASSIGNMENT_VERSION,
    )
    call.request.release()  # the call may wait for minutes
    broker.groups.join(
        request.group_id, join, lambda result: call.respond(_join_response(result, call.version))
    )
    return None


def _join_response(result: JoinGroupResult, version: int) -> JoinGroupResponse:
    protocol_name = result.protocol_name
    if protocol_name is None and version < NULL_PROTOCOL_VERSION:
        protocol_name = ""
    return JoinGroupResponse(
        error_code=result.error_code,
        generation_id=result.generation,
        protocol_type=result.protocol_type,
        protocol_name=protocol_name,
        leader=result.leader_id,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=each.id, group_instance_id=each.instance_id, metadata=each.metadata
            )
            for each in result.members
        ],
    )


@serves(api_keys.SYNC_GROUP, 0, 5)
async def sync_group(
    broker: BrokerState, request: SyncGroupRequest, call: Call
) -> SyncGroupResponse | None:
    """Handle SyncGroup, versions 0 to 5: store the leader's assignments, return the caller's own.

    The response is sent once the assignments are stored. Until then, the call occupies no handler.
    """
    protocol = (request.protocol_type, request.protocol_name)
    if call.version >= STATES_PROTOCOL_VERSION and None in protocol:
        return SyncGroupResponse(error_code=error_codes.INCONSISTENT_GROUP_PROTOCOL)
    call.expect(len(request.assignments))
    assignments = {}
    for each in request.assignments:
        if call.must_pause():
            await call.pause()
        assignments[each.member_id] = bytes(each.assignment)
    call.request.release()
    broker.groups.sync(
        request.group_id,
        Caller(request.member_id, request.group_instance_id, request.generation_id),
        protocol,
        assignments,
        lambda result: call.respond(_sync_response(result)),
    )
    return None


def _sync_response(result: SyncGroupResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=result.error_code,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )


@serves(api_keys.HEARTBEAT, 0, 4)
async def heartbeat(
    broker: BrokerState, request: HeartbeatRequest, call: Call
) -> HeartbeatResponse:
    """Handle Heartbeat, versions 0 to 4: extend a member's session, and report a rebalance."""
    caller = Caller(request.member_id, request.group_instance_id, request.generation_id)
    return HeartbeatResponse(error_code=broker.groups.heartbeat(request.group_id, caller))


@serves(api_keys.LEAVE_GROUP, 0, 5)
async def leave_group(
    broker: BrokerState, request: LeaveGroupRequest, call: Call
) -> LeaveGroupResponse:
    """Handle LeaveGroup, versions 0 to 5: remove members before their sessions expire.

    From version 3, a request may name several members by member id, or static members by instance
    id (KIP-345).
    """
    if not request.group_id:
        return LeaveGroupResponse(error_code=error_codes.INVALID_GROUP_ID)
    if call.version < MANY_MEMBERS_VERSION:
        [error_code] = broker.groups.leave(request.group_id, [(request.member_id, None)])
        return LeaveGroupResponse(error_code=error_code)
    call.expect(len(request.members))
    members = []
    left = iter(request.members)
    while some := list(islice(left, LEFT_AT_ONCE)):
        leaving = [(member.member_id, member.group_instance_id) for member in some]
        codes = broker.groups.leave(request.group_id, leaving)
        members += [
            MemberResponse(member_id=id, group_instance_id=instance_id, error_code=error_code)
            for (id, instance_id), error_code in zip(leaving, codes, strict=True)
        ]
        if call.must_pause():
            await call.pause()
    return LeaveGroupResponse(members=members)
