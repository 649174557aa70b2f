"""Implements DescribeCluster, versions 0 to 2, for brokers (KIP-700), not controllers (KIP-919)."""

from __future__ import annotations

from ...protocol import api_keys, error_codes
from ...protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..model._broker_state import CLUSTER_OPERATIONS, BrokerState

BROKERS = 1
CONTROLLERS = 2


@serves(api_keys.DESCRIBE_CLUSTER, 0, 2, only_responds=True)
async def handle(
    broker: BrokerState, request: DescribeClusterRequest, call: Call
) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        is_known = request.endpoint_type == CONTROLLERS
        return DescribeClusterResponse(
            error_code=error_codes.MISMATCHED_ENDPOINT_TYPE
            if is_known
            else error_codes.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"endpoint type {request.endpoint_type} is not supported;"
            " allowed: 1 (brokers)",
        )
    leadership = broker.cluster.leadership
    response = DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=leadership.controller,
        brokers=[
            DescribeClusterBroker(
                broker_id=node.node_id, host=address.host, port=address.port, rack=node.rack
            )
            for node, address in broker.addresses(call.listener_name, leadership.nodes)
        ],
    )
    if request.include_fenced_brokers:
        response.brokers += [
            DescribeClusterBroker(
                broker_id=node.node_id,
                host=address.host,
                port=address.port,
                rack=node.rack,
                is_fenced=True,
            )
            for node in broker.cluster.nodes.values()
            if not leadership.is_live(node.node_id)
            for address in [node.advertised(call.listener_name)]
        ]
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response
