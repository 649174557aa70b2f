"""The connection to a bootstrap server is that of the node that is reached there."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from support.network_clients import HEARTBEAT, with_requests
from support.scripted_node import ScriptedNode
from trionet.client.network._cluster import Node
from trionet.client.network._open_client import open_network_client
from trionet.protocol.messages.heartbeat import HeartbeatResponse
from trionet.testing import MemoryNetwork, NetworkEvent

BOOTSTRAP = Node(-2, "10.0.0.1", 9092)


@pytest.fixture
def events() -> list[NetworkEvent]:
    return []


@pytest.fixture
def network(events: list[NetworkEvent]) -> MemoryNetwork:
    made = MemoryNetwork(trace=events.append)
    made.faults.delay_seconds = (0.01, 0.01)
    return made


def node_that_beats(network: MemoryNetwork, *brokers: tuple[int, str]) -> ScriptedNode:
    node = ScriptedNode(network, brokers=brokers)
    node.replies["Heartbeat"] = lambda _: HeartbeatResponse()
    return node


def connects(events: list[NetworkEvent]) -> int:
    return len([each for each in events if each.what == "connect"])


async def test_it_is_not_made_again(
    autojump_clock: MockClock, network: MemoryNetwork, events: list[NetworkEvent]
) -> None:
    scripted = node_that_beats(network)
    async with (
        scripted.listening(),
        open_network_client(scripted.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_updated()
        [node] = client.metadata.cluster.nodes.values()
        await client.request(node, HEARTBEAT)
        statistics = client.statistics()
        nursery.cancel_scope.cancel()

    assert 1 == connects(events)
    assert ["ApiVersions", "Metadata", "Heartbeat"] == scripted.names()
    assert {node.id} == statistics.nodes.keys()


async def test_what_was_asked_after_the_metadata_gets_a_response(
    autojump_clock: MockClock, network: MemoryNetwork, events: list[NetworkEvent]
) -> None:
    scripted = node_that_beats(network)
    async with (
        scripted.listening(),
        open_network_client(scripted.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        answer = await client.request(BOOTSTRAP, HEARTBEAT)
        [node] = client.metadata.cluster.nodes.values()
        is_ready = client.is_ready(node)
        nursery.cancel_scope.cancel()

    assert HeartbeatResponse() == answer
    assert is_ready
    assert 1 == connects(events)


async def test_nor_is_it_made_again_once_the_node_has_been_lost(
    autojump_clock: MockClock, network: MemoryNetwork, events: list[NetworkEvent]
) -> None:
    """The client then begins anew at the bootstrap server (KIP-899)."""
    scripted = node_that_beats(network)
    async with (
        open_network_client(scripted.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        async with scripted.listening():
            await client.until_updated()
            [node] = client.metadata.cluster.nodes.values()
            await client.request(node, HEARTBEAT)
        await trio.sleep(1)
        scripted.seen.clear()
        async with scripted.listening():
            await client.until_updated(client.metadata.request_update())
            await client.request(node, HEARTBEAT)
            nursery.cancel_scope.cancel()

    assert ["ApiVersions", "Metadata", "Heartbeat"] == scripted.names()


async def test_it_stays_the_servers_for_who_waits_for_that(
    autojump_clock: MockClock, network: MemoryNetwork, events: list[NetworkEvent]
) -> None:
    scripted = node_that_beats(network)
    settings = with_requests(in_flight_max=1)  # the response to Metadata has to come first
    async with (
        scripted.listening(),
        open_network_client(scripted.address, settings, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.request(BOOTSTRAP, HEARTBEAT)
        nursery.cancel_scope.cancel()

    assert 1 == connects(events)


async def test_of_several_nodes_that_say_they_are_there_none_has_it(
    autojump_clock: MockClock, network: MemoryNetwork, events: list[NetworkEvent]
) -> None:
    """Whose it is, a proxy in front of them may know."""
    scripted = node_that_beats(network, (1, "10.0.0.1"), (2, "10.0.0.1"))
    async with (
        scripted.listening(),
        open_network_client(scripted.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_updated()
        await client.request(client.metadata.cluster.nodes[1], HEARTBEAT)
        nursery.cancel_scope.cancel()

    assert 2 == connects(events)


async def test_a_server_that_is_no_node_by_that_name_keeps_it(
    autojump_clock: MockClock, network: MemoryNetwork, events: list[NetworkEvent]
) -> None:
    scripted = node_that_beats(network, (1, "10.0.0.2"))
    other = node_that_beats(network)
    other.host = "10.0.0.2"
    async with (
        scripted.listening(),
        other.listening(),
        open_network_client(scripted.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_updated()
        await client.request(client.metadata.cluster.nodes[1], HEARTBEAT)
        nursery.cancel_scope.cancel()

    assert ["ApiVersions", "Heartbeat"] == other.names()
    assert 2 == connects(events)
