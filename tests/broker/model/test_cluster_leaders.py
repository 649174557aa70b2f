"""Several nodes over one store: who leads what, and what a client learns that asks another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from operator import attrgetter

import pytest

from support.brokers import log_of, waiting
from support.calls import (
    append,
    batch,
    create_topic,
    describe_topics,
    fetch,
    fetch_request,
    list_offsets_request,
    only_partition,
    produce,
    produce_request,
    values_of,
)
from support.client import Client, host_and_port
from support.nodes import address, connect_to, leaders
from trionet import Broker, open_broker
from trionet.protocol import error_codes
from trionet.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
)
from trionet.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from trionet.protocol.messages.describe_cluster import DescribeClusterRequest
from trionet.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from trionet.protocol.messages.fetch import PartitionData
from trionet.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from trionet.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from trionet.protocol.records._batch import iter_batches

NODES = [1, 2, 3]
FOREVER_MS = 2**31 - 1
NOT_LEADER = error_codes.NOT_LEADER_OR_FOLLOWER


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


def leader_told(data: PartitionData) -> tuple[int, int] | None:
    """The leader and the epoch that a response names beside its error."""
    leader = data.current_leader
    return None if leader is None else (leader.leader_id, leader.leader_epoch)


# What clients learn.


async def test_all_nodes_report_all_nodes_and_each_partitions_leader(
    broker: Broker, clients: dict[int, Client]
) -> None:
    for client in clients.values():
        response = await client.call(MetadataRequest(topics=None), 13)

        assert [(node, *host_and_port(address(broker, node))) for node in NODES] == [
            (each.node_id, each.host, each.port) for each in response.brokers
        ]
        assert 1 == response.controller_id
        [topic] = response.topics
        assert [(1, [1, 2, 3]), (2, [2, 3, 1]), (3, [3, 1, 2])] == [
            (each.leader_id, each.replica_nodes) for each in topic.partitions
        ]
        assert all(
            (0, 0, each.replica_nodes, [])
            == (each.error_code, each.leader_epoch, each.isr_nodes, each.offline_replicas)
            for each in topic.partitions
        )
    assert [1, 2, 3] == leaders(broker)
    assert broker.bootstrap_servers.split(",") == [address(broker, node) for node in NODES]


async def test_a_stopped_node_is_reported_no_more(
    broker: Broker, clients: dict[int, Client]
) -> None:
    await broker.stop(1)

    response = await clients[2].call(MetadataRequest(topics=None), 13)
    partition = response.topics[0].partitions[0]

    assert [2, 3] == [each.node_id for each in response.brokers] == broker.running_nodes
    assert 2 == response.controller_id
    assert (0, 2, 1, [1, 2, 3], [2, 3], [1]) == attrgetter(
        "error_code", "leader_id", "leader_epoch", "replica_nodes", "isr_nodes", "offline_replicas"
    )(partition)


@pytest.mark.parametrize(("fenced", "told"), [(False, [(2, False), (3, False)]), (True, None)])
async def test_describe_cluster_reports_stopped_nodes_when_asked(
    broker: Broker,
    clients: dict[int, Client],
    fenced: bool,
    told: list[tuple[int, bool]] | None,
) -> None:
    await broker.stop(1)
    request = DescribeClusterRequest(include_fenced_brokers=fenced)

    response = await clients[3].call(request, 2)

    assert 2 == response.controller_id
    assert (told or [(1, True), (2, False), (3, False)]) == sorted(
        (each.broker_id, each.is_fenced) for each in response.brokers
    )


async def test_clients_of_metadata_version_0_learn_that_a_replica_is_not_available(
    broker: Broker, clients: dict[int, Client]
) -> None:
    """As by Kafka (MetadataRequestTest.testReplicaDownResponse); other versions have no error."""
    leader = broker.leader("t", 0)
    stopped = leader % 3 + 1
    await broker.stop(stopped)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])

    oldest, newer = [
        (await clients[leader].call(request, version)).topics[0].partitions[0] for version in (0, 1)
    ]

    live = sorted({1, 2, 3} - {stopped})
    assert (error_codes.REPLICA_NOT_AVAILABLE, live, live) == (
        oldest.error_code,
        sorted(oldest.replica_nodes),
        sorted(oldest.isr_nodes),
    )
    assert (0, [1, 2, 3], live) == (
        newer.error_code,
        sorted(newer.replica_nodes),
        sorted(newer.isr_nodes),
    )


async def test_a_partition_without_a_living_replica_has_no_leader(
    broker: Broker, clients: dict[int, Client]
) -> None:
    wanted = CreatableTopic(name="single", num_partitions=3, replication_factor=1)
    [created] = (await clients[1].call(CreateTopicsRequest(topics=[wanted]), 7)).topics
    assert (0, 1) == (created.error_code, created.replication_factor)
    stopped = broker.leader("single", 0)
    other = clients[stopped % 3 + 1]
    await broker.stop(stopped)

    partition = (await describe_topics(other, "single"))[0].partitions[0]
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name="single")])
    described = (await other.call(request, 0)).topics[0].partitions[0]
    answer = await produce(other, "single", batch(b"a"))

    for each in (partition, described):
        # Kafka keeps the last leader in sync, so that there is one that may be elected.
        assert (error_codes.LEADER_NOT_AVAILABLE, -1, [stopped], [stopped]) == attrgetter(
            "error_code", "leader_id", "offline_replicas", "isr_nodes"
        )(each)
    assert NOT_LEADER == answer.error_code

    await broker.start(stopped)
    async with connect_to(broker, stopped) as [client]:
        assert 0 == (await produce(client, "single", batch(b"a"))).error_code
    assert 2 == log_of(broker, "single").leader_epoch


# The wrong node.


async def test_a_produce_to_another_node_gets_the_leader(
    broker: Broker, clients: dict[int, Client]
) -> None:
    response = await clients[1].call(produce_request("t", {0: batch(b"a"), 1: batch(b"b")}), 12)

    [topic] = response.responses
    here, there = topic.partition_responses
    [endpoint] = response.node_endpoints
    assert (0, NOT_LEADER) == (here.error_code, there.error_code)
    assert (2, 0) == (there.current_leader.leader_id, there.current_leader.leader_epoch)
    assert (2, *host_and_port(address(broker, 2))) == attrgetter("node_id", "host", "port")(
        endpoint
    )
    assert (1, 0) == (log_of(broker).end_offset, log_of(broker, partition=1).end_offset)


@pytest.mark.parametrize("version", [3, 9, 12])
async def test_every_version_says_that_it_is_the_wrong_node(
    clients: dict[int, Client], version: int
) -> None:
    answer = await produce(clients[3], "t", batch(b"a"), version=version)

    assert NOT_LEADER == answer.error_code


@pytest.mark.parametrize("version", [4, 12, 15])
async def test_so_does_every_version_of_fetch(clients: dict[int, Client], version: int) -> None:
    topic: str | bytes = "t"
    if version > 12:
        topic = (await describe_topics(clients[1], "t"))[0].topic_id

    data = await fetch(clients[3], topic, version=version)

    assert (NOT_LEADER, -1) == (data.error_code, data.high_watermark)


async def test_a_fetch_from_another_node_gets_the_leader(
    broker: Broker, clients: dict[int, Client]
) -> None:
    await append(clients[1], b"a")
    topic_id = (await describe_topics(clients[1], "t"))[0].topic_id
    request = fetch_request({topic_id: {0: 0, 1: 0}}, max_wait_ms=FOREVER_MS, min_bytes=10_000)

    response = await clients[1].call(request, 18)

    here, there = response.responses[0].partitions
    [endpoint] = response.node_endpoints
    assert [b"a"] == values_of(here)
    assert (NOT_LEADER, 2, 0) == (
        there.error_code,
        there.current_leader.leader_id,
        there.current_leader.leader_epoch,
    )
    assert (2, *host_and_port(address(broker, 2))) == attrgetter("node_id", "host", "port")(
        endpoint
    )


async def test_other_calls_of_the_wrong_node_are_refused_too(clients: dict[int, Client]) -> None:
    offsets = await clients[2].call(list_offsets_request("t", [(0, -1)]), 11)
    epochs = await clients[2].call(
        OffsetForLeaderEpochRequest(
            topics=[
                OffsetForLeaderTopic(
                    topic="t", partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)]
                )
            ]
        ),
        4,
    )
    deleted = await clients[2].call(
        DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=0)]
                )
            ]
        ),
        2,
    )

    for response in (offsets, epochs, deleted):
        assert NOT_LEADER == response.topics[0].partitions[0].error_code


# Moving a leader.


async def test_records_bear_the_epoch_of_the_leader_that_took_them(
    broker: Broker, clients: dict[int, Client]
) -> None:
    await append(clients[1], b"a")
    await broker.move_leader("t", 0, 3)
    await append(clients[3], b"b")
    assert NOT_LEADER == (await produce(clients[1], "t", batch(b"c"))).error_code
    await broker.move_leader("t", 0, 3)  # nothing happens: it leads already
    await append(clients[3], b"d")
    await broker.move_leader("t", 0, 1)
    await append(clients[1], b"e")

    data = await fetch(clients[1], "t")

    assert [b"a", b"b", b"d", b"e"] == values_of(data)
    assert data.records is not None
    records = bytes(memoryview(data.records))  # type: ignore[arg-type]
    assert [0, 1, 1, 2] == [header.leader_epoch for _, header in iter_batches(records)]


async def test_a_fetch_that_waits_gets_a_response_when_the_leader_moves(
    broker: Broker, clients: dict[int, Client]
) -> None:
    topic_id = (await describe_topics(clients[1], "t"))[0].topic_id
    await clients[1].send(fetch_request({topic_id: {0: 0}}, max_wait_ms=FOREVER_MS), 18)
    await clients[2].send(fetch_request({topic_id: {1: 0}}, max_wait_ms=FOREVER_MS), 18)
    await waiting(broker, 2)

    await broker.move_leader("t", 0, 3)

    data = only_partition(await clients[1].receive())
    assert (NOT_LEADER, (3, 1)) == (data.error_code, leader_told(data))
    await waiting(broker, 1)


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (-1, error_codes.NONE),
        (0, error_codes.FENCED_LEADER_EPOCH),
        (1, error_codes.NONE),
        (2, error_codes.UNKNOWN_LEADER_EPOCH),
    ],
)
async def test_an_epoch_that_is_over_is_fenced_and_one_to_come_is_unknown(
    broker: Broker, clients: dict[int, Client], epoch: int, code: int
) -> None:
    await broker.move_leader("t", 0, 2)
    client = clients[2]
    topic_id = (await describe_topics(client, "t"))[0].topic_id
    offsets = list_offsets_request("t", [(0, -1)])
    offsets.topics[0].partitions[0].current_leader_epoch = epoch
    wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch, leader_epoch=0)
    epochs = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic="t", partitions=[wanted])]
    )

    data = await fetch(client, topic_id, leader_epoch=epoch, version=18)
    listed = (await client.call(offsets, 11)).topics[0].partitions[0]
    ended = (await client.call(epochs, 4)).topics[0].partitions[0]

    assert [code] * 3 == [data.error_code, listed.error_code, ended.error_code]
    assert ((2, 1) if code == error_codes.FENCED_LEADER_EPOCH else None) == leader_told(data)


async def test_preferred_leaders_are_elected_when_asked_for(
    broker: Broker, clients: dict[int, Client]
) -> None:
    await broker.stop(1)
    await broker.start(1)
    assert [2, 2, 3] == leaders(broker)

    await broker.elect_preferred_leaders()

    assert [1, 2, 3] == leaders(broker)
    assert [b"a"] == values_of(await _appended_and_read(broker, b"a"))


async def _appended_and_read(broker: Broker, value: bytes) -> PartitionData:
    async with connect_to(broker, broker.leader("t", 0)) as [client]:
        await append(client, value)
        return await fetch(client, "t")


@pytest.mark.parametrize(
    ("topic", "partition", "node", "message"),
    [
        ("u", 0, 1, "does not exist"),
        ("t", 3, 1, "does not exist"),
        ("t", 0, 4, "node 4 does not exist; allowed: 1, 2, 3"),
        ("t", 0, 3, "node 3 is stopped; allowed: 1, 2"),
    ],
)
async def test_a_leader_that_cannot_be_is_refused(
    broker: Broker, clients: dict[int, Client], topic: str, partition: int, node: int, message: str
) -> None:
    await broker.stop(3)

    with pytest.raises(ValueError, match=message):
        await broker.move_leader(topic, partition, node)

    assert [1, 2, 1] == leaders(broker)
    for ask in (broker.stop, broker.start):
        with pytest.raises(ValueError, match="node 9 does not exist"):
            await ask(9)
    with pytest.raises(ValueError, match="node 9 does not exist"):
        broker.endpoints_of(9)
    with pytest.raises(ValueError, match="does not exist"):
        broker.leader("u", 0)
