"""JoinGroup, versions 0 to 9: joins a consumer group, or its next generation.

The response is sent when the generation is complete; the call holds no handler until then.
"""

from __future__ import annotations

from ...protocol import api_keys, error_codes
from ...protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..groups._group_calls import Join, JoinGroupResult
from ..model._broker_state import BrokerState

# From this version on, a new member has to join again with the id that it was assigned (KIP-394).
MUST_KNOW_ID_VERSION = 4
# Before this version, "no protocol" is encoded as "" instead of null.
NULL_PROTOCOL_VERSION = 7
CAN_SKIP_ASSIGNMENT_VERSION = 9


@serves(api_keys.JOIN_GROUP, 0, 9)
async def handle(
    broker: BrokerState, request: JoinGroupRequest, call: Call
) -> JoinGroupResponse | None:
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
        request.group_id, join, lambda result: call.respond(_response(result, call.version))
    )
    return None


def _response(result: JoinGroupResult, version: int) -> JoinGroupResponse:
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
