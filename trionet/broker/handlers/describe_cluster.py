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


async def handle(
    broker: BrokerState, request: DescribeClusterRequest, call: Call
) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=error_codes.MISMATCHED_ENDPOINT_TYPE,
            error_message="only brokers can be described here (endpoint type 1)",
            endpoint_type=request.endpoint_type,
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
