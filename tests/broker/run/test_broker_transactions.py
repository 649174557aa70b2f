"""Transactions on several nodes: each id has a coordinator, and goes on with the next one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.calls import create_topic, fetch, values_of
from support.client import Client
from support.nodes import connect_to
from support.transactional import code_of, end, identity, initialize, produce_in
from trionet import Broker, open_broker
from trionet.protocol import error_codes
from trionet.testing import control

NODES = [1, 2, 3]


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with open_broker(brokers=3) as broker:
        yield broker


@pytest.fixture
async def clients(broker: Broker) -> AsyncIterator[dict[int, Client]]:
    """A connection to each node, a topic `t` led by node 1, and id `x` coordinated by node 2."""
    async with connect_to(broker, *NODES) as connected:
        await create_topic(connected[0], "t")
        await broker.move_leader("t", 0, 1)
        await broker.move_transaction_coordinator("x", 2)
        yield dict(zip(NODES, connected, strict=True))


async def test_ids_are_spread_over_the_nodes(broker: Broker) -> None:
    coordinators = {broker.transaction_coordinator(f"x{number}") for number in range(50)}

    assert set(NODES) == coordinators


async def test_a_transaction_goes_on_with_the_next_coordinator(
    broker: Broker, clients: dict[int, Client]
) -> None:
    producer = identity(await clients[2].call(*initialize("x")))
    assert 0 == code_of(await clients[1].call(*produce_in("x", producer, "t", b"a")))

    await broker.move_transaction_coordinator("x", 3)

    assert 3 == broker.transaction_coordinator("x")
    refused = await clients[2].call(*end("x", producer))
    assert error_codes.NOT_COORDINATOR == refused.error_code
    identity(await clients[3].call(*end("x", producer)))
    assert [b"a"] == values_of(await fetch(clients[1], "t", isolation_level=1))


async def test_a_coordinator_that_has_moved_writes_a_higher_epoch(
    broker: Broker, clients: dict[int, Client]
) -> None:
    producer = identity(await clients[2].call(*initialize("x")))
    log = broker._state.find_log("t", 0)
    epochs = []
    for node in (3, 2, 3):
        await clients[1].call(*produce_in("x", producer, "t", b"a"))
        await broker.move_transaction_coordinator("x", node)
        producer = identity(await clients[node].call(*end("x", producer)))
        epochs.append(log.coordinator_epoch)

    assert sorted(set(epochs)) == epochs


async def test_a_node_that_stops_hands_its_ids_over(
    broker: Broker, clients: dict[int, Client]
) -> None:
    producer = identity(await clients[2].call(*initialize("x")))
    await clients[1].call(*produce_in("x", producer, "t", b"a"))

    await broker.stop(2)

    coordinator = broker.transaction_coordinator("x")
    assert coordinator in (1, 3)
    identity(await clients[coordinator].call(*end("x", producer)))
    await broker.stop(1)
    await broker.stop(3)
    assert -1 == broker.transaction_coordinator("x")


async def test_a_marker_waits_for_the_leader_of_its_partition() -> None:
    settings = {"default.replication.factor": 1}
    async with open_broker(settings, brokers=2) as broker, connect_to(broker, 1, 2) as clients:
        kit = control(broker)
        await kit.create_topic("t", 2)
        assert [1, 2] == [broker.leader("t", number) for number in (0, 1)]
        await broker.move_transaction_coordinator("x", 1)
        producer = identity(await clients[0].call(*initialize("x")))
        for number, client in enumerate(clients):
            await client.call(*produce_in("x", producer, "t", b"a", partition=number))
        await broker.stop(2)

        identity(await clients[0].call(*end("x", producer)))

        decided = kit.transactions()["x"]
        assert ("PrepareCommit", [("t", 1)]) == (decided.state, decided.partitions)
        await broker.start(2)
        await kit.wait_for_transaction("x", "CompleteCommit")


async def test_a_coordinator_moves_to_a_running_node(broker: Broker) -> None:
    await broker.stop(3)

    for node in (3, 4):
        with pytest.raises(ValueError, match=str(node)):
            await broker.move_transaction_coordinator("x", node)
