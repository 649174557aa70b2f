"""Producing and consuming at full speed: 100-byte and 1-KB records, one partition, acks=1.

The client is librdkafka with the same settings for every broker; no compression, linger 5 ms. Each
run fills a new topic, reads it back and deletes it. --seconds scales the number of records.

A virtual machine may have given its free memory back to its host, and then whoever writes first
waits for the host at every page: 0.5 to 0.7 GB/s where warm pages take 3.5 GB/s (measured with a
plain memfd). So before each run as much memory as it can need is touched and freed again.
"""

from __future__ import annotations

import mmap

from bench.brokers import Broker, running_brokers
from bench.librdkafka import librdkafka
from bench.measured import Figure, Measured
from bench.options import Options
from bench.topics import topic
from support.processes import memory_bytes

RUNS = 3
SECONDS = 1.0
RECORDS = {100: 1_000_000, 1024: 250_000}  # a second's worth, more or less
# Generous: what was freed comes back in another order than it was touched in.
WARM_FACTOR = 12


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "records through one partition, librdkafka as the client",
        (
            Figure("records", "records/s"),
            Figure("megabytes", "MB/s"),
            Figure("memory", "broker memory after, MB", lambda value: f"{value / 1e6:,.0f}"),
        ),
    )
    with running_brokers(options, measured) as brokers:
        for size, records in RECORDS.items():
            for run in range(options.runs):
                for broker in brokers:
                    count = int(records * options.seconds)
                    _run(measured, broker, f"throughput-{size}-{run}", size, count)
    return measured


def _run(measured: Measured, broker: Broker, name: str, size: int, count: int) -> None:
    _warm(WARM_FACTOR * size * count)
    with topic(broker.bootstrap, name):
        settings = {"acks": "1", "linger_ms": "5", "queue_buffering_max_messages": "500000"}
        for mode in ("produce", "consume"):
            figures = librdkafka(
                mode, broker.bootstrap, name, size, count, **(settings if mode == "produce" else {})
            )
            figures["memory"] = memory_bytes(broker.pid)
            measured.add(f"{mode} {size} B", broker.side, figures)


def _warm(size: int) -> None:
    """Have the host back ``size`` bytes of free memory."""
    with mmap.mmap(-1, size) as memory:
        for position in range(0, size, mmap.PAGESIZE):
            memory[position] = 1
