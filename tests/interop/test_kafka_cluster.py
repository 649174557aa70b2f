"""Three real Kafka nodes: they serve, a leader moves, and the death of one is survived."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

import trionet
from support.cache import Unavailable
from support.kafka_cluster import NODES, KafkaCluster, kafka_cluster
from support.leaders import move_leader
from trionet.client.network._network_client import NetworkClient
from trionet.protocol import error_codes
from trionet.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]
TOPIC = "led"


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaCluster]:
    try:
        with kafka_cluster() as cluster:
            yield cluster
    except Unavailable as reason:
        pytest.skip(str(reason))


async def wait_until_led_by(client: NetworkClient, leader: int) -> None:
    while True:
        found = client.metadata.cluster.leader(TOPIC, 0)
        if found is not None and found.id == leader:
            return
        await client.until_updated(client.metadata.request_update())


async def test_leaders_move_and_a_killed_node_is_missed_and_comes_back(kafka: KafkaCluster) -> None:
    async with (
        trionet.open_network_client(kafka.bootstrap_servers) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.run)
        await client.until_updated()
        node = client.metadata.cluster.nodes[1]
        wish = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=NODES)
        created = await client.request(node, CreateTopicsRequest(topics=[wish]))
        client.metadata.set_topics(frozenset([TOPIC]))

        moved = await move_leader(client, node, TOPIC, 0, [2, 3, 1])
        await wait_until_led_by(client, 2)
        await trio.to_thread.run_sync(kafka.kill, 2)
        await wait_until_led_by(client, 3)
        await trio.to_thread.run_sync(kafka.start, 2)

        assert [error_codes.NONE] == [each.error_code for each in created.topics]
        assert error_codes.NONE == moved
        assert [1, 2, 3] == sorted(kafka.running_ids)
        nursery.cancel_scope.cancel()
