"""A broker for each test: what it costs to set one up, as the fixture does, and to tear it down.

Everything is imported before; `used` is a broker that was asked something, and `TLS` one that a
client could connect to, with its certificate made before.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from bench.measured import Figure, Measured
from bench.options import Options
from trionet.protocol.messages.metadata import MetadataRequest
from trionet.testing import ThreadedBroker, broker, raw_peer

RUNS = 3
SECONDS = 1.0
BROKERS = 60
WARM_UP = 5

CASES: dict[str, dict[str, Any]] = {
    "empty": {},
    "used": {"topics": {"orders": 3}},
    "TLS": {"tls": True},
    "SASL": {"sasl": "SCRAM-SHA-256"},
}


def measure(options: Options) -> Measured:
    """Run the benchmark; `--seconds` has no meaning here."""
    measured = Measured(
        f"a broker for one test, median of {BROKERS}",
        (
            Figure("ms", "set-up, ms", "{:,.1f}".format),
            Figure("ms_max", "slowest", "{:,.1f}".format),
            Figure("teardown", "teardown, ms", "{:,.1f}".format),
            Figure("teardown_max", "slowest", "{:,.1f}".format),
            # What it is on a machine that has nothing else to do.
            Figure("cpu", "both, CPU ms", "{:,.1f}".format),
        ),
    )
    for _ in range(options.runs):
        for case, arguments in CASES.items():
            if options.wants_case(case):
                measured.add(case, "trionet", _run(case, arguments))
    return measured


def _run(case: str, arguments: dict[str, Any]) -> dict[str, float]:
    set_up, teardown, cpu = [], [], []
    for _ in range(WARM_UP + BROKERS):
        cpu_began, began = time.process_time(), time.perf_counter()
        with broker(**arguments) as running:
            ready = time.perf_counter()
            if case == "used":
                _use(running)
            done = time.perf_counter()
        set_up.append((ready - began) * 1000)
        teardown.append((time.perf_counter() - done) * 1000)
        cpu.append((time.process_time() - cpu_began) * 1000)
    set_up, teardown = set_up[WARM_UP:], teardown[WARM_UP:]
    return {
        "ms": statistics.median(set_up),
        "ms_max": max(set_up),
        "teardown": statistics.median(teardown),
        "teardown_max": max(teardown),
        "cpu": statistics.median(cpu[WARM_UP:]),
    }


def _use(running: ThreadedBroker) -> None:
    running.seed("orders", ["a", "b", "c"])
    with raw_peer(running.bootstrap_servers) as peer:
        peer.call(MetadataRequest(topics=None), 9)
