"""Topics on several nodes: which of them have their replicas, and who tells of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
import trio

from support.brokers import broker_and_client, broker_client, log_of, read_all
from support.calls import append, create_topic, describe_topics
from support.client import Client
from support.nodes import connect_to, leaders
from trionet import Broker, open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from trionet.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from trionet.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)

NODES = [1, 2, 3]


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with open_broker(brokers=3) as broker:
        yield broker


@pytest.fixture
async def clients(broker: Broker) -> AsyncIterator[dict[int, Client]]:
    """A connection to each node, and a topic `t` whose three partitions they lead in turn."""
    async with connect_to(broker, *NODES) as connected:
        await create_topic(connected[0], "t", partitions=3)
        yield dict(zip(NODES, connected, strict=True))


async def test_a_topic_has_as_many_replicas_as_are_asked_for(clients: dict[int, Client]) -> None:
    async def code(factor: int) -> int:
        wanted = CreatableTopic(name=f"r{factor}", num_partitions=1, replication_factor=factor)
        [result] = (await clients[2].call(CreateTopicsRequest(topics=[wanted]), 7)).topics
        assert isinstance(result.error_code, int)
        return result.error_code

    assert [0, 0, 0] == [await code(factor) for factor in (1, 2, 3)]
    assert error_codes.INVALID_REPLICATION_FACTOR == await code(4)
    assert error_codes.INVALID_REPLICATION_FACTOR == await code(0)
    described = await describe_topics(clients[1], "r1", "r2", "r3")
    assert [1, 2, 3] == [len(topic.partitions[0].replica_nodes) for topic in described]


@pytest.mark.parametrize(
    ("assigned", "code"),
    [
        ([[3, 1], [2, 3]], error_codes.NONE),
        ([[3, 1], [2]], error_codes.INVALID_REPLICA_ASSIGNMENT),
        ([[3, 3]], error_codes.INVALID_REPLICA_ASSIGNMENT),
        ([[]], error_codes.INVALID_REPLICA_ASSIGNMENT),
        ([[4]], error_codes.INVALID_REPLICA_ASSIGNMENT),
    ],
)
async def test_replicas_may_be_chosen(
    broker: Broker, clients: dict[int, Client], assigned: list[list[int]], code: int
) -> None:
    wanted = CreatableTopic(
        name="u",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=nodes)
            for index, nodes in enumerate(assigned)
        ],
    )

    [result] = (await clients[1].call(CreateTopicsRequest(topics=[wanted]), 7)).topics

    assert code == result.error_code
    if not code:
        assert 2 == result.replication_factor
        assert [3, 2] == leaders(broker, "u", 2)


async def test_replicas_that_are_all_stopped_cannot_be_chosen(
    broker: Broker, clients: dict[int, Client]
) -> None:
    await broker.stop(3)
    chosen = [CreatableReplicaAssignment(partition_index=0, broker_ids=[3])]
    new = CreatableTopic(name="u", num_partitions=-1, replication_factor=-1, assignments=chosen)
    more = CreatePartitionsTopic(name="s", count=2, assignments=None)
    more.assignments = [CreatePartitionsAssignment(broker_ids=[3])]
    single = CreatableTopic(name="s", num_partitions=1, replication_factor=1)

    async def create(topic: CreatableTopic) -> int:
        [result] = (await clients[1].call(CreateTopicsRequest(topics=[topic]), 7)).topics
        return int(result.error_code)

    assert error_codes.INVALID_REPLICA_ASSIGNMENT == await create(new)
    assert error_codes.NONE == await create(single)
    [result] = (await clients[1].call(CreatePartitionsRequest(topics=[more]), 3)).results
    assert error_codes.INVALID_REPLICA_ASSIGNMENT == result.error_code
    assert "since all of them are stopped; at least one must be running" in result.error_message


async def test_who_leads_from_the_start_in_place_of_the_first_replica_has_an_epoch_of_its_own(
    broker: Broker, clients: dict[int, Client]
) -> None:
    await broker.stop(3)
    chosen = [CreatableReplicaAssignment(partition_index=0, broker_ids=[3, 1])]
    new = CreatableTopic(name="u", num_partitions=-1, replication_factor=-1, assignments=chosen)

    await clients[1].call(CreateTopicsRequest(topics=[new]), 7)

    [topic] = await describe_topics(clients[1], "u")
    assert (1, 1) == (topic.partitions[0].leader_id, topic.partitions[0].leader_epoch)
    assert (1, 1) == (log_of(broker, "u").leader_id, log_of(broker, "u").leader_epoch)


async def test_each_node_reports_the_sizes_of_its_own_replicas(clients: dict[int, Client]) -> None:
    chosen = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=nodes)
        for index, nodes in enumerate([[1, 2], [2, 3]])
    ]
    new = CreatableTopic(name="u", num_partitions=-1, replication_factor=-1, assignments=chosen)
    await clients[1].call(CreateTopicsRequest(topics=[new]), 7)

    told = {}
    for node, client in clients.items():
        wanted = [DescribableLogDirTopic(topic="u", partitions=[0, 1])]
        [folder] = (await client.call(DescribeLogDirsRequest(topics=wanted), 4)).results
        told[node] = [each.partition_index for topic in folder.topics for each in topic.partitions]

    assert {1: [0], 2: [0, 1], 3: [1]} == told


async def test_new_partitions_have_as_many_replicas_as_the_others(
    broker: Broker, clients: dict[int, Client]
) -> None:
    async def grow(count: int, assigned: list[list[int]] | None = None) -> int:
        wanted = CreatePartitionsTopic(name="t", count=count, assignments=None)
        if assigned is not None:
            wanted.assignments = [CreatePartitionsAssignment(broker_ids=n) for n in assigned]
        [result] = (await clients[1].call(CreatePartitionsRequest(topics=[wanted]), 3)).results
        assert isinstance(result.error_code, int)
        return result.error_code

    assert error_codes.NONE == await grow(5)
    assert error_codes.INVALID_REPLICA_ASSIGNMENT == await grow(6, [[3]])
    assert error_codes.NONE == await grow(6, [[2, 1, 3]])

    [topic] = await describe_topics(clients[1], "t")
    assert [1, 2, 3, 1, 2, 2] == leaders(broker, partitions=6)
    assert [3] * 6 == [len(each.replica_nodes) for each in topic.partitions]


async def test_what_one_node_alone_adds_to_a_topic_of_several_moves_no_other_partition(
    tmp_path: Path,
) -> None:
    folder = str(tmp_path)
    async with open_broker(brokers=3, log_dirs=folder) as broker, connect_to(broker, 1) as [client]:
        await create_topic(client, "t", partitions=2)
    async with open_broker(log_dirs=folder) as broker, connect_to(broker, 1) as [client]:
        wanted = CreatePartitionsTopic(name="t", count=3, assignments=None)
        await client.call(CreatePartitionsRequest(topics=[wanted]), 3)

    async with open_broker(brokers=3, log_dirs=folder) as broker, connect_to(broker, 1) as [client]:
        assigned = [CreatePartitionsAssignment(broker_ids=[3, 1, 2])]
        wanted = CreatePartitionsTopic(name="t", count=4, assignments=assigned)
        [result] = (await client.call(CreatePartitionsRequest(topics=[wanted]), 3)).results
        [topic] = await describe_topics(client, "t")

    assert error_codes.NONE == result.error_code
    partitions = sorted(topic.partitions, key=lambda each: each.partition_index)
    assert [3, 3, 1, 3] == [len(each.replica_nodes) for each in partitions]
    assert [1, 3] == [each.leader_id for each in partitions[2:]]


async def test_a_deleted_topic_has_no_leader(broker: Broker, clients: dict[int, Client]) -> None:
    topic = broker._cluster.topics.get("t")
    assert topic is not None
    await broker._cluster.delete_topic(topic)

    with pytest.raises(ValueError, match="does not exist"):
        broker.leader("t", 0)
    await create_topic(clients[3], "t", partitions=3)
    assert [1, 2, 3] == leaders(broker)


async def test_a_topic_that_has_grown_before_its_deletion_leaves_no_record_to_the_next_one(
    tmp_path: Path,
) -> None:
    """A request to delete many topics looks up all of them before it deletes the first."""
    async with broker_and_client(log_dirs=str(tmp_path)) as (broker, client):
        await create_topic(client, "t", partitions=1)
        looked_up = broker._cluster.topics.get("t")
        assert looked_up is not None
        await broker._cluster.create_partitions("t", 3)
        await append(client, b"old", partition=2)

        await broker._cluster.delete_topic(looked_up)

        assert {} == broker._cluster.folder.logs
        await create_topic(client, "t", partitions=3)
        assert [] == await read_all(client, partition=2)
        await append(client, b"new", partition=2)
    async with broker_client(log_dirs=str(tmp_path)) as client:
        assert [b"new"] == await read_all(client, partition=2)


async def cancelled_after(turns: int, work: Callable[[], Awaitable[object]]) -> None:
    """Begin something, and cancel it when trio has gone round that often."""
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work)
            for _ in range(turns):
                await trio.lowlevel.cancel_shielded_checkpoint()
            scope.cancel()


@pytest.mark.parametrize("turns", range(0, 20, 3))
async def test_a_topic_whose_creation_is_cancelled_has_all_its_logs_or_is_not_there(
    broker: Broker, clients: dict[int, Client], turns: int
) -> None:
    cluster = broker._cluster

    await cancelled_after(turns, partial(cluster.create_topic, "new", partitions=6))

    created = cluster.topics.get("new")
    logs = [number for number in range(6) if ("new", number) in cluster.folder.logs]
    assert logs == ([] if created is None else list(range(6)))
    if created is None:
        await create_topic(clients[1], "new", partitions=6)
    for number in range(6):
        await append(clients[broker.leader("new", number)], b"a", topic="new", partition=number)


@pytest.mark.parametrize("turns", range(0, 20, 3))
async def test_so_do_the_partitions_whose_creation_is_cancelled(
    broker: Broker, clients: dict[int, Client], turns: int
) -> None:
    cluster = broker._cluster
    await append(clients[broker.leader("t", 2)], b"a", partition=2)

    await cancelled_after(turns, partial(cluster.create_partitions, "t", 8))

    topic = cluster.topics.get("t")
    assert topic is not None
    assert topic.partitions in {3, 8}
    logs = [number for number in range(8) if ("t", number) in cluster.folder.logs]
    assert logs == list(range(topic.partitions))
    if topic.partitions == 3:
        await cluster.create_partitions("t", 8)
    for number in range(8):
        await append(clients[broker.leader("t", number)], b"b", partition=number)
