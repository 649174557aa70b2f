"""One awaited 100-byte record after another: send, wait for the acknowledgement (acks=1, linger 0).

The client is librdkafka, the same for every broker.
"""

from __future__ import annotations

from bench.brokers import running_brokers
from bench.librdkafka import librdkafka
from bench.measured import Figure, Measured
from bench.options import Options
from bench.topics import topic

RUNS = 3
SECONDS = 2.0
PAYLOAD_BYTES = 100


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        f"one awaited {PAYLOAD_BYTES}-byte record after another, librdkafka as the client",
        (
            Figure("p50_us", "p50 µs"),
            Figure("p99_us", "p99 µs"),
            Figure("rate", "records/s"),
        ),
    )
    with running_brokers(options, measured) as brokers:
        for run in range(options.runs):
            for broker in brokers:
                with topic(broker.bootstrap, f"latency-{run}") as name:
                    figures = librdkafka(
                        "latency",
                        broker.bootstrap,
                        name,
                        PAYLOAD_BYTES,
                        options.seconds,
                        acks="1",
                        linger_ms="0",
                    )
                measured.add("awaited send", broker.side, figures)
    return measured
