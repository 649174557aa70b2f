"""DescribeCluster, versions 0 to 2 (KIP-700). There are no controllers to describe (KIP-919)."""

from __future__ import annotations

from ...protocol import error_codes
from ...protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from ..call import Call
from ..state import CLUSTER_OPERATIONS, BrokerState

BROKERS = 1
CONTROLLERS = 2


async def handle(
    broker: BrokerState, request: DescribeClusterRequest, call: Call
) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        is_known = request.endpoint_type == CONTROLLERS
        return DescribeClusterResponse(
            error_code=error_codes.MISMATCHED_ENDPOINT_TYPE
            if is_known
            else error_codes.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"endpoint type {request.endpoint_type} is not described here; brokers"
            " (endpoint type 1) are",
        )
    address = broker.advertised(call.listener_name)
    response = DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.node_id, host=address.host, port=address.port, rack=broker.rack
            )
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response
