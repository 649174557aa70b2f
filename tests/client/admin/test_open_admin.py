from __future__ import annotations

import pytest
from trio.testing import MockClock

import trionet
from support.scripted_node import ScriptedNode, Seen
from trionet import ConfigError, UnsupportedVersionError
from trionet.client.admin import AdminSettings, NewTopic
from trionet.protocol import error_codes
from trionet.protocol.api_keys import METADATA, VOTE
from trionet.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from trionet.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterResponse,
)
from trionet.testing import MemoryNetwork


@pytest.mark.parametrize(("servers", "controllers"), [(None, ""), ("a:1", "b:1"), (None, "b")])
async def test_either_brokers_or_controllers_are_asked(
    servers: str | None, controllers: str
) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.controllers"):
        async with trionet.open_admin(servers, bootstrap_controllers=controllers):
            pass


async def test_active_controller_is_found_without_brokers_and_again_when_it_has_moved(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """KIP-919."""
    hosts = [(1, "10.0.0.1"), (2, "10.0.0.2")]
    first, second = (ScriptedNode(network, number, host) for number, host in hosts)
    active = [1, 2]

    def described(_: Seen) -> DescribeClusterResponse:
        return DescribeClusterResponse(
            endpoint_type=2,
            controller_id=active.pop(0) if len(active) > 1 else active[0],
            brokers=[DescribeClusterBroker(broker_id=n, host=host, port=9092) for n, host in hosts],
        )

    def answered(error_code: int) -> CreateTopicsResponse:
        return CreateTopicsResponse(topics=[CreatableTopicResult(name="a", error_code=error_code)])

    for node in (first, second):
        del node.ranges[METADATA]
        node.ranges[VOTE] = (0, 0)
        node.replies["DescribeCluster"] = described
    first.replies["CreateTopics"] = lambda _: answered(error_codes.NOT_CONTROLLER)
    second.replies["CreateTopics"] = lambda _: answered(0)
    settings = AdminSettings(controllers=(first.address,))
    async with (
        first.listening(),
        second.listening(),
        trionet.open_admin(None, settings, network=network) as admin,
    ):
        (await admin.create_topics([NewTopic("a", 1)])).checked()
        with pytest.raises(UnsupportedVersionError, match="a controller does not support Metadata"):
            await admin.list_topics()

    asked = [seen.body for seen in (*first.seen, *second.seen) if seen.name == "DescribeCluster"]
    assert {2} == {each.endpoint_type for each in asked}
