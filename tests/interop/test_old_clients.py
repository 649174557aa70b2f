"""librdkafka as it talks to a broker of which it knows only that it is old."""

from __future__ import annotations

import uuid

import pytest

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    Producer,
    TopicPartition,
)

COUNT = 300
READ_SECONDS_MAX = 60.0


@pytest.mark.parametrize("version", ["0.9.0.1", "0.10.0.0"])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_librdkafka_writes_and_reads_with_an_assumed_version(
    bootstrap: str, version: str, codec: str
) -> None:
    """Produce 1 and 2, Fetch 1 and 2, ListOffsets 0."""
    topic = f"old-{uuid.uuid4()}"
    assumed = {
        "bootstrap.servers": bootstrap,
        "api.version.request": False,
        "broker.version.fallback": version,
    }
    errors = []
    producer = Producer({**assumed, "compression.type": codec, "linger.ms": 20})
    for number in range(COUNT):
        producer.produce(
            topic,
            b"v%d" % number,
            b"k%d" % number,
            0,
            on_delivery=lambda error, _: errors.append(error),
        )
    assert 0 == producer.flush(READ_SECONDS_MAX)

    consumer = Consumer({**assumed, "group.id": topic, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    read: list[tuple[object, ...]] = []
    kinds = set()
    while len(read) < COUNT:
        found = consumer.consume(COUNT - len(read), READ_SECONDS_MAX)
        assert found
        assert [None] * len(found) == [each.error() for each in found]
        kinds |= {each.timestamp()[0] for each in found}
        read += [(each.offset(), each.key(), each.value()) for each in found]
    consumer.close()

    format_0 = version == "0.9.0.1"  # has no timestamps
    assert {TIMESTAMP_NOT_AVAILABLE if format_0 else TIMESTAMP_CREATE_TIME} == kinds
    assert [None] * COUNT == errors
    assert [(at, b"k%d" % at, b"v%d" % at) for at in range(COUNT)] == read
