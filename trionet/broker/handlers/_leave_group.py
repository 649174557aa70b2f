"""LeaveGroup, versions 0 to 5: members leave at once, instead of when their sessions expire.

From version 3 on several members, by member id or, if static, by instance id (KIP-345).
"""

from __future__ import annotations

from itertools import islice

from ...protocol import api_keys, error_codes
from ...protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from ..api._call import Call
from ..api._dispatch import serves
from ..model._broker_state import BrokerState

MANY_MEMBERS_VERSION = 3
# More members leave in several steps, as if by several requests.
LEFT_AT_ONCE = 1000


@serves(api_keys.LEAVE_GROUP, 0, 5)
async def handle(broker: BrokerState, request: LeaveGroupRequest, call: Call) -> LeaveGroupResponse:
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
