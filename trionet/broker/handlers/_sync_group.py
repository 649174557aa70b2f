"""SyncGroup, versions 0 to 5: the leader sends the assignments, each member gets its own.

The response is sent when the assignments are stored; the call holds no handler until then.
"""

from __future__ import annotations

from ...protocol import api_keys, error_codes
from ...protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ..api._call import Call
from ..api._dispatch import serves
from ..groups._group_calls import Caller, SyncGroupResult
from ..model._broker_state import BrokerState

# From this version on, the client states the protocol that it expects (KIP-559).
STATES_PROTOCOL_VERSION = 5


@serves(api_keys.SYNC_GROUP, 0, 5)
async def handle(
    broker: BrokerState, request: SyncGroupRequest, call: Call
) -> SyncGroupResponse | None:
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
        lambda result: call.respond(_response(result)),
    )
    return None


def _response(result: SyncGroupResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=result.error_code,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )
