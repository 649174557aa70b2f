"""Heartbeat, versions 0 to 4: keeps a member's session alive; reports a rebalance."""

from __future__ import annotations

from ...protocol import api_keys
from ...protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ..api._call import Call
from ..api._dispatch import serves
from ..groups._group_calls import Caller
from ..model._broker_state import BrokerState


@serves(api_keys.HEARTBEAT, 0, 4)
async def handle(broker: BrokerState, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
    caller = Caller(request.member_id, request.group_instance_id, request.generation_id)
    return HeartbeatResponse(error_code=broker.groups.heartbeat(request.group_id, caller))
