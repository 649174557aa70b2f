"""Brokers one request at a time: ApiVersions, a 100-byte Produce and an empty Fetch, closed loop.

The load generator has core 1 for itself as far as the brokers leave it; they may use every core.
"""

from __future__ import annotations

import contextlib

from bench.brokers import running_brokers
from bench.frames import api_versions, empty_fetch, produce
from bench.load import load, processor_seconds
from bench.measured import Figure, Measured
from bench.options import Options
from bench.topics import topic

RUNS = 3
SECONDS = 1.5
CONNECTIONS = (1, 64)
PAYLOAD_BYTES = 100
FRAMES = {
    "ApiVersions v3": api_versions(),
    "Produce v9, 100 B, acks=1": produce("bench", bytes(PAYLOAD_BYTES)),
    "Fetch v12, empty": empty_fetch("empty"),
}


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "requests to a broker, closed loop",
        (
            Figure("rate", "requests/s"),
            Figure("p50_us", "p50 µs"),
            Figure("p99_us", "p99 µs"),
            Figure("p999_us", "p99.9 µs"),
            Figure("cpu_us", "broker CPU µs/request", "{:.1f}".format),
        ),
    )
    with running_brokers(options, measured) as brokers, contextlib.ExitStack() as topics:
        for broker in brokers:
            for name in ("bench", "empty"):
                topics.enter_context(topic(broker.bootstrap, name))
        for case, frame in FRAMES.items():
            for connections in CONNECTIONS:
                name = f"{case}, {connections} conn."
                if not options.wants_case(name):
                    continue
                for _ in range(options.runs):
                    for broker in brokers:
                        before = processor_seconds(broker.pid)
                        figures = load(broker.port, connections, options.seconds, frame)
                        spent = processor_seconds(broker.pid) - before
                        figures["cpu_us"] = spent * 1e6 / figures["requests"]
                        measured.add(name, broker.side, figures)
    return measured
