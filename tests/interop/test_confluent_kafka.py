"""confluent-kafka (librdkafka) against the broker."""

from __future__ import annotations

import pytest

from support.clients.client import PATIENCE_SECONDS
from support.clients.exchange import (
    Exchange,
    every_codec,
    every_writer,
    with_and_without_idempotence,
)

NAME = "confluent-kafka"


@every_codec
@with_and_without_idempotence
def test_writes_with_every_codec(exchange: Exchange, codec: str, is_idempotent: bool) -> None:
    exchange.check_writes(NAME, codec, is_idempotent)


@every_writer
def test_reads_what_every_client_wrote(exchange: Exchange, writer: str) -> None:
    exchange.check_reads(NAME, writer)


def test_starts_at_any_offset_of_a_batch(exchange: Exchange) -> None:
    exchange.check_starts_anywhere(NAME)


def test_large_records(exchange: Exchange) -> None:
    exchange.check_large_records(NAME)


def test_big_batches(exchange: Exchange) -> None:
    exchange.check_big_batches(NAME)


def test_many_partitions(exchange: Exchange) -> None:
    exchange.check_many_partitions(NAME)


def test_many_topics(exchange: Exchange, bootstrap: str) -> None:
    """A hundred topics made in one request, written to by one producer, read by one consumer."""
    exchange.client(NAME)  # skips without the package
    from confluent_kafka import Consumer, Producer, TopicPartition
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    names = [f"one-of-many-{index}" for index in range(100)]
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "enable.metrics.push": False,
        "log_level": 3,
    }
    admin = AdminClient(settings)
    for future in admin.create_topics([NewTopic(name, 3, 1) for name in names]).values():
        future.result(PATIENCE_SECONDS)

    producer = Producer(settings)
    for name in names:
        producer.produce(name, f"to {name}".encode(), partition=2)
    assert producer.flush(PATIENCE_SECONDS) == 0

    consumer = Consumer(settings | {"group.id": "unused", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(name, 2, 0) for name in names])
        arrived: dict[str | None, bytes | None] = {}
        while len(arrived) < len(names):
            messages = consumer.consume(len(names), PATIENCE_SECONDS)
            assert messages
            arrived |= {message.topic(): message.value() for message in messages}
    finally:
        consumer.close()

    assert arrived == {name: f"to {name}".encode() for name in names}
    for future in admin.delete_topics(names).values():
        future.result(PATIENCE_SECONDS)


def test_log_append_time(exchange: Exchange) -> None:
    exchange.check_log_append_time(NAME)


def test_offsets_by_time(exchange: Exchange) -> None:
    exchange.check_offsets_by_time(NAME)


def test_administers_topics(exchange: Exchange) -> None:
    exchange.check_administers(NAME, "made-by-confluent_kafka")


def test_refusals(exchange: Exchange) -> None:
    exchange.check_refusals(NAME, "refused-confluent_kafka")


def test_transactions_fail_at_once(bootstrap: str) -> None:
    """It looks for a coordinator until its time is up, unless it is told that it may not."""
    from confluent_kafka import KafkaException, Producer

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})

    with pytest.raises(KafkaException, match="transactions are not supported") as caught:
        producer.init_transactions(PATIENCE_SECONDS)

    assert caught.value.args[0].fatal()


def test_describes_the_cluster(exchange: Exchange, bootstrap: str) -> None:
    cluster_id, brokers = exchange.admin(NAME).cluster()

    assert cluster_id
    assert bootstrap in brokers
