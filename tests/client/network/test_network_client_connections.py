"""Connections that fail, take too long, are lost and are made again; and which node is asked."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from support.network_clients import (
    HEARTBEAT,
    NODE,
    SETTINGS,
    be_able_to_send,
    become_ready,
    outcomes,
    poll_until,
)
from support.scripted_node import NamedNetwork, ScriptedNode
from trionet.client._backoff import ExponentialBackoff
from trionet.client.network._cluster import Cluster, Node
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._open_client import ClientSettings, open_network_client
from trionet.client.network._responses import ClientResponse
from trionet.errors import DisconnectedError
from trionet.net.wire._connecting import Address
from trionet.net.wire._readiness import READ
from trionet.protocol.messages.heartbeat import HeartbeatResponse
from trionet.testing import MemoryNetwork

NOWHERE = "10.0.0.9:9092"


def with_reconnect(first_seconds: float, seconds_max: float) -> ClientSettings:
    backoff = ExponentialBackoff(first_seconds, seconds_max)
    return attrs.evolve(SETTINGS, times=attrs.evolve(SETTINGS.times, reconnect=backoff))


def know(client: NetworkClient, *nodes: Node) -> None:
    """Have the client know these nodes, and nothing to ask them for."""
    client.metadata.cluster = Cluster(nodes={each.id: each for each in nodes})
    client.metadata._wanted = False
    client.metadata._succeeded_at = trio.current_time()


async def test_host_without_an_address_is_not_ready_and_raises_nothing(
    autojump_clock: MockClock,
) -> None:
    """N3."""
    network = NamedNetwork()
    async with open_network_client("nowhere:9092", network=network) as client:
        unknown = Node(3, "unknown", 9092)
        assert not client.ready(unknown)
        await poll_until(client, lambda: client.connection_failed(unknown))

        assert not client.is_ready(unknown)
    assert "unknown" in network.lookups


async def test_connects_without_a_response_end_after_their_time(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """N11."""
    one, two = Node(1, "10.0.0.1", 9092), Node(2, "10.0.0.2", 9092)
    network.separate(["127.0.0.1"], ["10.0.0.1", "10.0.0.2", "10.0.0.9"])
    async with open_network_client(NOWHERE, network=network) as client:
        client.ready(one)
        client.ready(two)
        with trio.move_on_after(7.9):
            await client.run()
        assert not client.connection_failed(one)
        assert not client.connection_failed(two)
        with trio.move_on_after(4.2):
            await client.run()

        assert client.connection_failed(one)
        assert client.connection_failed(two)


async def test_delay_of_a_connection(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """N20."""
    settings = with_reconnect(0.05, 0.05)
    async with open_network_client(NOWHERE, settings, network=network) as client:
        assert 0 == client.connection_delay(NODE)
        await be_able_to_send(client)
        assert math.inf == client.connection_delay(NODE)
        for _ in range(3):
            client.disconnect(NODE)
            assert 0.05 == pytest.approx(client.connection_delay(NODE))
            await be_able_to_send(client)


async def test_delay_grows_with_each_failure_in_a_row(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """N21."""
    settings = with_reconnect(0.05, 10.0)
    async with open_network_client(NOWHERE, settings, network=network) as client:
        for expected in (0.05, 0.1, 0.2, 0.4, 0.8):
            client.ready(NODE)
            await poll_until(client, lambda: client.connection_failed(NODE))

            assert expected * 0.7 <= client.connection_delay(NODE) <= expected * 1.2
            await trio.sleep(client.connection_delay(NODE))


async def test_requests_of_an_ended_connection_come_back_in_their_order(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """N25."""
    told: list[ClientResponse] = []
    async with open_network_client(NOWHERE, network=network) as client:
        await be_able_to_send(client)
        sent = [client.send(NODE, HEARTBEAT, told.append) for _ in range(2)]
        client.disconnect(NODE)
        found = await outcomes(client, 2)

        assert sent == [each.correlation_id for each in found]
        assert found == told
        assert all(isinstance(each.error, DisconnectedError) for each in found)


async def test_ended_connection_may_not_be_made_again_at_once(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """N26."""
    async with open_network_client(NOWHERE, network=network) as client:
        await be_able_to_send(client)
        client.disconnect(NODE)

        assert client.connection_failed(NODE)
        assert not client.begin_connect(NODE, trio.current_time())
        await trio.sleep(client.connection_delay(NODE))
        client.disconnect(NODE)  # there is nothing left to end
        assert 0 == client.connection_delay(NODE)
        assert client.begin_connect(NODE, trio.current_time())


async def test_lost_connection_is_made_to_where_the_name_points_now(
    autojump_clock: MockClock,
) -> None:
    """N28."""
    network = NamedNetwork(broker=["10.0.0.1", "10.0.0.2"])
    first, second = ScriptedNode(network), ScriptedNode(network, host="10.0.0.5")
    broker = Node(1, "broker", 9092)
    async with (
        first.listening(),
        second.listening(),
        open_network_client(NOWHERE, network=network) as client,
    ):
        await be_able_to_send(client, broker)
        network.names["broker"] = ["10.0.0.5"]
        network.kill_host("10.0.0.1")
        await poll_until(client, lambda: client.connection_failed(broker))
        await be_able_to_send(client, broker)

    assert ["ApiVersions"] == second.names()
    assert ["broker", "broker"] == [name for name in network.lookups if name == "broker"]


async def test_address_that_refuses_is_followed_by_the_next(autojump_clock: MockClock) -> None:
    """N29."""
    network = NamedNetwork(broker=["10.0.0.4", "10.0.0.1"])
    node = ScriptedNode(network)
    broker = Node(1, "broker", 9092)
    async with node.listening(), open_network_client(NOWHERE, network=network) as client:
        client.ready(broker)
        await poll_until(client, lambda: client.connection_failed(broker))
        await be_able_to_send(client, broker)

    assert ["ApiVersions"] == node.names()
    assert 1 == network.lookups.count("broker")


async def test_new_addresses_are_tried_in_turn_after_a_loss(autojump_clock: MockClock) -> None:
    """N30."""
    network = NamedNetwork(broker=["10.0.0.1"])
    first, second = ScriptedNode(network), ScriptedNode(network, host="10.0.0.5")
    broker = Node(1, "broker", 9092)
    async with (
        first.listening(),
        second.listening(),
        open_network_client(NOWHERE, network=network) as client,
    ):
        await be_able_to_send(client, broker)
        network.names["broker"] = ["10.0.0.4", "10.0.0.5"]
        network.kill_host("10.0.0.1")
        await poll_until(client, lambda: client.connection_failed(broker))
        await be_able_to_send(client, broker)

    assert ["ApiVersions"] == second.names()
    assert 2 == network.lookups.count("broker")


async def test_node_that_is_closed_while_connecting_leaves_no_trace(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """N31."""
    async with open_network_client(NOWHERE, network=network) as client:
        client.ready(NODE)
        client.close(NODE)
        for _ in range(5):
            await client.poll(0)
        assert not client.connection_failed(NODE)

        await be_able_to_send(client, Node(2, node.host, 9092))
        await be_able_to_send(client)


async def test_only_node_is_the_least_loaded(
    autojump_clock: MockClock, client: NetworkClient
) -> None:
    """N15."""
    know(client, NODE)
    client.ready(NODE)
    assert (NODE, False) == client.least_loaded_node(trio.current_time())
    await become_ready(client)
    assert (NODE, True) == client.least_loaded_node(trio.current_time())
    client.disconnect(NODE)

    assert (None, False) == client.least_loaded_node(trio.current_time())


async def test_full_node_is_not_the_least_loaded_but_ready(
    autojump_clock: MockClock, client: NetworkClient
) -> None:
    """N16."""
    know(client, NODE)
    await become_ready(client)
    for _ in range(5):
        client.send(NODE, HEARTBEAT)

    assert (None, True) == client.least_loaded_node(trio.current_time())


async def test_idle_node_goes_before_a_busy_one(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    other = Node(2, node.host, 9092)
    know(client, NODE, other)
    await become_ready(client)
    await become_ready(client, other)
    client.send(NODE, HEARTBEAT)

    assert {other} == {client.least_loaded_node(0)[0] for _ in range(20)}
    client.send(other, HEARTBEAT)
    client.send(other, HEARTBEAT)
    assert {NODE} == {client.least_loaded_node(0)[0] for _ in range(20)}


async def test_each_unreachable_node_is_offered_once_a_round(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """N17."""
    nodes = [Node(number, f"10.0.0.{number}", 9092) for number in (1, 2, 3)]
    settings = with_reconnect(0.001, 0.001)
    async with open_network_client(NOWHERE, settings, network=network) as client:
        know(client, *nodes)
        for _ in range(3):
            offered = []
            for _ in nodes:
                await trio.sleep(0.01)
                node, has_ready = client.least_loaded_node(trio.current_time())
                assert node is not None
                assert not has_ready
                offered.append(node.id)
                client.begin_connect(node, trio.current_time())
                await poll_until(client, partial(client.connection_failed, node))

            assert [1, 2, 3] == sorted(offered)


async def test_socket_that_is_written_to_is_watched_for_reading_alone(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    async with open_network_client(NOWHERE, network=network) as client:
        await be_able_to_send(client)
        channel = client._client._connections.channel(NODE.id)

        assert channel is not None
        assert READ == channel.interest


@pytest.mark.parametrize("is_silent", [False, True])
async def test_metadata_are_asked_for_again_when_a_node_is_lost(
    autojump_clock: MockClock, network: MemoryNetwork, is_silent: bool
) -> None:
    """X17."""
    brokers = [(1, "10.0.0.1"), (2, "10.0.0.2")]
    one = ScriptedNode(network, 1, "10.0.0.1", brokers)
    two = ScriptedNode(network, 2, "10.0.0.2", brokers)
    async with (
        one.listening(),
        two.listening(),
        open_network_client(one.address, network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_updated()
        nodes = client.metadata.cluster.nodes
        await client.until_ready(nodes[2])
        await client.until_ready(nodes[1])
        updates = client.metadata.updates
        network.kill_host("10.0.0.2", is_silent=is_silent)
        if is_silent:
            with pytest.raises(DisconnectedError):
                await client.request(nodes[2], HEARTBEAT)
        with trio.fail_after(10):
            await client.until_updated(updates)
        nursery.cancel_scope.cancel()


async def test_connects_without_a_response_cost_no_turns(autojump_clock: MockClock) -> None:
    """Metadata are due all the time, and a connect or its end is all that helps."""
    network = NamedNetwork(slow=["10.0.0.1"])
    network.separate(["127.0.0.1"], ["10.0.0.1"])
    polls = 0
    async with open_network_client("slow:9092", network=network) as client:
        while trio.current_time() < 60:
            await client.poll()
            polls += 1

    assert polls < 60


async def test_throttled_node_is_no_reason_to_start_again(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    node.replies["Heartbeat"] = lambda _: HeartbeatResponse(throttle_time_ms=5000)
    await become_ready(client)
    client.send(NODE, HEARTBEAT)
    await outcomes(client)
    client.metadata.request_update()
    with trio.move_on_after(3):
        await client.run()

    assert not client.metadata.cluster.is_bootstrap


async def test_port_is_that_of_the_node_and_not_of_an_older_look_up(
    autojump_clock: MockClock,
) -> None:
    network = NamedNetwork(name=["10.0.0.1", "10.0.0.2"], first=["10.0.0.2"])
    moved = Node(5, "name", 9092)
    async with (
        ScriptedNode(network, 6, "10.0.0.2", [(6, "first")]).listening(),
        open_network_client("first:9092", network=network) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        with pytest.raises(DisconnectedError):
            await client.until_ready(Node(5, "name", 1))
        with trio.fail_after(60):
            await client.until_ready(moved)
        nursery.cancel_scope.cancel()


async def test_failed_connect_is_a_warning_and_an_idle_end_is_none(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    node: ScriptedNode,
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = ClientSettings(idle_seconds_max=5.0)
    async with open_network_client(node.address, settings, network=network) as client:
        await become_ready(client)
        await poll_until(client, lambda: client.connection_failed(NODE))
        assert 0.04 <= client.connection_delay(NODE) <= 0.06
        assert [] == caplog.records
        await trio.sleep(1)
        network.kill_host("10.0.0.1")
        client.ready(NODE)
        await poll_until(client, lambda: client.connection_failed(NODE))

    assert ["WARNING"] == [each.levelname for each in caplog.records if "(node 1)" in each.message]


class SlowNames(NamedNetwork):
    """Names are looked up when the test says so.

    Attributes:
        may_answer: look-ups end.
        opened: how many sockets were opened.
    """

    def __init__(self) -> None:
        super().__init__(broker=["10.0.0.1"])
        self.may_answer = trio.Event()
        self.opened = 0

    async def resolve(self, host: str, port: int) -> list[Address]:
        found = await super().resolve(host, port)
        await self.may_answer.wait()
        return found

    def open_socket(self, *args: Any, **settings: Any) -> Any:
        self.opened += 1
        return super().open_socket(*args, **settings)


async def test_look_up_that_ends_as_the_client_is_closed_opens_no_connection() -> None:
    network = SlowNames()
    async with open_network_client("broker:9092", network=network) as client:
        client.ready(Node(1, "broker", 9092))
        await trio.testing.wait_all_tasks_blocked()
        network.may_answer.set()

    assert 0 == network.opened
