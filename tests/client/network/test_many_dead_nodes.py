"""A cluster that advertises thousands of brokers that do not exist costs few attempts and lines."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from support.counted_calls import counted_calls
from support.network_clients import NODE, poll_until
from support.scripted_node import PORT, ScriptedNode, Seen
from trionet import ManualMetadataUpdater, Node, open_consumer, open_network_client
from trionet.client.network._connection_states import FREE_FAILURES, SETUPS_MAX
from trionet.client.network._open_client import keep_polling, open_kafka_client, until_broker_ready
from trionet.client.network._reachability import LOGGED_MAX
from trionet.net.wire._connecting import Address
from trionet.protocol.messages.metadata import MetadataResponse
from trionet.testing import MemoryNetwork
from trionet.testing.memory._socket import MemorySocket

DEAD = 20_000
SECONDS = 15
ATTEMPTS_A_SECOND = 20  # reconnect.backoff.ms is 50
DEAD_HOST = "10.9.9.9"


class CountingNetwork(MemoryNetwork):
    """A network that counts the attempts to connect to the host of the dead brokers."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts = 0

    def open_socket(self, address: Address, **options: Any) -> MemorySocket:
        self.attempts += address[0] == DEAD_HOST
        return super().open_socket(address, **options)


def dead_nodes(count: int) -> list[Node]:
    return [Node(100 + number, DEAD_HOST, PORT) for number in range(count)]


