"""What the dashboard tells of a real Kafka."""

from __future__ import annotations

from support.administered_kafka import Kafka, coordinated, fresh
from support.transactional import code_of, end, identity, initialize, produce_in
from support.watching import watching
from trionet import open_admin, open_consumer, open_producer
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import QuotaEntity
from trionet.dashboard.sources._cluster_source import ClusterSource
from trionet.testing import open_raw_peer

GROUP = "dashboard-group"


async def test_a_real_kafka_is_reported_with_topics_groups_lag_and_quotas(kafka: Kafka) -> None:
    topic = "dashboard"
    async with open_admin(kafka.bootstrap) as admin:
        await fresh(admin, topic, 3)
        await coordinated(admin, GROUP)
        alice = QuotaEntity({"user": "alice"})
        (await admin.alter_client_quotas({alice: {"producer_byte_rate": 1000.0}})).checked()
    async with open_producer(kafka.bootstrap) as producer:
        for number in range(30):
            await producer.send(topic, b"x" * 100, partition=number % 3)
    source = ClusterSource(kafka.bootstrap)
    async with (
        open_consumer(
            kafka.bootstrap,
            group_id=GROUP,
            topics=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer,
        watching(source, 0.2) as watched,
    ):
        await consumer.next_batch()
        await consumer.commit({TopicPartition(topic, number): 4 for number in range(3)})
        source.focus("topics")
        model = await watched.until(
            lambda model: topic in model.topics and model.topics[topic].bytes
        )
        row = model.topics[topic]
        assert (3, 1, 0, 30) == (row.partitions, row.replicas, row.leaderless, row.records)
        source.focus("groups")
        model = await watched.until(
            lambda model: GROUP in model.groups and model.groups[GROUP].lag == 18
        )
        group = model.groups[GROUP]
        assert ("Stable", 1) == (group.state, group.members)
        assert group.lags is not None
        assert {6} == {each.lag for each in group.lags}
        source.focus("overview")
        async with open_producer(kafka.bootstrap) as producer:
            await producer.send(topic, b"x")
        model = await watched.until(lambda model: model.figures.get("records"))
        assert not model.has_internals
        await watched.until(lambda model: (model.figures.get("lag") or 0) >= 19)
        source.focus("quotas")
        model = await watched.until(lambda model: model.quotas)
        assert 1000 == model.quotas["user=alice", "producer_byte_rate"].limit
        source.focus("configs", ("topic", topic))
        model = await watched.until(lambda model: model.configs)
        assert "delete" == model.configs["cleanup.policy"].value

    assert {} == model.alarms
    [broker] = model.brokers.values()
    assert (kafka.bootstrap, True) == (f"{broker.host}:{broker.port}", broker.is_controller)


async def test_transactions_of_a_real_kafka_are_reported(kafka: Kafka) -> None:
    topic, id = "dashboard-transactions", "dashboard-till"
    async with open_admin(kafka.bootstrap) as admin:
        await fresh(admin, topic)
        # Creates the topic of transactions; then the coordinator can be found.
        await admin.fence_producers([id])
    source = ClusterSource(kafka.bootstrap)
    async with open_raw_peer(kafka.bootstrap) as peer, watching(source, 0.2) as watched:
        producer = identity(await peer.call(*initialize(id)))
        assert 0 == code_of(await peer.call(*produce_in(id, producer, topic, b"a")))
        source.focus("transactions")
        model = await watched.until(
            lambda model: [row for row in model.transactions.values() if row.state == "Ongoing"]
        )
        row = model.transactions[id, producer[0]]
        identity(await peer.call(*end(id, producer)))
        await watched.until(
            lambda model: model.transactions[id, producer[0]].state == "CompleteCommit"
        )

    assert (producer[1], 60.0, 1, None) == (
        row.epoch,
        row.timeout_seconds,
        row.coordinator,
        row.hangs,
    )
    assert row.age_seconds is not None
    assert row.partitions is not None
    assert [(topic, 0, 0)] == [
        (each.topic, each.partition, each.first_offset) for each in row.partitions
    ]
