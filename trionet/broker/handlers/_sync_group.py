"""SyncGroup, versions 0 to 5: the leader hands in the assignments, everybody gets its own.

The answer comes when the assignments are stored, and holds no handler until then.
"""

from __future__ import annotations

from ...protocol import api_keys, error_codes
from ...protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ..api._call import Call
from ..api._dispatch import serves
from ..groups._member import Caller
from ..groups._responses import SyncAnswer
from ..model._broker_state import BrokerState

# From here on the client says which protocol it believes to be the group's (KIP-559).
TELLS_PROTOCOL_VERSION = 5


@serves(api_keys.SYNC_GROUP, 0, 5)
async def handle(
    broker: BrokerState, request: SyncGroupRequest, call: Call
) -> SyncGroupResponse | None:
    protocol = (request.protocol_type, request.protocol_name)
    if call.version >= TELLS_PROTOCOL_VERSION and None in protocol:
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
        lambda answer: call.respond(_response(answer)),
    )
    return None


def _response(answer: SyncAnswer) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=answer.error_code,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol_name,
        assignment=answer.assignment,
    )
