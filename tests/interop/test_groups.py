"""Consumer groups of foreign clients: they read everything once, and go on where they were."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import threading
from collections.abc import Callable

import pytest

from support.cache import Unavailable
from support.kafka_tools import CONSOLE_CONSUMER, CONSUMER_GROUPS, kafka_tool

PARTITIONS = 3
PATIENCE = 30.0

Read = Callable[[str, str, str, int], list[bytes]]
"""``(bootstrap, topic, group, count)``: joins, reads so many records, commits and leaves."""


def read_confluent(bootstrap: str, topic: str, group: str, count: int) -> list[bytes]:
    kafka = pytest.importorskip("confluent_kafka")
    consumer = kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    values: list[bytes] = []
    while len(values) < count:
        found = consumer.consume(count - len(values), PATIENCE)
        assert found, f"only {len(values)} of {count} came"
        for record in found:
            assert not record.error()
            values.append(record.value())
    consumer.commit(asynchronous=False)
    consumer.close()
    return values


def read_kafka_python(bootstrap: str, topic: str, group: str, count: int) -> list[bytes]:
    kafka = pytest.importorskip("kafka")
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest"
    )
    values: list[bytes] = []
    while len(values) < count:
        found = consumer.poll(PATIENCE * 1000, max_records=count - len(values))
        assert found, f"only {len(values)} of {count} came"
        values += [record.value for records in found.values() for record in records]
    consumer.commit()
    consumer.close()
    return values


def read_aiokafka(bootstrap: str, topic: str, group: str, count: int) -> list[bytes]:
    aiokafka = pytest.importorskip("aiokafka")

    async def read() -> list[bytes]:
        consumer = aiokafka.AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest"
        )
        async with consumer:
            found = [await asyncio.wait_for(consumer.getone(), PATIENCE) for _ in range(count)]
            await consumer.commit()
        return [record.value for record in found]

    return asyncio.run(read())


def read_kcat(bootstrap: str, topic: str, group: str, count: int) -> list[bytes]:
    kcat = shutil.which("kcat")
    if kcat is None:
        pytest.skip("kcat is not installed")
    command = [kcat, "-b", bootstrap, "-G", group, "-c", str(count), "-q", "-u"]
    command += ["-X", "auto.offset.reset=earliest", topic]
    done = subprocess.run(command, capture_output=True, timeout=2 * PATIENCE, check=True)
    return done.stdout.split()


def read_java(bootstrap: str, topic: str, group: str, count: int) -> list[bytes]:
    arguments = ("--bootstrap-server", bootstrap, "--topic", topic, "--group", group)
    more = ("--from-beginning", "--max-messages", str(count), "--timeout-ms", "30000")
    return tool(CONSOLE_CONSUMER, *arguments, *more).split()


def tool(name: str, *arguments: str) -> bytes:
    try:
        return kafka_tool(name, *arguments)
    except Unavailable as reason:
        pytest.skip(str(reason))


READERS: dict[str, Read] = {
    "confluent-kafka": read_confluent,
    "kafka-python": read_kafka_python,
    "aiokafka": read_aiokafka,
    "kcat": read_kcat,
    "java": read_java,
}
every_reader = pytest.mark.parametrize("reader", READERS)


def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    producer = kafka.Producer({"bootstrap.servers": bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)
    assert producer.flush(PATIENCE) == 0


@every_reader
def test_a_group_goes_on_where_it_was(
    bootstrap: str, new_topic: Callable[..., str], reader: str
) -> None:
    topic, group = new_topic(PARTITIONS), f"group of {reader}"
    first = [b"first-%d" % number for number in range(30)]
    second = [b"second-%d" % number for number in range(12)]

    produce(bootstrap, topic, first)
    assert sorted(first) == sorted(READERS[reader](bootstrap, topic, group, len(first)))
    produce(bootstrap, topic, second)
    assert sorted(second) == sorted(READERS[reader](bootstrap, topic, group, len(second)))


@every_reader
def test_a_group_goes_on_where_another_client_was(
    bootstrap: str, new_topic: Callable[..., str], reader: str
) -> None:
    topic, group = new_topic(PARTITIONS), f"group of others and {reader}"
    first = [b"first-%d" % number for number in range(9)]
    second = [b"second-%d" % number for number in range(9)]

    produce(bootstrap, topic, first)
    read_aiokafka(bootstrap, topic, group, len(first))
    produce(bootstrap, topic, second)

    assert sorted(second) == sorted(READERS[reader](bootstrap, topic, group, len(second)))


def test_clients_of_three_libraries_share_a_group(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    """By the range assignor, which all of them know; each reads one partition in the end."""
    confluent = pytest.importorskip("confluent_kafka")
    kafka = pytest.importorskip("kafka")
    range_of_kafka_python = pytest.importorskip("kafka.coordinator.assignors.range")
    topic = new_topic(PARTITIONS)
    common = {"bootstrap_servers": bootstrap, "group_id": "shared", "auto_offset_reset": "earliest"}
    read: dict[str, set[bytes]] = {"librdkafka": set(), "kafka-python": set(), "aiokafka": set()}
    held: dict[str, int] = dict.fromkeys(read, 0)
    stop = threading.Event()

    def poll_confluent() -> None:
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "shared",
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "range",
        }
        consumer = confluent.Consumer(settings)
        consumer.subscribe([topic])
        while not stop.is_set():
            found = consumer.consume(100, 0.1)
            read["librdkafka"] |= {record.value() for record in found if not record.error()}
            held["librdkafka"] = len(consumer.assignment())
        consumer.close()

    def poll_kafka_python() -> None:
        assignor = range_of_kafka_python.RangePartitionAssignor
        consumer = kafka.KafkaConsumer(
            topic, partition_assignment_strategy=[assignor], heartbeat_interval_ms=300, **common
        )
        while not stop.is_set():
            for records in consumer.poll(100).values():
                read["kafka-python"] |= {record.value for record in records}
            held["kafka-python"] = len(consumer.assignment())
        consumer.close()

    async def poll_aiokafka() -> None:
        aiokafka = pytest.importorskip("aiokafka")
        assignors = pytest.importorskip("aiokafka.coordinator.assignors.range")
        strategy = [assignors.RangePartitionAssignor]
        async with aiokafka.AIOKafkaConsumer(
            topic, partition_assignment_strategy=strategy, heartbeat_interval_ms=300, **common
        ) as consumer:
            while not stop.is_set():
                for records in (await consumer.getmany(timeout_ms=100)).values():
                    read["aiokafka"] |= {record.value for record in records}
                held["aiokafka"] = len(consumer.assignment())

    polls = (poll_confluent, poll_kafka_python, lambda: asyncio.run(poll_aiokafka()))
    threads = [threading.Thread(target=poll) for poll in polls]
    values = {b"shared-%d" % number for number in range(60)}
    try:
        for thread in threads:
            thread.start()
        wait_for(lambda: set(held.values()) == {1})
        produce(bootstrap, topic, sorted(values))
        wait_for(lambda: set().union(*read.values()) == values)
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
    assert all(read.values())


def wait_for(condition: Callable[[], bool]) -> None:
    """Look every now and then whether something has come true; clients tell of nothing."""
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.05)):
        if condition():
            return
        pause.wait(0.05)
    pytest.fail(f"not within {PATIENCE} s")


def test_kafkas_tool_describes_groups_and_moves_their_offsets(
    bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = new_topic(PARTITIONS)
    server = ("--bootstrap-server", bootstrap)
    produce(bootstrap, topic, [b"%d" % number for number in range(9)])
    read_confluent(bootstrap, topic, "described", 9)

    described = tool(CONSUMER_GROUPS, *server, "--describe", "--group", "described").decode()
    rows = [line.split() for line in described.splitlines() if topic in line]
    assert [["3", "3", "0"]] * PARTITIONS == [row[3:6] for row in rows]

    moved = ("--reset-offsets", "--to-earliest", "--topic", topic, "--execute")
    tool(CONSUMER_GROUPS, *server, "--group", "described", *moved)
    assert 9 == len(read_confluent(bootstrap, topic, "described", 9))

    assert "described" in tool(CONSUMER_GROUPS, *server, "--list").decode().split()
    tool(CONSUMER_GROUPS, *server, "--delete", "--group", "described")
    assert "described" not in tool(CONSUMER_GROUPS, *server, "--list").decode().split()
