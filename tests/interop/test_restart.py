"""A restart of the broker: an idempotent producer lives on, nothing is lost or there twice."""

from __future__ import annotations

import pytest

from support.clients.client import PATIENCE_SECONDS, Record
from support.durable import Durable

TOPIC = "restart"
ROUNDS = 3
RECORDS = 500


def test_an_idempotent_producer_goes_on_after_a_restart(durable: Durable) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    from support.clients.confluent import Confluent

    client = Confluent(durable.bootstrap)
    offsets: list[int] = []
    errors: list[object] = []

    def delivered(error: object, message: object) -> None:
        if error is not None:
            errors.append(error)
        offsets.append(message.offset())  # type: ignore[attr-defined]

    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": durable.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "reconnect.backoff.max.ms": 100,
            "message.timeout.ms": 6 * PATIENCE_SECONDS * 1000,
            "log_level": 0,
        }
    )
    values = [b"%d" % index for index in range(ROUNDS * RECORDS)]
    for round_ in range(ROUNDS):
        with durable.running():
            if round_ == 0:
                client.create_topic(TOPIC, 1, {})
            part = values[round_ * RECORDS :][:RECORDS]
            for value in part[: RECORDS // 2]:
                producer.produce(TOPIC, value, partition=0, on_delivery=delivered)
            assert producer.flush(3 * PATIENCE_SECONDS) == 0
        # These wait in the client until the broker is back.
        for value in part[RECORDS // 2 :]:
            producer.produce(TOPIC, value, partition=0, on_delivery=delivered)
    with durable.running():
        assert producer.flush(3 * PATIENCE_SECONDS) == 0
        arrived = client.read(TOPIC, {0: len(values)})

    assert errors == []
    assert offsets == list(range(len(values)))
    assert [each.record.value for each in arrived] == values


def test_records_are_there_after_a_restart(durable: Durable) -> None:
    pytest.importorskip("confluent_kafka")
    from support.clients.confluent import Confluent

    client = Confluent(durable.bootstrap)
    config = {"segment.bytes": "1048576"}
    records = [Record(b"%d" % index, b"x" * 10_000, (), None) for index in range(300)]
    with durable.running():
        client.create_topic(TOPIC, 1, config)
        client.write(TOPIC, records, codec="none", is_idempotent=True)
    with durable.running():
        assert client.topic_config(TOPIC)["segment.bytes"] == config["segment.bytes"]
        written = client.write(TOPIC, records, codec="none", is_idempotent=True)
        arrived = client.read(TOPIC, {0: 2 * len(records)})

    assert written == list(range(len(records), 2 * len(records)))
    assert [each.offset for each in arrived] == list(range(2 * len(records)))
    assert [each.record.key for each in arrived] == [record.key for record in records] * 2