async def test_attempts_and_log_lines_are_few(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    network = CountingNetwork()
    node = ScriptedNode(network, brokers=[(each.id, each.host) for each in dead_nodes(DEAD)])
    with caplog.at_level(logging.INFO, "trionet"):
        async with (
            node.listening(),
            open_consumer(node.address, topics="t", group_id="g", network=network) as consumer,
        ):
            with trio.move_on_after(SECONDS) as waiting:
                await anext(consumer)
            problem = consumer.connection_problem()

    assert waiting.cancelled_caught
    assert SECONDS * ATTEMPTS_A_SECOND / 2 < network.attempts
    assert network.attempts < FREE_FAILURES + SECONDS * ATTEMPTS_A_SECOND * 1.1
    assert len(caplog.records) < LOGGED_MAX + 10
    assert f"{LOGGED_MAX} nodes cannot be reached" in caplog.text
    assert "more" in problem
    assert len(problem) < 1000


async def test_a_live_broker_among_dead_ones_is_found(autojump_clock: MockClock) -> None:
    network = CountingNetwork()
    dead = [(each.id, each.host) for each in dead_nodes(50)]
    node = ScriptedNode(network, brokers=[*dead[:25], (NODE.id, "10.0.0.2"), *dead[25:]])
    live = ScriptedNode(network, NODE.id, "10.0.0.2")
    async with (
        node.listening(),
        live.listening(),
        open_kafka_client(node.address, network=network) as client,
    ):
        client.background.start_soon(keep_polling, client)
        with trio.fail_after(50 / ATTEMPTS_A_SECOND):
            assert NODE.id == (await until_broker_ready(client)).id


@pytest.mark.parametrize("count", [FREE_FAILURES, 100])
async def test_dead_brokers_are_given_up_for_the_bootstrap_servers_once_each_has_failed(
    autojump_clock: MockClock, count: int
) -> None:
    network = CountingNetwork()
    node = ScriptedNode(network, NODE.id, NODE.host)
    dead = [(each.id, each.host) for each in dead_nodes(count)]

    def metadata(_: Seen) -> MetadataResponse:
        node.brokers = [(NODE.id, NODE.host)] if "Metadata" in node.names()[:-1] else dead
        return node.metadata()

    node.replies["Metadata"] = metadata
    async with node.listening(), open_kafka_client(node.address, network=network) as client:
        client.background.start_soon(keep_polling, client)
        with trio.fail_after(1 + count / ATTEMPTS_A_SECOND):
            assert NODE.id == (await until_broker_ready(client)).id
    assert count <= network.attempts <= count + 5


async def test_a_live_broker_is_found_however_often_leaders_are_tried(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    dead = dead_nodes(120)
    live = ScriptedNode(network, NODE.id, NODE.host)
    updater = ManualMetadataUpdater([*dead, NODE])
    async with open_network_client(metadata_updater=updater, network=network) as client:

        async def becomes_ready() -> None:
            while True:
                for each in dead:
                    client.ready(each)
                node, _ = client.least_loaded_node(trio.current_time())
                if node is not None and client.ready(node):
                    return
                await client.poll(1 / ATTEMPTS_A_SECOND)

        with trio.move_on_after(20):  # until the attempts come at all times
            await becomes_ready()
        async with live.listening():
            with trio.fail_after(len(dead) / ATTEMPTS_A_SECOND):
                await becomes_ready()


async def test_the_first_attempts_are_made_at_once(autojump_clock: MockClock) -> None:
    network = CountingNetwork()
    updater = ManualMetadataUpdater(dead_nodes(100))
    async with open_network_client(metadata_updater=updater, network=network) as client:
        for _ in range(FREE_FAILURES):
            node, _ = client.least_loaded_node(trio.current_time())
            assert node is not None
            client.ready(node)
            await poll_until(client, partial(client.connection_failed, node))
        assert not client.next_usable_delay(trio.current_time())
        node, _ = client.least_loaded_node(trio.current_time())
        assert node is not None
        client.ready(node)
        await poll_until(client, partial(client.connection_failed, node))

        assert client.least_loaded_node(trio.current_time())[0] is None
        delay = client.next_usable_delay(trio.current_time())
        assert 0 < delay <= 1 / ATTEMPTS_A_SECOND
        await trio.sleep(delay)
        assert client.least_loaded_node(trio.current_time())[0] is not None


async def test_connections_to_thousands_of_leaders_are_set_up_some_at_a_time(
    autojump_clock: MockClock,
) -> None:
    network = CountingNetwork()
    nodes = dead_nodes(1000)
    async with open_network_client(
        metadata_updater=ManualMetadataUpdater(nodes), network=network
    ) as client:
        assert not any(client.ready(each) for each in nodes)
        assert SETUPS_MAX == network.attempts

        await poll_until(client, partial(client.connection_failed, nodes[SETUPS_MAX - 1]))
        rest = nodes[SETUPS_MAX:]
        assert not any(client.ready(each) for each in rest)
        assert 2 * SETUPS_MAX == network.attempts


async def test_a_live_leader_has_its_turn_after_many_silent_ones(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    network.separate(["127.0.0.1"], [DEAD_HOST])
    silent = dead_nodes(2 * SETUPS_MAX)
    updater = ManualMetadataUpdater([*silent, NODE])
    async with open_network_client(metadata_updater=updater, network=network) as client:
        with trio.fail_after(30):  # each is given up after 8 to 12 s
            while not [each for each in (*silent, NODE) if client.ready(each)]:
                await client.poll()


async def test_choosing_a_node_costs_the_same_among_thousands(autojump_clock: MockClock) -> None:
    async def calls_among(count: int) -> int:
        updater = ManualMetadataUpdater(dead_nodes(count))
        network = MemoryNetwork()
        async with open_network_client(metadata_updater=updater, network=network) as client:
            now = trio.current_time()
            with counted_calls() as calls:
                client.least_loaded_node(now)
                client.next_usable_delay(now)
            return calls[0]

    assert await calls_among(DEAD) <= await calls_among(1000) + 10


async def test_the_node_of_a_large_cluster_that_is_connected_is_preferred(
    autojump_clock: MockClock, network: MemoryNetwork, node: ScriptedNode
) -> None:
    updater = ManualMetadataUpdater([*dead_nodes(DEAD), NODE])
    async with open_network_client(metadata_updater=updater, network=network) as client:
        while not client.ready(NODE):
            await client.poll()

        assert {(NODE, True)} == {client.least_loaded_node(trio.current_time()) for _ in range(20)}
