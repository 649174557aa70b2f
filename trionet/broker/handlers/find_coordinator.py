"""FindCoordinator, versions 0 to 6: there are no groups or transactions yet, and it says so.

It is served from version 0 because librdkafka reads features off it. COORDINATOR_NOT_AVAILABLE is
the answer of a Kafka whose coordinator cannot be reached: clients that only assign partitions carry
on with it, and those that want a group see it by name.
"""

from __future__ import annotations

from ...protocol import error_codes
from ...protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ..call import Call
from ..state import BrokerState

_KINDS = {0: "consumer groups", 1: "transactions", 2: "share groups"}


async def handle(
    broker: BrokerState, request: FindCoordinatorRequest, call: Call
) -> FindCoordinatorResponse:
    kind = _KINDS.get(request.key_type)
    if kind is None:
        code = error_codes.INVALID_REQUEST
        message = f"coordinator type {request.key_type} is not known; 0, 1 and 2 are"
    else:
        code = error_codes.COORDINATOR_NOT_AVAILABLE
        message = f"{kind} are not supported by this broker; assign partitions instead"
    if call.version < 4:
        return FindCoordinatorResponse(
            error_code=code, error_message=message, node_id=-1, host="", port=-1
        )
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(
                key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message
            )
            for key in request.coordinator_keys
        ]
    )
