"""Whom an admin client asks, in virtual time."""

from __future__ import annotations

import trio
from trio.testing import MockClock

import trionet
from support.network_clients import SETTINGS
from support.scripted_node import ScriptedNode
from trionet.client.admin import ConfigResource, ConfigResourceType
from trionet.client.admin._nodes import Nodes
from trionet.client.network._open_client import keep_polling, open_kafka_client
from trionet.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from trionet.protocol.messages.describe_configs import (
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from trionet.testing import MemoryNetwork

LARGE = CreateTopicsRequest(topics=[CreatableTopic(name="x" * 30_000) for _ in range(30)])


async def test_a_broker_that_is_busy_with_a_large_request_is_one_that_can_be_asked(
    network: MemoryNetwork, node: ScriptedNode, autojump_clock: MockClock
) -> None:
    node.replies["CreateTopics"] = lambda _: CreateTopicsResponse()

    async with (
        open_kafka_client(node.address, SETTINGS, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(keep_polling, client)
        nodes = Nodes(client)
        broker = await nodes.any()
        await client.until_ready(broker)
        client.send(broker, LARGE)
        assert not client.is_ready(broker)

        with trio.fail_after(1):
            assert broker == await nodes.any()
            await client.until_ready(broker)
        nursery.cancel_scope.cancel()


async def test_brokers_are_waited_for_while_the_client_begins_anew_at_its_bootstrap_servers(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """The client does so as soon as all brokers are lost (KIP-899)."""
    node = ScriptedNode(network)
    resource = ConfigResource(ConfigResourceType.BROKER, "1")
    node.replies["DescribeConfigs"] = lambda _: DescribeConfigsResponse(
        results=[DescribeConfigsResult(resource_type=resource.type, resource_name=resource.name)]
    )
    async with trionet.open_admin(node.address, network=network) as admin:
        async with node.listening():
            known = await admin.nodes()
        await trio.sleep(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen_after, 1, node)
            assert known == await admin.nodes()
            nursery.cancel_scope.cancel()
        await trio.sleep(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen_after, 1, node)
            assert {} == (await admin.describe_configs([resource])).checked()[resource]
            nursery.cancel_scope.cancel()


async def listen_after(seconds: float, node: ScriptedNode) -> None:
    await trio.sleep(seconds)
    async with node.listening():
        await trio.sleep_forever()
