"""The topics that the cases read, and what happens to the topics of streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import trio

import trionet
from spark.brokers import SETTINGS, add_partitions, delete_records
from trionet.testing._threaded import ThreadedBroker

#: The partitions of each topic, and the records that each has; a time is 1,000 ms for each offset.
NUMBERED: Final[Mapping[str, tuple[int, ...]]] = {
    "numbers": (10, 20, 0),
    "cut": (30,),
    "skewed": (100, 10, 1),
    "void": (0,),
    "orders": (1,),
    "orders.eu": (2,),
    "orders.us": (3,),
    "Orders": (4,),
    "orders-2": (5,),
    "ABC": (1,),
}
#: Topics of tables, one for each case that inserts and each format.
INSERTED: Final = ("inserted-kafka", "inserted-trionet", "intoSomekafka", "intoSometrionet")
_HEADERS: Final[tuple[list[tuple[str, bytes | None]] | None, ...]] = (
    None,
    [("h", b"1")],
    [("h", b"1"), ("h", b"2"), ("i", b"")],
    [("null", None)],
    [],
)


def settings() -> dict[str, object]:
    """Of a broker for the cases."""
    return dict(SETTINGS)


def seed_all(broker: ThreadedBroker) -> None:
    """Create and fill the topics that all cases share."""
    for topic, counts in NUMBERED.items():
        broker.create_topic(topic, len(counts))
        for partition, count in enumerate(counts):
            add(broker, topic, count, partition)
    delete_records(broker, "cut", 10)
    broker.create_topic("headers", 1)
    broker.seed(
        "headers",
        [
            {"key": "k", "value": f"{n}", "headers": headers, "timestamp": n}
            for n, headers in enumerate(_HEADERS)
        ],
    )
    broker.create_topic("nulls", 1)
    broker.seed(
        "nulls",
        [
            {"key": key, "value": value, "timestamp": 7}
            for key, value in ((None, None), ("k", None), (None, "v"), ("", ""))
        ],
    )
    for topic in ("transactions", "compressed", *INSERTED):
        broker.create_topic(topic, 1)
    trio.run(_write_transactions, broker.bootstrap_servers)
    trio.run(_write_compressed, broker.bootstrap_servers)


def add(broker: ThreadedBroker, topic: str, count: int, partition: int, first: int = 0) -> None:
    """Append records with numbers as keys and values."""
    broker.seed(
        topic,
        [
            {
                "key": f"{n}",
                "value": f"{partition}-{n}",
                "partition": partition,
                "timestamp": n * 1000,
            }
            for n in range(first, first + count)
        ],
    )


class StreamTopic:
    """The topic of a stream.

    Args:
        broker: has the topic.
        name: of the topic.
    """

    def __init__(self, broker: ThreadedBroker, name: str) -> None:
        self._broker = broker
        self._name = name
        self._next: dict[int, int] = {}
        broker.create_topic(name, 1)

    def step(self, step: str) -> None:
        """Do what a step of :class:`.cases.Stream` says, except for a run."""
        match step.split():
            case ["add", count]:  # to the last partition
                partition = self._broker.topics()[self._name] - 1
                first = self._next.get(partition, 0)
                add(self._broker, self._name, int(count), partition, first)
                self._next[partition] = first + int(count)
            case ["partitions", count]:
                add_partitions(self._broker, self._name, int(count))
            case ["cut", before]:
                delete_records(self._broker, self._name, int(before))
            case ["delete"]:
                self._broker.delete_topic(self._name)
                self._next = {}
            case ["create"]:
                self._broker.create_topic(self._name, 1)
            case _:
                raise ValueError(f"no such step: {step}")


async def _write_transactions(servers: str) -> None:
    async with trionet.open_producer(servers, transactional_id="writer") as producer:
        for first, is_committed in ((0, True), (3, False), (6, True), (9, False)):
            await producer.begin_transaction()
            for n in range(first, first + 3):
                await producer.send("transactions", b"%d" % n, timestamp=n)
            await (producer.commit_transaction if is_committed else producer.abort_transaction)()


async def _write_compressed(servers: str) -> None:
    for kind in ("gzip", "snappy", "lz4", "zstd"):
        async with trionet.open_producer(servers, compression_type=kind) as producer:
            for n in range(5):
                await producer.send("compressed", b"%d" % n + 200 * b"x", timestamp=n)
