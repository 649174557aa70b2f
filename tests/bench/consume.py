"""Consuming 100-byte records with several clients: one by one, and in batches.

A partition is assigned, no group; every offset and value is looked at, and checksums
are checked. What is read was written by librdkafka without compression. The broker is a process of
its own, and so is each client; the time begins with the first record. "one by one" is `async for`,
confluent-kafka's `poll()`, aiokafka's `async for` and kafka-python's `for`; "in batches" is
trionet's `batches()`, `consume()`, `getmany()` and kafka-python's `poll()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bench.brokers import Broker
from bench.clients.process import Side, cases, wanted_sides
from bench.clients.task import Task
from bench.librdkafka import librdkafka
from bench.measured import Figure, Measured
from bench.options import Options
from bench.topics import topic

RUNS = 5
SECONDS = 1.0
RECORDS = 500_000
SIZE = 100
#: How long the batches are that are read: Kafka's default, and librdkafka's.
BATCH_BYTES = (16_384, 1_000_000)
WORKS = {"one by one": "consume_each", "in batches": "consume_batches"}
CASES = {
    f"{batch_bytes // 1000}-KB batches, {name}": (batch_bytes, work)
    for batch_bytes in BATCH_BYTES
    for name, work in WORKS.items()
}
LIBRARIES = {
    "trionet": "ours",
    "trionet pure": "ours",
    "confluent-kafka": "confluent",
    "aiokafka": "aio",
    "kafka-python": "kafka_python",
}


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "100-byte records, read and looked at",
        (
            Figure("records", "records/s"),
            Figure("cpu_us", "CPU µs", "{:,.2f}".format),
            Figure("memory", "memory at most, MB", lambda value: f"{value / 1e6:,.0f}"),
        ),
    )
    count = max(1, int(RECORDS * options.seconds))
    for broker, name, case in cases(CASES, options, measured):
        batch_bytes, work = CASES[name]
        sides = wanted_sides(
            (
                Side(side, library, work, is_pure=side == "trionet pure")
                for side, library in LIBRARIES.items()
            ),
            options,
            measured,
        )
        with _filled(broker, f"consume-{work}-{batch_bytes}", count, batch_bytes) as task:
            for _ in range(options.runs):
                for side in sides:
                    measured.add(case, side.name, side.run(task))
    return measured


@contextmanager
def _filled(broker: Broker, name: str, count: int, batch_bytes: int) -> Iterator[Task]:
    """A topic with so many records."""
    with topic(broker.bootstrap, name):
        librdkafka(
            "produce",
            broker.bootstrap,
            name,
            SIZE,
            count,
            acks="all",
            linger_ms="5",
            batch_size=str(batch_bytes),
            queue_buffering_max_messages="500000",
        )
        yield Task(broker.bootstrap, name, records=count, size=SIZE)
