"""Foreign clients against the broker: each writes, reads and administers as the others do."""

from __future__ import annotations

import json

import pytest

from support.clients.client import PATIENCE_SECONDS
from support.clients.exchange import (
    Exchange,
    every_codec,
    every_writer,
    with_and_without_idempotence,
)
from support.clients.kcat import Kcat

ADMINS = ("confluent-kafka", "kafka-python", "aiokafka", "java")
every_client = pytest.mark.parametrize("name", [*ADMINS, "kcat"])
every_admin = pytest.mark.parametrize("name", ADMINS)
LINES = 100_000


@every_client
@every_codec
@with_and_without_idempotence
def test_writes_with_every_codec(
    exchange: Exchange, name: str, codec: str, is_idempotent: bool
) -> None:
    exchange.check_writes(name, codec, is_idempotent)


@every_client
@every_writer
def test_reads_what_every_client_wrote(exchange: Exchange, name: str, writer: str) -> None:
    exchange.check_reads(name, writer)


@every_client
def test_starts_at_any_offset_of_a_batch(exchange: Exchange, name: str) -> None:
    exchange.check_starts_anywhere(name)


@every_client
def test_large_records(exchange: Exchange, name: str) -> None:
    exchange.check_large_records(name)


@every_client
def test_big_batches(exchange: Exchange, name: str) -> None:
    exchange.check_big_batches(name)


@every_client
def test_many_partitions(exchange: Exchange, name: str) -> None:
    exchange.check_many_partitions(name)


@every_client
def test_log_append_time(exchange: Exchange, name: str) -> None:
    exchange.check_log_append_time(name)


@every_client
def test_offsets_by_time(exchange: Exchange, name: str) -> None:
    exchange.check_offsets_by_time(name)


@every_admin
def test_administers_topics(exchange: Exchange, name: str) -> None:
    exchange.check_administers(name, f"made-by-{name}")


@every_admin
def test_refusals(exchange: Exchange, name: str) -> None:
    exchange.check_refusals(name, f"refused-{name}")


@every_admin
def test_describes_the_cluster(exchange: Exchange, name: str, bootstrap: str) -> None:
    cluster_id, brokers = exchange.admin(name).cluster()

    assert cluster_id
    assert bootstrap in brokers


def test_confluent_kafka_with_many_topics(exchange: Exchange, bootstrap: str) -> None:
    """A hundred topics made in one request, written to by one producer, read by one consumer."""
    exchange.client("confluent-kafka")  # skips without the package
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


def test_transactions_of_confluent_kafka(exchange: Exchange, bootstrap: str) -> None:
    """What is committed is read once, what is aborted is not, and a new instance fences the old."""
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

    topic = exchange.new_topic(2)
    settings = {"bootstrap.servers": bootstrap, "transactional.id": topic}
    producer = Producer(settings)
    producer.init_transactions(PATIENCE_SECONDS)
    for value, is_commit in (("a", False), ("b", True), ("c", True)):
        producer.begin_transaction()
        for partition in range(2):
            producer.produce(topic, value, partition=partition)
        if is_commit:
            producer.commit_transaction(PATIENCE_SECONDS)
        else:
            producer.flush(PATIENCE_SECONDS)
            producer.abort_transaction(PATIENCE_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, "open")
    producer.flush(PATIENCE_SECONDS)
    Producer(settings).init_transactions(PATIENCE_SECONDS)
    with pytest.raises(KafkaException) as caught:
        producer.commit_transaction(PATIENCE_SECONDS)
    assert caught.value.args[0].fatal()

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    read = []
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(2)])
        ended = 0
        while ended < 2:
            [message] = consumer.consume(1, PATIENCE_SECONDS)
            if message.error() is None:
                read.append((message.partition(), message.value()))
            else:
                ended += 1
    finally:
        consumer.close()

    assert [(0, b"b"), (0, b"c"), (1, b"b"), (1, b"c")] == sorted(read)


def _kcat(exchange: Exchange) -> Kcat:
    client = exchange.client("kcat")
    assert isinstance(client, Kcat)
    return client


def test_kcat_lists_brokers_and_topics(exchange: Exchange, bootstrap: str) -> None:
    kcat = _kcat(exchange)
    topic = exchange.new_topic(7)

    listed = json.loads(kcat.run("-L", "-J"))

    assert bootstrap in [broker["name"] for broker in listed["brokers"]]
    (found,) = [each for each in listed["topics"] if each["topic"] == topic]
    assert len(found["partitions"]) == 7
    assert {each["leader"] for each in found["partitions"]} == {listed["brokers"][0]["id"]}


def test_with_kcat_a_hundred_thousand_lines_come_back_byte_for_byte(exchange: Exchange) -> None:
    kcat = _kcat(exchange)
    topic = exchange.new_topic()
    lines = b"".join(b"line %d of %d, nothing special\n" % (n, LINES) for n in range(LINES))

    kcat.run("-P", "-t", topic, "-p", "0", stdin=lines)
    back = kcat.run("-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q")

    assert lines == back


def test_kcat_reads_the_last_lines(exchange: Exchange) -> None:
    kcat = _kcat(exchange)
    topic = exchange.new_topic()
    kcat.run("-P", "-t", topic, "-p", "0", stdin=b"a\nb\nc\nd\n")

    assert kcat.run("-C", "-t", topic, "-p", "0", "-o", "-2", "-e", "-q") == b"c\nd\n"
