"""A client whose nodes its owner gives, and that asks for nothing by itself."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.network_clients import (
    HEARTBEAT,
    NODE,
    SETTINGS,
    be_able_to_send,
    become_ready,
    outcomes,
    poll_until,
)
from support.scripted_node import Hangup, ScriptedNode
from trionet import Broker, ManualMetadataUpdater, Node, open_broker, open_network_client
from trionet.client import NetworkClient
from trionet.client._network_settings import MetadataTimes
from trionet.client.network._telemetry import TelemetrySettings
from trionet.errors import AuthenticationError, ConfigError, DisconnectedError, LocalProtocolError
from trionet.protocol.messages.describe_cluster import DescribeClusterRequest
from trionet.protocol.messages.metadata import MetadataRequest, MetadataResponse
from trionet.testing import MemoryNetwork

DENIED = AuthenticationError("node 2: no")


async def test_node_that_rejects_clients_leaves_a_request_to_another_alone(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    """N18, KAFKA-8933."""
    other = Node(2, node.host, 9092)
    node.replies["Metadata"] = lambda _: None
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
        await poll_until(client, lambda: client.connection_failed(Node(-2, "10.0.0.9", 9092)))

        async def wait() -> None:
            with pytest.raises(AuthenticationError, match="node 2: no"):
                await client.until_updated()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            client._client._exchange._lost(NODE.id, DENIED, trio.current_time())
            await client.poll()


async def test_who_begins_to_wait_after_a_failure_waits_for_the_next_attempt(
    autojump_clock: MockClock, client: NetworkClient
) -> None:
    """What was wrong may have been put right meanwhile."""
    client.metadata.failed(trio.current_time(), DENIED)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.run)
        await client.until_updated()
        nursery.cancel_scope.cancel()

    assert client.metadata.error is None


async def test_metadata_that_are_due_go_before_requests_of_users(
    autojump_clock: MockClock, client: NetworkClient
) -> None:
    """Or a busy client would never get them."""
    await become_ready(client)
    await trio.sleep(1)
    updates = client.metadata.request_update()

    assert not client.is_ready(NODE)
    assert client.can_send(NODE.id, trio.current_time())
    await become_ready(client)
    assert updates < client.metadata.updates


async def test_metadata_are_not_asked_for_while_a_request_for_them_is_under_way(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    node.replies["Metadata"] = lambda _: None
    await poll_until(client, lambda: "Metadata" in node.names())
    for _ in range(5):
        await client.poll(1)

    assert 1 == node.names().count("Metadata")


async def test_metadata_are_asked_for_again_after_a_request_for_them_was_lost(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    """X17."""
    replies: list[Hangup | MetadataResponse] = [Hangup(), node.metadata()]
    node.replies["Metadata"] = lambda _: replies.pop(0)
    with trio.fail_after(60):
        await poll_until(client, lambda: client.metadata.updates)

    assert ["Metadata"] * 2 == [name for name in node.names() if name == "Metadata"]


A = Node(1, "10.0.0.1", 9092)
B = Node(2, "10.0.0.2", 9092)


def nodes_of(broker: Broker, *ids: int) -> list[Node]:
    """The nodes of a broker, where they really listen."""
    endpoints = {id: broker.endpoints_of(id)[0] for id in ids}
    return [Node(id, each.host, each.port) for id, each in endpoints.items()]


def asked_of(broker: Broker) -> set[str]:
    """The APIs that were asked of all nodes."""
    with broker.watch() as metrics:
        samples = metrics.snapshot()["kafka_network_requestmetrics_requests_total"].samples
    return {sample.labels[0] for sample in samples if sample.value}


def chosen(client: NetworkClient) -> set[Node | None]:
    """The nodes that a request for any of them may go to."""
    return {client.least_loaded_node(trio.current_time())[0] for _ in range(100)}


async def ask_until_lost(client: NetworkClient, node: Node) -> None:
    while True:
        await client.request(node, DescribeClusterRequest())


# Several brokers.


async def test_three_brokers_are_driven_by_hand() -> None:
    async with open_broker(brokers=3) as broker:
        updater = ManualMetadataUpdater(nodes_of(broker, 1, 2, 3))
        async with open_network_client(metadata_updater=updater) as client:
            for node in updater.nodes:
                await become_ready(client, node)
            sent = {client.send(node, DescribeClusterRequest()): node.id for node in updater.nodes}
            responses = await outcomes(client, 3)

        assert [1, 2, 3] == sorted(sent.values())
        assert sent == {each.correlation_id: each.node_id for each in responses}
        assert {broker.cluster_id} == {each.body.cluster_id for each in responses}
        assert {"ApiVersions", "DescribeCluster"} == asked_of(broker)


async def test_several_tasks_wait_for_several_brokers() -> None:
    async with open_broker(brokers=3) as broker:
        updater = ManualMetadataUpdater(nodes_of(broker, 1, 2, 3))
        found: list[Any] = []

        async def ask(node: Node) -> None:
            found.append(await client.request(node, DescribeClusterRequest()))

        async with (
            open_network_client(metadata_updater=updater) as client,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(client.run)
            async with trio.open_nursery() as askers:
                for node in updater.nodes * 2:
                    askers.start_soon(ask, node)
            nursery.cancel_scope.cancel()

        assert [broker.cluster_id] * 6 == [each.cluster_id for each in found]
        assert {"ApiVersions", "DescribeCluster"} == asked_of(broker)


async def test_metadata_that_the_owner_asks_for_are_its_own() -> None:
    """KAFKA-4098: and change nothing here, though they tell of three nodes."""
    async with open_broker(brokers=3) as broker:
        [node] = nodes_of(broker, 2)
        updater = ManualMetadataUpdater([node])
        async with open_network_client(metadata_updater=updater) as client:
            await become_ready(client, node)
            client.send(node, MetadataRequest(topics=[]))
            [response] = await outcomes(client)

            assert {1, 2, 3} == {each.node_id for each in response.body.brokers}
            assert [node] == updater.nodes
            assert {node} == chosen(client)


async def test_a_stopped_broker_ends_its_requests_and_the_others_go_on() -> None:
    async with open_broker(brokers=3) as broker:
        updater = ManualMetadataUpdater(nodes_of(broker, 1, 2, 3))
        one, two, three = updater.nodes
        async with (
            open_network_client(metadata_updater=updater) as client,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(client.run)
            for node in updater.nodes:
                await client.request(node, DescribeClusterRequest())
            await broker.stop(2)
            with pytest.raises(DisconnectedError):
                await ask_until_lost(client, two)
            for node in (one, three):
                await client.request(node, DescribeClusterRequest())
            assert [one, two, three] == updater.nodes
            assert chosen(client) == {one, three}

            updater.set_nodes([one, three])
            assert "" == client.connection_problem()

            await broker.start(2)
            updater.set_nodes([one, *nodes_of(broker, 2), three])
            await client.request(updater.nodes[1], DescribeClusterRequest())
            assert chosen(client) == set(updater.nodes)
            nursery.cancel_scope.cancel()

        assert {"ApiVersions", "DescribeCluster"} == asked_of(broker)


# What it never does.


async def test_nothing_is_asked_that_the_owner_does_not_ask(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """However much time passes, also where telemetry is wanted."""
    settings = attrs.evolve(
        SETTINGS,
        metadata=MetadataTimes(max_age_seconds=1),
        telemetry=TelemetrySettings(is_enabled=True),
    )
    updater = ManualMetadataUpdater([NODE])
    async with open_network_client(
        settings=settings, network=network, metadata_updater=updater
    ) as client:
        with trio.move_on_after(400):
            await client.run()
        assert [] == node.seen

        await become_ready(client)
        with trio.move_on_after(400):
            await client.run()
        assert client.is_ready(NODE)

    assert ["ApiVersions"] == node.names()


async def test_a_lost_connection_does_not_ask_for_metadata(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    """Nor one that cannot be made, as one to a node of metadata would (X17)."""
    node.replies["Heartbeat"] = lambda _: Hangup()
    updater = ManualMetadataUpdater([NODE, B])
    async with open_network_client(network=network, metadata_updater=updater) as client:
        await become_ready(client)
        client.send(NODE, HEARTBEAT)
        [response] = await outcomes(client)
        assert isinstance(response.error, DisconnectedError)
        assert not client.ready(B)
        await poll_until(client, lambda: client.connection_failed(B))

        await become_ready(client)
        with trio.move_on_after(10):
            await client.run()

    assert ["ApiVersions", "Heartbeat", "ApiVersions"] == node.names()


async def test_waiting_for_metadata_that_never_come_is_an_error() -> None:
    async with open_network_client(metadata_updater=ManualMetadataUpdater([A])) as client:
        with pytest.raises(LocalProtocolError, match="set by a ManualMetadataUpdater"):
            await client.until_updated()
        with pytest.raises(LocalProtocolError, match="never requests metadata"):
            await client.until_updated(client.metadata.request_update())


# The nodes.


async def test_least_loaded_node_is_one_of_those_that_are_given() -> None:
    updater = ManualMetadataUpdater()
    async with open_network_client(metadata_updater=updater) as client:
        assert {None} == chosen(client)

        updater.set_nodes([A, B])
        assert {A, B} == chosen(client)

        updater.set_nodes(each for each in [B])
        assert {B} == chosen(client)
        assert [B] == updater.nodes == list(client.metadata.cluster.nodes.values())


async def test_a_node_that_went_keeps_its_connection_until_its_owner_ends_it(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    updater = ManualMetadataUpdater([NODE])
    async with open_network_client(network=network, metadata_updater=updater) as client:
        await become_ready(client)

        updater.set_nodes([B])
        assert client.is_ready(NODE)
        assert {B} == chosen(client)

        client.close(NODE)
        assert not client.is_ready(NODE)


@pytest.mark.parametrize(
    ("nodes", "wrong"),
    [
        ([A, attrs.evolve(B, id=1)], "duplicate node id 1: 10.0.0.1:9092 and 10.0.0.2:9092"),
        ([attrs.evolve(A, id=-1)], r"node id -1 \(10.0.0.1:9092\) must be 0 or more"),
    ],
)
def test_nodes_that_cannot_be_distinguished_are_refused_and_change_nothing(
    nodes: list[Node], wrong: str
) -> None:
    with pytest.raises(ValueError, match=wrong):
        ManualMetadataUpdater(nodes)

    updater = ManualMetadataUpdater([B])
    with pytest.raises(ValueError, match=wrong):
        updater.set_nodes(nodes)
    assert [B] == updater.nodes


async def test_a_client_has_its_nodes_of_one_place() -> None:
    updater = ManualMetadataUpdater([A])
    with pytest.raises(ConfigError, match="must not be set with a metadata updater"):
        async with open_network_client("10.0.0.1:9092", metadata_updater=updater):
            raise AssertionError
    with pytest.raises(ConfigError, match=r"bootstrap.servers is empty"):
        async with open_network_client():
            raise AssertionError


async def test_why_a_node_is_not_reached_blames_no_broker_for_its_address(
    network: MemoryNetwork, caplog: pytest.LogCaptureFixture
) -> None:
    """No broker has advertised it; and a node that went is no problem any more."""
    updater = ManualMetadataUpdater([A])
    async with (
        open_network_client(network=network, metadata_updater=updater) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        with pytest.raises(DisconnectedError):
            await client.request(A, DescribeClusterRequest())
        problem = client.connection_problem()
        updater.set_nodes([B])
        assert "" == client.connection_problem()
        nursery.cancel_scope.cancel()

    assert problem.startswith("broker 1 at 10.0.0.1:9092 cannot be reached: ")
    assert "could not connect to 10.0.0.1:9092 (node 1): " in caplog.text
    assert "advertise" not in problem + caplog.text
