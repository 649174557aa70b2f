"""One client and several real brokers, as Kafka's controller and every producer have them."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from support.leaks import nothing_left_behind
from trionet import open_broker
from trionet.client._backoff import ExponentialBackoff
from trionet.client._network_settings import ConnectionTimes
from trionet.client.network._cluster import Node
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._open_client import ClientSettings, open_network_client
from trionet.errors import DisconnectedError
from trionet.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from trionet.protocol.messages.describe_cluster import DescribeClusterRequest
from trionet.protocol.messages.metadata import MetadataRequest

ROUNDS = 20


async def ask(client: NetworkClient, node_id: int, found: dict[int, list[Any]]) -> None:
    node = client.metadata.cluster.nodes[node_id]
    for _ in range(ROUNDS):
        found[node_id].append(await client.request(node, DescribeClusterRequest()))


async def test_one_client_drives_three_brokers() -> None:
    async with (
        open_broker(brokers=3) as broker,
        open_network_client(broker.bootstrap_servers) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_updated()
        found: dict[int, list[Any]] = {1: [], 2: [], 3: []}
        async with trio.open_nursery() as askers:
            for node_id in found:
                askers.start_soon(ask, client, node_id, found)
                askers.start_soon(ask, client, node_id, found)

        assert {1, 2, 3} == set(client.metadata.cluster.nodes)
        assert {2 * ROUNDS} == {len(answers) for answers in found.values()}
        assert {client.metadata.cluster.id} == {
            each.cluster_id for answers in found.values() for each in answers
        }
        nursery.cancel_scope.cancel()


async def test_stopped_node_is_lost_and_its_partitions_have_other_leaders() -> None:
    topic = CreatableTopic(name="t", num_partitions=3, replication_factor=3)
    async with (
        open_broker(brokers=3) as broker,
        open_network_client(broker.bootstrap_servers) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_updated()
        nodes = client.metadata.cluster.nodes
        controller = nodes[client.metadata.cluster.controller]
        made = await client.request(controller, CreateTopicsRequest(topics=[topic]))
        assert [0] == [each.error_code for each in made.topics]
        client.metadata.set_topics(frozenset({"t"}))
        await client.until_updated(client.metadata.updates)
        leaders = {each: client.metadata.cluster.leader("t", each) for each in range(3)}
        lost = next(each for each in leaders.values() if each and each != controller)
        await client.until_ready(lost)

        await broker.stop(lost.id)
        with pytest.raises(DisconnectedError):
            await ask_until_lost(client, lost)
        while lost in map(client.metadata.cluster.leader, ["t"] * 3, range(3)):
            await client.until_updated(client.metadata.request_update())

        assert None not in map(client.metadata.cluster.leader, ["t"] * 3, range(3))
        nursery.cancel_scope.cancel()


async def ask_until_lost(client: NetworkClient, node: Node) -> None:
    while True:
        await client.request(node, MetadataRequest(topics=[]))


async def test_requests_cancelled_at_every_step_leave_the_client_in_order() -> None:
    """One after the other is cancelled a step later than the one before."""
    at_once = ConnectionTimes(reconnect=ExponentialBackoff(0.0, 0.0))
    settings = ClientSettings(times=at_once)
    async with (
        open_broker() as broker,
        open_network_client(broker.bootstrap_servers, settings) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_updated()
        node = client.metadata.cluster.nodes[1]
        answered = 0
        for steps in range(150):
            client.disconnect(node)
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as asking:
                    asking.start_soon(cancel_after, scope, steps)
                    await client.request(node, MetadataRequest(topics=[]))
                    answered += 1
                    asking.cancel_scope.cancel()
            answer = await client.request(node, MetadataRequest(topics=[]))

            assert 1 == len(answer.brokers)
        assert 0 < answered < 150
        nursery.cancel_scope.cancel()


async def cancel_after(scope: trio.CancelScope, steps: int) -> None:
    for _ in range(steps):
        await trio.lowlevel.checkpoint()
    scope.cancel()


@pytest.mark.slow
async def test_nothing_is_left_behind() -> None:
    async with open_broker() as broker:
        with nothing_left_behind():
            for _ in range(20):
                async with open_network_client(broker.bootstrap_servers) as client:
                    with trio.move_on_after(0.02):
                        await client.run()
