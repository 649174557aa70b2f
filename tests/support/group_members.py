"""Foreign consumers that are members of a group for the length of a block."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final

from support.kafka_jars import class_path, java
from support.kafka_tools import CONSOLE_CONSUMER
from support.processes import running

Member = Callable[[str, str, str, str], "contextlib.AbstractContextManager[None]"]
"""``(bootstrap, topic, group, assignor)``"""

HEARTBEAT_MS: Final = 300
_PATIENCE: Final = 30.0
_CLASSES: Final = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
    "cooperative-sticky": (
        "cooperative_sticky",
        "CooperativeStickyAssignor",
    ),
}
_JAVA: Final = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}


@contextlib.contextmanager
def _in_thread(poll: Callable[[threading.Event], None]) -> Iterator[None]:
    """Poll in a thread until the block ends; what it raised is raised here."""
    stop = threading.Event()
    errors: list[Exception] = []

    def run() -> None:
        try:
            poll(stop)
        except Exception as error:  # boundary: a foreign client's thread
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_PATIENCE)
    if errors:
        raise errors[0]


def confluent(
    bootstrap: str, topic: str, group: str, assignor: str
) -> contextlib.AbstractContextManager[None]:
    library = import_module("confluent_kafka")

    def poll(stop: threading.Event) -> None:
        consumer = library.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "partition.assignment.strategy": assignor,
                "heartbeat.interval.ms": HEARTBEAT_MS,
            }
        )
        consumer.subscribe([topic])
        while not stop.is_set():
            consumer.poll(0.1)
        consumer.close()

    return _in_thread(poll)


def kafka_python(
    bootstrap: str, topic: str, group: str, assignor: str
) -> contextlib.AbstractContextManager[None]:
    library = import_module("kafka")
    strategy = _assignor("kafka.coordinator.assignors", assignor)

    def poll(stop: threading.Event) -> None:
        consumer = library.KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            partition_assignment_strategy=[strategy],
            heartbeat_interval_ms=HEARTBEAT_MS,
        )
        while not stop.is_set():
            consumer.poll(100)
        consumer.close()

    return _in_thread(poll)


def aiokafka(
    bootstrap: str, topic: str, group: str, assignor: str
) -> contextlib.AbstractContextManager[None]:
    library = import_module("aiokafka")
    strategy = _assignor("aiokafka.coordinator.assignors", assignor)

    async def poll(stop: threading.Event) -> None:
        async with library.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            partition_assignment_strategy=[strategy],
            heartbeat_interval_ms=HEARTBEAT_MS,
        ) as consumer:
            while not stop.is_set():
                await consumer.getmany(timeout_ms=100)

    return _in_thread(lambda stop: asyncio.run(poll(stop)))


@contextlib.contextmanager
def java_client(bootstrap: str, topic: str, group: str, assignor: str) -> Iterator[None]:
    strategy = f"org.apache.kafka.clients.consumer.{_JAVA[assignor]}"
    command = [java(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", class_path()]
    command += [CONSOLE_CONSUMER, "--bootstrap-server", bootstrap, "--topic", topic]
    command += ["--group", group]
    for each in (
        f"partition.assignment.strategy={strategy}",
        f"heartbeat.interval.ms={HEARTBEAT_MS}",
    ):
        command += ["--consumer-property", each]
    with running(command):
        yield


def _assignor(package: str, name: str) -> Any:
    module, class_name = _CLASSES[name]
    return getattr(import_module(f"{package}.{module}"), class_name)


MEMBERS: dict[tuple[str, str], Member] = {
    **{
        ("confluent-kafka", each): confluent
        for each in ("range", "roundrobin", "cooperative-sticky")
    },
    **{("kafka-python", each): kafka_python for each in _CLASSES},
    **{("aiokafka", each): aiokafka for each in ("range", "roundrobin", "sticky")},
    **{("java", each): java_client for each in _JAVA},
}
"""By the client's name and the assignor's: what each of them has."""
