"""One awaited 100-byte record after another with several clients: acks=all, linger 0, idempotence.

confluent-kafka's is `produce()` and `flush()`, its quickest way that waits for an acknowledgement.
"""

from __future__ import annotations

from bench.clients.process import Side, cases, wanted_sides
from bench.clients.task import Task
from bench.measured import Figure, Measured
from bench.options import Options
from bench.topics import topic

RUNS = 5
SECONDS = 1.0
CASE = "awaited send"
SIDES = (
    Side("trionet", "ours", "awaited"),
    Side("trionet pure", "ours", "awaited", is_pure=True),
    Side("confluent-kafka", "confluent", "awaited"),
    Side("aiokafka", "aio", "awaited"),
    Side("kafka-python", "kafka_python", "awaited"),
)


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "one awaited 100-byte record after another",
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
                name = f"awaited-{run}-{number}"
                task = Task(broker.bootstrap, name, seconds=options.seconds)
                with topic(broker.bootstrap, name):
                    measured.add(case, side.name, side.run(task))
    return measured
