"""A member of a group in each of three libraries: it reads, notes what it has read, and commits."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import Callable, Iterable

import attrs

#: A partition and the offset of a record in it.
Place = tuple[int, int]

HEARTBEAT_MS = 300
#: How long a member may hold up a rebalance.
REBALANCE_MS = 30_000
_POLL_SECONDS = 0.1
_RECORDS_MAX = 100
# A rebalance has begun, or has been missed: the next owner of the partition reads them again.
_REBALANCES = {
    "CommitFailedError",
    "RebalanceInProgressError",
    "IllegalGenerationError",
    "UnknownMemberIdError",
    "ILLEGAL_GENERATION",
    "REBALANCE_IN_PROGRESS",
    "UNKNOWN_MEMBER_ID",
    "_ASSIGNMENT_LOST",
}


@attrs.frozen
class Settings:
    """What all members have in common."""

    bootstrap: str
    group: str
    topic: str
    session_ms: int


@attrs.frozen
class Membership:
    """One member.

    Attributes:
        name: its client id.
        settings: those of all.
        stop: set when it is to leave.
        process: notes records; what it was given is kept when it returns.
    """

    name: str
    settings: Settings
    stop: threading.Event
    process: Callable[[Iterable[Place]], None]


def _tolerate(error: Exception, name: str) -> None:
    if name not in _REBALANCES:
        raise error


def confluent(member: Membership) -> None:
    """librdkafka's; raises what it does not expect."""
    kafka = importlib.import_module("confluent_kafka")
    settings = member.settings
    consumer = kafka.Consumer(
        {
            "bootstrap.servers": settings.bootstrap,
            "group.id": settings.group,
            "client.id": member.name,
            "session.timeout.ms": settings.session_ms,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "max.poll.interval.ms": REBALANCE_MS,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "partition.assignment.strategy": "range",
            "fetch.wait.max.ms": 100,
            "enable.metrics.push": False,
            "log_level": 0,
        }
    )
    consumer.subscribe([settings.topic])
    try:
        while not member.stop.is_set():
            found = consumer.consume(_RECORDS_MAX, _POLL_SECONDS)
            places = [(each.partition(), each.offset()) for each in found if not each.error()]
            if places:
                member.process(places)
                offsets = [
                    kafka.TopicPartition(settings.topic, partition, offset + 1)
                    for partition, offset in dict(places).items()
                ]
                try:
                    consumer.commit(offsets=offsets, asynchronous=False)
                except kafka.KafkaException as error:
                    _tolerate(error, error.args[0].name())
    finally:
        consumer.close()


def kafka_python(member: Membership) -> None:
    """kafka-python's."""
    kafka = importlib.import_module("kafka")
    structs = importlib.import_module("kafka.structs")
    assignor = importlib.import_module("kafka.coordinator.assignors.range")
    settings = member.settings
    consumer = kafka.KafkaConsumer(
        settings.topic,
        bootstrap_servers=settings.bootstrap,
        group_id=settings.group,
        client_id=member.name,
        session_timeout_ms=settings.session_ms,
        heartbeat_interval_ms=HEARTBEAT_MS,
        max_poll_interval_ms=REBALANCE_MS,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        partition_assignment_strategy=[assignor.RangePartitionAssignor],
        fetch_max_wait_ms=100,
    )
    try:
        while not member.stop.is_set():
            found = consumer.poll(_POLL_SECONDS * 1000, max_records=_RECORDS_MAX)
            if found:
                member.process(
                    (partition.partition, record.offset)
                    for partition, records in found.items()
                    for record in records
                )
                offsets = {
                    partition: structs.OffsetAndMetadata(records[-1].offset + 1, "", -1)
                    for partition, records in found.items()
                }
                try:
                    consumer.commit(offsets)
                except kafka.errors.KafkaError as error:
                    _tolerate(error, type(error).__name__)
    finally:
        consumer.close()


def aiokafka(member: Membership) -> None:
    """aiokafka's, in a loop of its own."""
    asyncio.run(_aiokafka(member))


async def _aiokafka(member: Membership) -> None:
    kafka = importlib.import_module("aiokafka")
    errors = importlib.import_module("aiokafka.errors")
    assignor = importlib.import_module("aiokafka.coordinator.assignors.range")
    settings = member.settings
    consumer = kafka.AIOKafkaConsumer(
        settings.topic,
        bootstrap_servers=settings.bootstrap,
        group_id=settings.group,
        client_id=member.name,
        session_timeout_ms=settings.session_ms,
        heartbeat_interval_ms=HEARTBEAT_MS,
        max_poll_interval_ms=REBALANCE_MS,
        rebalance_timeout_ms=REBALANCE_MS,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        partition_assignment_strategy=[assignor.RangePartitionAssignor],
        fetch_max_wait_ms=100,
    )
    async with consumer:
        while not member.stop.is_set():
            found = await consumer.getmany(
                timeout_ms=int(_POLL_SECONDS * 1000), max_records=_RECORDS_MAX
            )
            if found:
                member.process(
                    (partition.partition, record.offset)
                    for partition, records in found.items()
                    for record in records
                )
                offsets = {partition: rows[-1].offset + 1 for partition, rows in found.items()}
                try:
                    await consumer.commit(offsets)
                except errors.KafkaError as error:
                    _tolerate(error, type(error).__name__)


LIBRARIES: dict[str, Callable[[Membership], None]] = {
    "confluent": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}
