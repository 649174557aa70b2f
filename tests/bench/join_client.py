"""Joining a group with several clients: from a new consumer to its first record.

Nobody has been in the group before, and the partition holds one record. `join` compares brokers by
one client, and this clients by one broker.
"""

from __future__ import annotations

from bench.clients.process import Side, cases, wanted_sides
from bench.clients.task import Task
from bench.librdkafka import librdkafka
from bench.measured import Figure, Measured
from bench.options import Options
from bench.topics import topic

RUNS = 5
SECONDS = 2.0
CASE = "first record"
SIDES = (
    Side("trionet", "ours", "join"),
    Side("trionet pure", "ours", "join", is_pure=True),
    Side("confluent-kafka", "confluent", "join"),
    Side("aiokafka", "aio", "join"),
    Side("kafka-python", "kafka_python", "join"),
)


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "from a new consumer to its first record",
        (
            Figure("p50_us", "p50 µs"),
            Figure("p99_us", "p99 µs"),
            Figure("times", "times"),
        ),
    )
    sides = wanted_sides(SIDES, options, measured)
    for broker, _, case in cases([CASE], options, measured):
        for run in range(options.runs):
            for number, side in enumerate(sides):
                name = f"join-client-{run}-{number}"
                task = Task(broker.bootstrap, name, group=name, seconds=options.seconds)
                with topic(broker.bootstrap, name):
                    librdkafka("produce", broker.bootstrap, name, task.size, 1, acks="all")
                    measured.add(case, side.name, side.run(task))
    return measured
