"""Heartbeat, versions 0 to 4: a member is there; it is told when a rebalance has begun."""

from __future__ import annotations

from ...protocol import api_keys
from ...protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ..api._call import Call
from ..api._dispatch import serves
from ..groups._member import Caller
from ..model._broker_state import BrokerState


@serves(api_keys.HEARTBEAT, 0, 4)
async def handle(broker: BrokerState, request: HeartbeatRequest, call: Call) -> HeartbeatResponse:
    caller = Caller(request.member_id, request.group_instance_id, request.generation_id)
    return HeartbeatResponse(error_code=broker.groups.heartbeat(request.group_id, caller))
