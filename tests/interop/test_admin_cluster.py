"""Our admin client and three real Kafka nodes: partitions move, leaders are elected."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio

import trionet
from support.admin_errors import code_of
from support.cache import Unavailable
from support.eventually import eventually
from support.kafka_cluster import KafkaCluster, kafka_cluster
from trionet import Admin
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import NewTopic, OffsetSpec, PartitionDescription, Reassignment

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]
FIRST, UNKNOWN = TopicPartition("moving", 0), TopicPartition("unknown", 0)


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaCluster]:
    try:
        with kafka_cluster() as cluster:
            yield cluster
    except Unavailable as reason:
        pytest.skip(str(reason))


async def first_partition(admin: Admin) -> PartitionDescription:
    return (await admin.describe_topics(["moving"])).checked()["moving"].partitions[0]


async def reassignments(admin: Admin) -> dict[TopicPartition, Reassignment]:
    return await admin.list_partition_reassignments([FIRST])


async def test_partitions_move_and_leaders_are_elected(kafka: KafkaCluster) -> None:
    async with trionet.open_admin(kafka.bootstrap_servers) as admin:
        (await admin.create_topics([NewTopic("moving", assignments={0: [1, 2]})])).checked()
        (await admin.list_offsets({FIRST: OffsetSpec.LATEST})).checked()

        moved = await admin.alter_partition_reassignments({FIRST: [3, 1], UNKNOWN: [1]})
        idle = await admin.alter_partition_reassignments({FIRST: None, UNKNOWN: None})

        assert moved[FIRST] is None
        assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(moved[UNKNOWN])
        assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(idle[UNKNOWN])
        if idle[FIRST] is None:  # it was still under way, and was ended: once more
            (await admin.alter_partition_reassignments({FIRST: [3, 1]})).checked()
        await eventually(lambda: reassignments(admin), lambda found: not found)
        await eventually(
            lambda: first_partition(admin),
            lambda found: found.replicas == (3, 1) and set(found.in_sync) == {1, 3},
        )
        elected = await admin.elect_leaders([FIRST, UNKNOWN])
        assert elected[FIRST] is None or "ELECTION_NOT_NEEDED" == code_of(elected[FIRST])
        assert "UNKNOWN_TOPIC_OR_PARTITION" == code_of(elected[UNKNOWN])
        await eventually(lambda: first_partition(admin), lambda found: found.leader == 3)
        assert "ELECTION_NOT_NEEDED" == code_of((await admin.elect_leaders([FIRST]))[FIRST])
        assert {} == await admin.elect_leaders()


async def test_calls_go_on_while_a_broker_dies_and_comes_back(kafka: KafkaCluster) -> None:
    async with trionet.open_admin(kafka.bootstrap_servers) as admin:
        wanted = {TopicPartition("spread", n): OffsetSpec.LATEST for n in range(6)}
        (await admin.create_topics([NewTopic("spread", 6, 3)])).checked()
        (await admin.list_offsets(wanted)).checked()
        (await admin.alter_group_offsets("g", dict.fromkeys(wanted, 0))).checked()

        await trio.to_thread.run_sync(kafka.kill, 2)
        offsets = (await admin.list_offsets(wanted)).checked()
        committed = (await admin.list_group_offsets(["g"])).checked()["g"].checked()
        made = await admin.create_topics([NewTopic("meanwhile", 1, 2)])
        await trio.to_thread.run_sync(kafka.start, 2)
        cluster = await eventually(admin.describe_cluster, lambda found: len(found.brokers) == 3)

        assert [0] * 6 == [each.offset for each in offsets.values()]
        assert set(wanted) == set(committed)
        assert not made.errors
        assert {1, 2, 3} == set(cluster.brokers)
