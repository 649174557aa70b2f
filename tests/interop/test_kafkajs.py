"""kafkajs, of JavaScript, against the broker: records, topics, and groups with others in them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support.clients.client import PATIENCE_SECONDS
from support.clients.exchange import (
    Exchange,
    check_same,
    every_writer,
    with_and_without_idempotence,
)
from support.clients.kafkajs import CODECS, KafkaJs

NAME = "kafkajs"
PARTITIONS = 4


@pytest.fixture
def kafkajs(exchange: Exchange) -> KafkaJs:
    client = exchange.client(NAME)
    assert isinstance(client, KafkaJs)
    return client


@pytest.mark.parametrize("codec", CODECS)
@with_and_without_idempotence
def test_writes_with_its_codecs(exchange: Exchange, codec: str, is_idempotent: bool) -> None:
    exchange.check_writes(NAME, codec, is_idempotent)


@every_writer
def test_reads_what_every_client_wrote(exchange: Exchange, kafkajs: KafkaJs, writer: str) -> None:
    for codec, is_idempotent in itertools.product(CODECS, (False, True)):
        topic, records = exchange.written(writer, codec, is_idempotent)
        check_same(kafkajs, records, kafkajs.read(topic, {0: len(records)}))


@pytest.mark.parametrize("codec", CODECS)
def test_others_read_what_it_wrote(exchange: Exchange, codec: str) -> None:
    topic, records = exchange.written(NAME, codec, is_idempotent=True)
    reader = exchange.client("confluent-kafka")
    check_same(reader, records, reader.read(topic, {0: len(records)}))


def test_large_records(exchange: Exchange) -> None:
    exchange.check_large_records(NAME)


def test_big_batches(exchange: Exchange) -> None:
    exchange.check_big_batches(NAME)


def test_many_partitions(exchange: Exchange) -> None:
    exchange.check_many_partitions(NAME)


def test_log_append_time(exchange: Exchange) -> None:
    exchange.check_log_append_time(NAME)


def test_offsets_by_time(exchange: Exchange) -> None:
    exchange.check_offsets_by_time(NAME)


def test_administers_topics(exchange: Exchange) -> None:
    exchange.check_administers(NAME, "made-by-kafkajs")


def test_refusals(exchange: Exchange) -> None:
    exchange.check_refusals(NAME, "refused-kafkajs")


def test_describes_the_cluster(exchange: Exchange, bootstrap: str) -> None:
    cluster_id, brokers = exchange.admin(NAME).cluster()

    assert cluster_id
    assert bootstrap in brokers


# Groups.


def values(count: int, of: str) -> list[bytes]:
    return [b"%s-%d" % (of.encode(), number) for number in range(count)]


def produce(bootstrap: str, topic: str, records: list[bytes]) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    producer = kafka.Producer({"bootstrap.servers": bootstrap})
    for number, value in enumerate(records):
        producer.produce(topic, value, partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_SECONDS) == 0


def wait_for(condition: Callable[[], bool]) -> None:
    """Look every now and then whether something has come true; clients tell of nothing."""
    pause = threading.Event()
    for _ in range(int(PATIENCE_SECONDS / 0.05)):
        if condition():
            return
        pause.wait(0.05)
    pytest.fail(f"not within {PATIENCE_SECONDS} s")


class Members:
    """Members of one group that kafkajs runs, by name; all leave at the end of a test."""

    def __init__(self, client: KafkaJs, group: str, topic: str) -> None:
        self._client = client
        self._group = group
        self._topic = topic
        self._names: list[str] = []

    def join(self, name: str, assigner: str = "") -> None:
        name = f"{self._group}-{name}"
        self._names.append(name)
        self._client.ask("join", name, self._group, self._topic, assigner)

    def leave(self, name: str) -> None:
        self._names.remove(f"{self._group}-{name}")
        self._client.ask("leave", f"{self._group}-{name}")

    def leave_all(self) -> None:
        while self._names:
            self._client.ask("leave", self._names.pop())

    def look(self) -> list[dict[str, Any]]:
        return [self._client.ask("look", name) for name in self._names]

    def held(self) -> list[list[int]]:
        return [sorted(member["held"]) for member in self.look()]

    def shares(self) -> list[int]:
        return [len(each) for each in self.held()]

    def read(self) -> set[bytes]:
        return {bytes.fromhex(value) for member in self.look() for value in member["values"]}


@contextmanager
def members_of(client: KafkaJs, group: str, topic: str) -> Iterator[Members]:
    members = Members(client, group, topic)
    try:
        yield members
    finally:
        members.leave_all()


def test_a_group_shares_partitions_anew_when_members_come_and_go(
    kafkajs: KafkaJs, bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(PARTITIONS)
    first, second = values(40, "first"), values(20, "second")
    with members_of(kafkajs, "js alone", topic) as members:
        members.join("a")
        members.join("b")
        wait_for(lambda: members.shares() == [2, 2])
        produce(bootstrap, topic, first)
        wait_for(lambda: members.read() == set(first))

        assert kafkajs.ask("group", "js alone") == {
            "state": "Stable",
            "protocol": "RoundRobinAssigner",
            "members": 2,
        }

        members.leave("a")
        wait_for(lambda: members.shares() == [PARTITIONS])
        produce(bootstrap, topic, second)
        wait_for(lambda: members.read() >= set(second))

    assert [[partition, 15] for partition in range(PARTITIONS)] == sorted(
        kafkajs.ask("offsets", "js alone", topic)
    )


def test_what_a_group_has_committed_is_not_read_again(
    kafkajs: KafkaJs, bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(PARTITIONS)
    first, second = values(12, "first"), values(8, "second")
    produce(bootstrap, topic, first)
    with members_of(kafkajs, "js again", topic) as members:
        members.join("a")
        wait_for(lambda: members.read() == set(first))
    produce(bootstrap, topic, second)

    with members_of(kafkajs, "js again", topic) as members:
        members.join("b")
        wait_for(lambda: members.read() >= set(second))

        assert members.read() == set(second)


def test_it_shares_a_group_with_another_library_by_an_assignor_of_the_same_name(
    kafkajs: KafkaJs, bootstrap: str, new_topic: Callable[..., str]
) -> None:
    """kafkajs takes an assignor of the user's own; its form of assignments is Kafka's."""
    confluent = pytest.importorskip("confluent_kafka")
    topic = new_topic(PARTITIONS)
    records = values(40, "shared")
    read: set[bytes] = set()
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "js and others",
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "range",
            "heartbeat.interval.ms": 300,
        }
    )

    def poll() -> None:
        found = consumer.consume(100, 0.1)
        read.update(record.value() for record in found if not record.error())

    with members_of(kafkajs, "js and others", topic) as members:
        consumer.subscribe([topic])
        try:
            poll()
            members.join("a", "range")

            def is_shared() -> bool:
                poll()
                return [members.shares(), len(consumer.assignment())] == [[2], 2]

            wait_for(is_shared)
            [theirs] = members.held()
            ours = sorted(each.partition for each in consumer.assignment())
            assert sorted(theirs + ours) == list(range(PARTITIONS))
            produce(bootstrap, topic, records)

            def is_read() -> bool:
                poll()
                return members.read() | read == set(records)

            wait_for(is_read)
            assert members.read()
            assert read
        finally:
            consumer.close()


def test_its_own_assignor_is_refused_where_others_are_members(
    kafkajs: KafkaJs, bootstrap: str, new_topic: Callable[..., str]
) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    topic = new_topic(PARTITIONS)
    settings = {"bootstrap.servers": bootstrap, "group.id": "not for js"}
    consumer = confluent.Consumer(settings)
    consumer.subscribe([topic])
    try:

        def is_member() -> bool:
            consumer.poll(0.1)
            return bool(consumer.assignment())

        wait_for(is_member)
        with members_of(kafkajs, "not for js", topic) as members:
            members.join("a")
            wait_for(lambda: members.look()[0]["crash"] is not None)

            assert "INCONSISTENT_GROUP_PROTOCOL" in members.look()[0]["crash"]
            assert consumer.assignment()
    finally:
        consumer.close()


def test_administers_groups(
    kafkajs: KafkaJs, bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(PARTITIONS)
    produce(bootstrap, topic, values(8, "record"))
    with members_of(kafkajs, "js admin", topic) as members:
        members.join("a")
        wait_for(lambda: len(members.read()) == 8)

        assert ["js admin", "consumer"] in kafkajs.ask("groups")
        with pytest.raises(RuntimeError, match="NON_EMPTY_GROUP"):
            kafkajs.ask("deleteGroup", "js admin")

    kafkajs.ask("setOffsets", "js admin", topic, [[0, 1], [3, 0]])

    assert [[0, 1], [1, 2], [2, 2], [3, 0]] == sorted(kafkajs.ask("offsets", "js admin", topic))
    assert [[partition, 0, 2] for partition in range(PARTITIONS)] == sorted(
        kafkajs.ask("ends", topic)
    )

    kafkajs.ask("deleteGroup", "js admin")

    assert ["js admin", "consumer"] not in kafkajs.ask("groups")
    assert kafkajs.ask("group", "js admin")["state"] == "Dead"
