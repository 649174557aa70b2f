"""Foreign admin clients: more partitions for a topic, fewer records in one, the size of it all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from support.clients.client import Client, Record

Grow = Callable[[str, str, int], None]
"""``(bootstrap, topic, partitions)``"""
Delete = Callable[[str, str, int], int]
"""``(bootstrap, topic, offset)`` of partition 0; gives the low watermark."""

SECONDS = 20


def grow_confluent(bootstrap: str, topic: str, partitions: int) -> None:
    admin = pytest.importorskip("confluent_kafka.admin")
    client = admin.AdminClient({"bootstrap.servers": bootstrap})
    for future in client.create_partitions([admin.NewPartitions(topic, partitions)]).values():
        future.result(SECONDS)


def grow_kafka_python(bootstrap: str, topic: str, partitions: int) -> None:
    kafka = pytest.importorskip("kafka")
    client = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        client.create_partitions({topic: partitions})
    finally:
        client.close()


def grow_aiokafka(bootstrap: str, topic: str, partitions: int) -> None:
    admin = pytest.importorskip("aiokafka.admin")

    async def grow() -> None:
        client = admin.AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await client.start()
        try:
            await client.create_partitions({topic: admin.NewPartitions(total_count=partitions)})
        finally:
            await client.close()

    asyncio.run(grow())


def delete_confluent(bootstrap: str, topic: str, offset: int) -> int:
    kafka = pytest.importorskip("confluent_kafka")
    admin = pytest.importorskip("confluent_kafka.admin")
    client = admin.AdminClient({"bootstrap.servers": bootstrap})
    [future] = client.delete_records([kafka.TopicPartition(topic, 0, offset)]).values()
    low_watermark: int = future.result(SECONDS).low_watermark
    return low_watermark


def delete_kafka_python(bootstrap: str, topic: str, offset: int) -> int:
    kafka = pytest.importorskip("kafka")
    client = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        result = client.delete_records({kafka.TopicPartition(topic, 0): offset})
    finally:
        client.close()
    low_watermark: int = result[kafka.TopicPartition(topic, 0)]["low_watermark"]
    return low_watermark


def delete_aiokafka(bootstrap: str, topic: str, offset: int) -> int:
    aiokafka = pytest.importorskip("aiokafka")
    admin = pytest.importorskip("aiokafka.admin")

    async def delete() -> int:
        client = admin.AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await client.start()
        partition = aiokafka.TopicPartition(topic, 0)
        try:
            result = await client.delete_records(
                {partition: admin.RecordsToDelete(before_offset=offset)}
            )
        finally:
            await client.close()
        low_watermark: int = result[partition]
        return low_watermark

    return asyncio.run(delete())


@pytest.mark.parametrize("grow", [grow_confluent, grow_kafka_python, grow_aiokafka])
def test_topics_get_more_partitions(
    bootstrap: str, new_topic: Callable[..., str], clients: Callable[[str], Client], grow: Grow
) -> None:
    topic = new_topic(2)

    grow(bootstrap, topic, 5)

    partitions = range(5)
    records = [Record(None, b"%d" % each, partition=each) for each in partitions]
    client = clients("confluent-kafka")
    client.write(topic, records, codec="none", is_idempotent=False)
    arrived = client.read(topic, dict.fromkeys(partitions, 1))
    assert {b"0", b"1", b"2", b"3", b"4"} == {each.record.value for each in arrived}


@pytest.mark.parametrize("delete", [delete_confluent, delete_kafka_python, delete_aiokafka])
def test_records_are_deleted(
    bootstrap: str, new_topic: Callable[..., str], clients: Callable[[str], Client], delete: Delete
) -> None:
    topic = new_topic()
    client = clients("confluent-kafka")
    records = [Record(None, b"%d" % number) for number in range(10)]
    client.write(topic, records, codec="none", is_idempotent=False)

    assert 7 == delete(bootstrap, topic, 7)

    arrived = client.read(topic, {0: 3}, 7)
    assert [(7, b"7"), (8, b"8"), (9, b"9")] == [
        (each.offset, each.record.value) for each in arrived
    ]


def test_kafka_python_describes_log_dirs(
    bootstrap: str, new_topic: Callable[..., str], clients: Callable[[str], Client]
) -> None:
    kafka = pytest.importorskip("kafka")
    topic = new_topic(2)
    records = [Record(None, b"x" * 1000, partition=1)]
    clients("confluent-kafka").write(topic, records, codec="none", is_idempotent=False)
    client = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        described = client.describe_log_dirs({topic: [0, 1]})
    finally:
        client.close()

    [broker] = described
    [folder] = broker["log_dirs"]
    [found] = folder["topics"]
    sizes = {each["partition_index"]: each["partition_size"] for each in found["partitions"]}
    assert (topic, 0) == (found["name"], sizes[0])
    assert 1000 < sizes[1] < 2000
