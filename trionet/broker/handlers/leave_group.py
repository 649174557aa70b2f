"""LeaveGroup, versions 0 to 5: members leave at once instead of by silence.

From version 3 on several at a time, by member id or, static ones, by instance id (KIP-345).
"""

from __future__ import annotations

from ...protocol import error_codes
from ...protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from ..call import Call
from ..state import BrokerState

MANY_MEMBERS_VERSION = 3


async def handle(broker: BrokerState, request: LeaveGroupRequest, call: Call) -> LeaveGroupResponse:
    if not request.group_id:
        return LeaveGroupResponse(error_code=error_codes.INVALID_GROUP_ID)
    if call.version < MANY_MEMBERS_VERSION:
        error_code = broker.groups.leave(request.group_id, request.member_id, None)
        return LeaveGroupResponse(error_code=error_code)
    return LeaveGroupResponse(
        members=[_leave(broker, request.group_id, member) for member in request.members]
    )


def _leave(broker: BrokerState, group_id: str, member: MemberIdentity) -> MemberResponse:
    return MemberResponse(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        error_code=broker.groups.leave(group_id, member.member_id, member.group_instance_id),
    )
