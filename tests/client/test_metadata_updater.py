from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.network_clients import NODE, be_able_to_send, poll_until
from support.scripted_node import ScriptedNode
from trionet.client.node import Node
from trionet.client.opening import open_network_client
from trionet.errors import AuthenticationError
from trionet.testing import MemoryNetwork

DENIED = AuthenticationError("node 2: no")


async def test_node_that_lets_nobody_in_leaves_a_question_to_another_alone(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """N18, KAFKA-8933."""
    other = Node(2, node.host, 9092)
    node.replies["Metadata"] = lambda _: None
    async with open_network_client(node.address, network=network) as client:
        await be_able_to_send(client, other)
        await poll_until(client, lambda: "Metadata" in node.names())
        [asked] = client._client._exchange.in_flight

        client._client._exchange._lost(other.id, DENIED, trio.current_time())

        assert client.authentication_error(other) is DENIED
        assert client.metadata.error is None
        assert [asked] == list(client._client._exchange.in_flight)


async def test_who_waits_for_metadata_hears_that_nobody_is_let_in(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    async with open_network_client("10.0.0.9:9092", network=network) as client:
        await be_able_to_send(client)
        await poll_until(client, lambda: client.connection_failed(Node(-1, "10.0.0.9", 9092)))

        async def wait() -> None:
            with pytest.raises(AuthenticationError, match="node 2: no"):
                await client.until_updated()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            client._client._exchange._lost(NODE.id, DENIED, trio.current_time())
            await client.poll()


async def test_who_begins_to_wait_after_a_failure_waits_for_the_next_attempt(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """What was wrong may have been put right meanwhile."""
    async with open_network_client(node.address, network=network) as client:
        client.metadata.failed(trio.current_time(), DENIED)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.run)
            await client.until_updated()
            nursery.cancel_scope.cancel()

        assert client.metadata.error is None
