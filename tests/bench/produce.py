"""Producing 100-byte records with several clients: acks=all, every delivery looked at.

Idempotence on, linger 5 ms, no compression, the same batch size; the broker is a process of its
own, and so is each client. The time ends with the last acknowledgement. trionet's `send_batch`
takes many values as a list; the others are given one record after the other.
"CPU µs" is what a record cost the client's process, all threads together: a machine that does other
things meanwhile disturbs it less than the rate.
"""

from __future__ import annotations

from bench.brokers import Broker
from bench.clients.process import Side, cases, wanted_sides
from bench.clients.task import Task
from bench.measured import Figure, Measured
from bench.options import Options
from bench.topics import topic

RUNS = 5
SECONDS = 1.0
RECORDS = 500_000  # a second's worth, more or less
#: Kafka's default, and librdkafka's.
BATCH_BYTES = {"16-KB batches": 16_384, "1-MB batches": 1_000_000}
SIDES = (
    Side("trionet", "ours", "produce"),
    Side("trionet columns", "ours", "produce_columns"),
    Side("trionet pure", "ours", "produce", is_pure=True),
    Side("confluent-kafka", "confluent", "produce"),
    Side("aiokafka", "aio", "produce"),
    Side("kafka-python", "kafka_python", "produce"),
)
#: It writes a fifth of what others do meanwhile.
SLOW_SHARE = {"kafka-python": 0.2}


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "100-byte records, acknowledged by the broker",
        (
            Figure("records", "records/s"),
            Figure("cpu_us", "CPU µs", "{:,.2f}".format),
            Figure("memory", "memory at most, MB", lambda value: f"{value / 1e6:,.0f}"),
        ),
    )
    sides = wanted_sides(SIDES, options, measured)
    for broker, name, case in cases(BATCH_BYTES, options, measured):
        for run in range(options.runs):
            _run(measured, case, broker, sides, BATCH_BYTES[name], run, options.seconds)
    return measured


def _run(
    measured: Measured,
    case: str,
    broker: Broker,
    sides: list[Side],
    batch_bytes: int,
    run: int,
    seconds: float,
) -> None:
    for number, side in enumerate(sides):
        share = SLOW_SHARE.get(side.name, 1.0)
        task = Task(
            broker.bootstrap,
            f"produce-{batch_bytes}-{run}-{number}",
            records=max(1, int(RECORDS * seconds * share) // 1000) * 1000,
            batch_bytes=batch_bytes,
        )
        with topic(broker.bootstrap, task.topic):
            measured.add(case, side.name, side.run(task))
