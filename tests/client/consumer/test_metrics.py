"""What a consumer reports of itself, by Kafka's names."""

from __future__ import annotations

import pytest

import trionet
from trionet.client.admin import NewTopic

RECORDS = 100
VALUE = bytes(100)


async def fill(servers: str, *topics: str) -> None:
    async with trionet.open_producer(servers) as producer:
        deliveries = [
            await producer.enqueue(topic, VALUE) for topic in topics for _ in range(RECORDS)
        ]
        await producer.flush()
    assert all(each.is_done for each in deliveries)


async def test_what_was_read_is_reported_of_the_consumer_its_topics_and_partitions() -> None:
    async with trionet.open_broker() as broker:
        await fill(broker.bootstrap_servers, "orders", "returns")
        async with trionet.open_consumer(
            broker.bootstrap_servers, auto_offset_reset="earliest"
        ) as consumer:
            orders, returns = (trionet.TopicPartition(name, 0) for name in ("orders", "returns"))
            consumer.assign([orders, returns])
            for _ in range(RECORDS):
                assert VALUE == (await anext(consumer)).value

            actual = consumer.statistics()
            positions = [consumer.position(each) for each in (orders, returns)]

    assert {"orders", "returns"} >= actual.topics.keys()
    assert RECORDS <= actual["records-consumed-total"] <= 2 * RECORDS
    assert actual["records-consumed-total"] == sum(
        each["records-consumed-total"] for each in actual.topics.values()
    )
    assert RECORDS * len(VALUE) < actual["bytes-consumed-total"]
    assert 0 < actual["fetch-latency-avg"] <= actual["fetch-latency-max"]
    assert 0 < actual["fetch-size-avg"] <= actual["fetch-size-max"]
    assert 0 < actual["records-per-request-avg"]
    assert 0 == actual["fetch-throttle-time-max"]
    assert 2 == actual["assigned-partitions"]
    lags = [actual.partitions[each]["records-lag"] for each in (orders, returns)]
    leads = [actual.partitions[each]["records-lead"] for each in (orders, returns)]
    assert positions == leads
    assert [RECORDS - position for position in leads] == lags
    assert (max(lags), min(leads)) == (actual["records-lag-max"], actual["records-lead-min"])
    assert "join-total" not in actual


async def test_the_requests_of_the_group_are_reported() -> None:
    async with trionet.open_broker() as broker:
        await fill(broker.bootstrap_servers, "orders")
        async with trionet.open_consumer(
            broker.bootstrap_servers, topics="orders", group_id="g", auto_offset_reset="earliest"
        ) as consumer:
            async for _ in consumer:
                break
            await consumer.commit()

            actual = consumer.statistics()

    assert actual["join-total"] >= 1
    assert actual["sync-total"] >= 1
    assert actual["commit-total"] == 1
    for name in ("join-time", "sync-time", "commit-latency"):
        assert 0 < actual[f"{name}-avg"] <= actual[f"{name}-max"]
    assert 0 <= actual["last-poll-seconds-ago"] < 60
    assert 1 == actual["assigned-partitions"]


async def test_an_admin_client_reports_its_requests() -> None:
    async with (
        trionet.open_broker() as broker,
        trionet.open_admin(broker.bootstrap_servers) as admin,
    ):
        made = await admin.create_topics([NewTopic("orders")])
        actual = admin.statistics()

    assert ["orders"] == list(made.checked())
    assert actual["request-total"] == actual["response-total"] >= 2
    assert "kafka.admin.client:type=admin-client-metrics,request-total" in {
        family.metric.kafka for family in actual.snapshot.values()
    }
    assert actual["connection-count"] == pytest.approx(len(actual.nodes))
