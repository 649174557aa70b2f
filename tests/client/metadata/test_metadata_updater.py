from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.network_clients import NODE, be_able_to_send, become_ready, poll_until
from support.scripted_node import Hangup, ScriptedNode
from trionet.client._node import Node
from trionet.client.network._open_client import open_network_client
from trionet.errors import AuthenticationError
from trionet.protocol.messages.metadata import MetadataResponse
from trionet.testing import MemoryNetwork

DENIED = AuthenticationError("node 2: no")


async def test_node_that_rejects_clients_leaves_a_request_to_another_alone(
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


async def test_a_wait_for_metadata_ends_with_the_failed_authentication(
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


async def test_metadata_that_are_due_go_before_requests_of_users(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """Or a busy client would never get them."""
    async with open_network_client(node.address, network=network) as client:
        await become_ready(client)
        await trio.sleep(1)
        updates = client.metadata.request_update()

        assert not client.is_ready(NODE)
        assert client.can_send(NODE.id, trio.current_time())
        await become_ready(client)
        assert updates < client.metadata.updates


async def test_metadata_are_not_asked_for_while_a_request_for_them_is_under_way(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    node.replies["Metadata"] = lambda _: None
    async with open_network_client(node.address, network=network) as client:
        await poll_until(client, lambda: "Metadata" in node.names())
        for _ in range(5):
            await client.poll(1)

        assert 1 == node.names().count("Metadata")


async def test_metadata_are_asked_for_again_after_a_request_for_them_was_lost(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """X17."""
    replies: list[Hangup | MetadataResponse] = [Hangup(), node.metadata()]
    node.replies["Metadata"] = lambda _: replies.pop(0)
    async with open_network_client(node.address, network=network) as client:
        with trio.fail_after(60):
            await poll_until(client, lambda: client.metadata.updates)

        assert ["Metadata"] * 2 == [name for name in node.names() if name == "Metadata"]
