"""A node that says nothing holds up a client for two seconds, and not for its time limits."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import attrs
import pytest
import trio
from trio.testing import MockClock

import trionet
from support.scripted_node import NamedNetwork, ScriptedNode
from support.secured_clients import over_tls, polled_client, tls_listener
from trionet.client.network._cluster import Cluster, Node
from trionet.client.network._connection_states import PATIENCE_SECONDS
from trionet.client.network._kafka_client import KafkaClient
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._open_client import (
    open_kafka_client,
    open_network_client,
    until_any_ready,
)
from trionet.net.wire._connecting import Address
from trionet.testing import MemoryNetwork

HERE, SILENT, GOOD = "127.0.0.1", "10.0.0.8", "10.0.0.1"
BOTH = f"{SILENT}:9092,{GOOD}:9092"
#: On a network without delays everything else takes no time.
SOON = PATIENCE_SECONDS + 0.1


@pytest.fixture(params=range(4))
def network(request: pytest.FixtureRequest) -> MemoryNetwork:
    """By its seed, now the one and now the other node is tried first."""
    return MemoryNetwork(request.param)


@pytest.fixture(params=["accepts", "drops"])
async def silent(
    request: pytest.FixtureRequest, network: MemoryNetwork
) -> AsyncIterator[ScriptedNode]:
    """A node that accepts connections and never responds, or one whose packets are lost."""
    node = ScriptedNode(network, 8, SILENT)
    node.replies.clear()
    if request.param == "drops":
        network.separate([HERE], [SILENT])
    async with node.listening():
        yield node


def connections_of(network: MemoryNetwork) -> int:
    """How many sockets the client has open."""
    return sum(each.address[0] == HERE for each in network.open_sockets)


async def seconds_until_described(client: NetworkClient, updates: int = 0) -> float:
    began_at = trio.current_time()
    with trio.fail_after(100):
        await client.until_updated(updates)
    return trio.current_time() - began_at


async def test_next_bootstrap_server_is_tried_beside_a_silent_one_and_the_loser_is_closed(
    autojump_clock: MockClock, network: MemoryNetwork, silent: ScriptedNode, node: ScriptedNode
) -> None:
    async with (
        open_network_client(BOTH, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)

        assert await seconds_until_described(client) <= SOON
        assert 1 == connections_of(network)
        nursery.cancel_scope.cancel()


async def test_slow_server_is_used_when_it_responds_in_the_end(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """Its attempt goes on beside those at the others."""
    slow = ScriptedNode(network, 8, SILENT)
    network.separate([HERE], [SILENT])
    async with (
        slow.listening(),
        open_network_client(BOTH, network=network) as client,  # the other one refuses
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await trio.sleep(PATIENCE_SECONDS + 1)
        network.heal()

        assert await seconds_until_described(client) <= 0.1
        assert client.metadata.cluster.nodes == {8: Node(8, SILENT, 9092)}
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("servers", ["hanging:9092,good:9092", "good:9092,hanging:9092"])
async def test_the_next_server_is_tried_beside_a_name_whose_look_up_hangs(
    autojump_clock: MockClock, servers: str
) -> None:
    """Whichever of them is tried first."""

    class Hanging(NamedNetwork):
        async def resolve(self, host: str, port: int) -> list[Address]:
            if host == "hanging":
                await trio.sleep_forever()
            return await super().resolve(host, port)

    network = Hanging(good=[GOOD])
    async with (
        ScriptedNode(network).listening(),
        open_network_client(servers, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)

        assert await seconds_until_described(client) <= SOON
        nursery.cancel_scope.cancel()


async def test_the_next_server_is_tried_beside_stalled_tls_handshakes() -> None:
    with (
        socket.create_server((HERE, 0)) as one,
        socket.create_server((HERE, 0)) as other,
    ):
        stalled = [f"{HERE}:{each.getsockname()[1]}" for each in (one, other)]
        async with trionet.open_broker(tls_listener()) as broker:
            servers = ",".join([*stalled, broker.bootstrap_servers])
            async with polled_client(servers, over_tls()) as client:
                with trio.fail_after(8):  # less than socket.connection.setup.timeout.ms
                    await client.until_updated()


async def test_metadata_come_from_another_broker_than_the_silent_one(
    autojump_clock: MockClock, network: MemoryNetwork, silent: ScriptedNode, node: ScriptedNode
) -> None:
    """As after the loss of all connections: both brokers are known, and neither is connected."""
    async with (
        open_network_client(f"{GOOD}:9092", network=network) as client,
        trio.open_nursery() as nursery,
    ):
        know(client, Node(8, SILENT, 9092), Node(1, GOOD, 9092))
        nursery.start_soon(client.run)
        updates = client.metadata.request_update()

        assert await seconds_until_described(client, updates) <= SOON
        nursery.cancel_scope.cancel()


async def test_what_any_broker_can_do_is_not_asked_of_the_silent_one(
    autojump_clock: MockClock, network: MemoryNetwork, silent: ScriptedNode, node: ScriptedNode
) -> None:
    """As where admin clients ask any broker, or a consumer asks for its coordinator."""
    good = Node(1, GOOD, 9092)
    async with (
        open_kafka_client(f"{GOOD}:9092", network=network) as client,
        trio.open_nursery() as nursery,
    ):
        know(client, Node(8, SILENT, 9092), good)
        client.metadata._wanted = False
        client.metadata._succeeded_at = trio.current_time()
        nursery.start_soon(client.run)
        began_at = trio.current_time()
        with trio.fail_after(100):
            found = await until_any_ready(client)

        assert good == found
        assert trio.current_time() - began_at <= SOON
        nursery.cancel_scope.cancel()


def know(client: KafkaClient | NetworkClient, *nodes: Node) -> None:
    client.metadata.cluster = attrs.evolve(Cluster(), nodes={each.id: each for each in nodes})
