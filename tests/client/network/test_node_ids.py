"""Brokers whose ids are negative, used twice, unknown, or the largest that there are."""

from __future__ import annotations

import logging
from functools import partial

import pytest
import trio
from trio.testing import MockClock

from support.network_clients import NODE, be_able_to_send, poll_until
from support.scripted_node import ScriptedNode
from trionet.client.network._cluster import COORDINATOR_ID_BASE, Node
from trionet.client.network._network_client import NetworkClient

LARGEST_ID = 2**31 - 1


def updates_are(client: NetworkClient, count: int) -> bool:
    return client.metadata.updates == count


async def test_brokers_with_negative_ids_are_ignored_and_named_once(
    autojump_clock: MockClock,
    client: NetworkClient,
    node: ScriptedNode,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Their connections would be those of the bootstrap servers."""
    node.brokers += [(-1, "10.0.0.8"), (-(2**31), "10.0.0.9")]
    with caplog.at_level(logging.WARNING):
        for count in (1, 2, 3):
            client.metadata.request_update()
            await poll_until(client, partial(updates_are, client, count))

    assert [NODE] == list(client.metadata.cluster.nodes.values())
    assert ["ignoring 2 brokers with negative ids, such as -1"] == [
        each.getMessage() for each in caplog.records
    ]


async def test_a_response_with_no_other_brokers_is_a_failure(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    node.brokers = [(-1, node.host)]
    with trio.move_on_after(100):
        await client.run()

    assert not client.metadata.updates
    assert client.metadata.cluster.is_bootstrap
    # The backoff is a second in the end.
    assert 90 < node.names().count("Metadata") < 130


async def test_of_two_brokers_with_one_id_the_last_is_used(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    node.brokers = [(1, "10.0.0.9"), (1, node.host)]
    await poll_until(client, lambda: client.metadata.updates)

    assert [NODE] == list(client.metadata.cluster.nodes.values())
    assert NODE == client.least_loaded_node(trio.current_time())[0]


async def test_two_brokers_at_one_address_have_connections_of_their_own(
    autojump_clock: MockClock, client: NetworkClient, node: ScriptedNode
) -> None:
    node.brokers = [(1, node.host), (2, node.host), (LARGEST_ID, node.host)]
    await poll_until(client, lambda: client.metadata.updates)
    for node_id, host in node.brokers:
        await be_able_to_send(client, Node(node_id, host, 9092))

    assert 4 == node.names().count("ApiVersions")  # and that of the bootstrap server


@pytest.mark.parametrize("broker_id", [0, 1, 2**30, 2**30 + 1, LARGEST_ID])
def test_a_coordinator_has_a_connection_that_is_no_other_brokers(broker_id: int) -> None:
    coordinator = Node(COORDINATOR_ID_BASE - broker_id, "10.0.0.1", 9092)

    assert coordinator.id > LARGEST_ID
    assert broker_id == coordinator.broker_id == Node(broker_id, "10.0.0.1", 9092).broker_id
    assert f"10.0.0.1:9092 (coordinator, node {broker_id})" == str(coordinator)
    assert f"10.0.0.1:9092 (node {broker_id})" == str(Node(broker_id, "10.0.0.1", 9092))
