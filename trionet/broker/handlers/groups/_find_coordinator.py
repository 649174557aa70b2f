"""Implements FindCoordinator, versions 0 to 6, which looks up a consumer group's coordinator.

Version 0 is served because librdkafka infers features from it.

For unsupported coordinator types, clients receive an error that they do not retry. When librdkafka
looks for its transaction coordinator, it retries until a timeout, except after an authorization
error. The Java client fails on any error that is not retriable. Only brokers look for the
coordinators of share groups; Apache Kafka returns INVALID_REQUEST if it does not serve such groups.

Gap: no transactions and no share groups.
"""

from __future__ import annotations

from ....protocol import api_keys, error_codes
from ....protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from ...api._call import Call
from ...api._dispatch import serves
from ...model._broker_state import BrokerState

GROUP = 0
_UNSUPPORTED = {
    1: (error_codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactions"),
    2: (error_codes.INVALID_REQUEST, "share groups"),
}
MANY_KEYS_VERSION = 4


@serves(api_keys.FIND_COORDINATOR, 0, 6, only_responds=True)
async def handle(
    broker: BrokerState, request: FindCoordinatorRequest, call: Call
) -> FindCoordinatorResponse:
    if call.version >= MANY_KEYS_VERSION:
        call.expect(len(request.coordinator_keys))
        keys = request.coordinator_keys
        found_all = (_find(broker, request.key_type, key, call) for key in keys)
        return FindCoordinatorResponse(coordinators=call.elements(found_all, len(keys)))
    found = _find(broker, request.key_type, request.key, call)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(broker: BrokerState, key_type: int, key: str, call: Call) -> Coordinator:
    if key_type == GROUP:
        coordinator = [broker.cluster.coordinator_of(key)]
        for node, address in broker.addresses(call.listener_name, coordinator):
            return Coordinator(
                key=key,
                node_id=node.node_id,
                host=address.host,
                port=address.port,
                error_code=error_codes.NONE,
                error_message=None,
            )
        code = error_codes.COORDINATOR_NOT_AVAILABLE
        message = "the coordinator of the group is not available"
    elif key_type in _UNSUPPORTED:
        code, what = _UNSUPPORTED[key_type]
        message = f"{what} are not supported by this broker"
    else:
        code = error_codes.INVALID_REQUEST
        message = f"unknown coordinator type {key_type}; allowed: 0, 1, 2"
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message
    )
