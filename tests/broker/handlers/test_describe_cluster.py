from __future__ import annotations

import pytest

from support.client import Client, connect
from trionet import Broker, open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.describe_cluster import DescribeClusterRequest

# AclOperation numbers as bits: what may be done without an authorizer (KIP-430).
ALL_OF_A_CLUSTER = 0b1_1111_1010_0000
NOT_ASKED_FOR = -(2**31)


@pytest.mark.parametrize("version", range(3))
async def test_the_cluster_is_one_broker(broker: Broker, client: Client, version: int) -> None:
    response = await client.call(DescribeClusterRequest(), version)

    [node] = response.brokers
    assert (0, None, 1) == (response.error_code, response.error_message, response.endpoint_type)
    assert (broker.cluster_id, 1) == (response.cluster_id, response.controller_id)
    assert broker.bootstrap_servers == f"{node.host}:{node.port}"
    assert (1, None, False) == (node.broker_id, node.rack, node.is_fenced)
    assert NOT_ASKED_FOR == response.cluster_authorized_operations


async def test_what_may_be_done_is_reported_where_it_is_asked_for(client: Client) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)

    response = await client.call(request, 2)

    assert ALL_OF_A_CLUSTER == response.cluster_authorized_operations


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [
        (2, error_codes.MISMATCHED_ENDPOINT_TYPE),
        (0, error_codes.UNSUPPORTED_ENDPOINT_TYPE),
        (3, error_codes.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
async def test_only_brokers_can_be_described(client: Client, endpoint_type: int, code: int) -> None:
    response = await client.call(DescribeClusterRequest(endpoint_type=endpoint_type), 2)

    assert (code, []) == (response.error_code, response.brokers)
    assert f"endpoint type {endpoint_type}" in response.error_message


async def test_the_rack_and_the_id_are_those_of_the_settings() -> None:
    async with (
        open_broker(broker_rack="rack-a", node_id=7) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        response = await client.call(DescribeClusterRequest(), 2)

    assert (7, [(7, "rack-a")]) == (
        response.controller_id,
        [(node.broker_id, node.rack) for node in response.brokers],
    )
