"""Whom an admin client asks, in virtual time."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from support.network_clients import SETTINGS
from support.scripted_node import ScriptedNode
from trionet.client.admin._nodes import Nodes
from trionet.client.network._open_client import keep_polling, open_kafka_client
from trionet.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
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
