"""The request log: the highest rate of requests with it beside the rate without, and its cost.

Two brokers in memory, of which one logs every request (`request.log.sample` 1.0), are loaded in
turns. Each run with the log is divided by the two without it around it, so that a machine that
becomes slower does not count for one of them. `perf`, where it is there and may count, tells how
many instructions of its own a broker spends on a request, which hardly depends on what else runs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator

from bench.frames import api_versions, empty_fetch, produce
from bench.load import Frame, load, processor_seconds
from bench.measured import Figure, Measured
from bench.options import Options
from bench.topics import topic
from support.trionet_process import trionet_broker_process

RUNS = 9
SECONDS = 1.0
CONNECTIONS = 64
PAYLOAD_BYTES = 100
ON, OFF = "trionet, all logged", "no request log"
FRAMES = {
    "ApiVersions v3": api_versions(),
    "Produce v9, 100 B, acks=1": produce("bench", bytes(PAYLOAD_BYTES)),
    "Fetch v12, empty": empty_fetch("empty"),
}
_SETTINGS = {OFF: {}, ON: {"request.log.topic": "requests"}}


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    counts = can_count()
    figures = [
        Figure("rate", "requests/s"),
        Figure("of_without", "of that without", "{:.3f}".format),
        Figure("cpu_us", "broker CPU µs/request", "{:.2f}".format),
    ]
    if counts:
        figures.append(Figure("instructions", "user instructions/request"))
    measured = Measured(f"requests with and without a request log, {CONNECTIONS} conn.", figures)
    if not counts:
        measured.skipped["instructions"] = "perf is not there, or may not count them"
    with contextlib.ExitStack() as stack:
        brokers = {}
        for side, settings in _SETTINGS.items():
            bootstrap, process = stack.enter_context(trionet_broker_process(settings=settings))
            brokers[side] = (int(bootstrap.rpartition(":")[2]), process.pid)
            for name in ("bench", "empty"):
                stack.enter_context(topic(bootstrap, name))
        for case, frame in FRAMES.items():
            if options.wants_case(case):
                _compare(measured, case, frame, brokers, options, counts=counts)
    return measured


def _compare(
    measured: Measured,
    case: str,
    frame: Frame,
    brokers: dict[str, tuple[int, int]],
    options: Options,
    *,
    counts: bool,
) -> None:
    """Without, with, without, with, …, without."""

    def one(side: str) -> dict[str, float]:
        return _one(*brokers[side], frame, options.seconds, counts=counts)

    before = one(OFF)
    for _ in range(options.runs):
        logging, after = one(ON), one(OFF)
        logging["of_without"] = logging["rate"] * 2 / (before["rate"] + after["rate"])
        after["of_without"] = 1.0
        measured.add(case, OFF, after)
        measured.add(case, ON, logging)
        before = after


def _one(port: int, pid: int, frame: Frame, seconds: float, *, counts: bool) -> dict[str, float]:
    before = processor_seconds(pid)
    with instructions(pid) if counts else contextlib.nullcontext([0]) as counted:
        figures = load(port, CONNECTIONS, seconds, frame)
    figures["cpu_us"] = (processor_seconds(pid) - before) * 1e6 / figures["requests"]
    figures["instructions"] = counted[0] / figures["requests"]
    return figures


def can_count() -> bool:
    if shutil.which("perf") is None:
        return False
    with instructions(os.getpid()) as counted:
        sum(range(1000))
    return counted[0] > 0


@contextlib.contextmanager
def instructions(pid: int) -> Iterator[list[int]]:
    """Counts the instructions of a process outside the kernel during the block; 0 if it cannot."""
    counted = [0]
    told, tell = os.pipe()
    answered, answer = os.pipe()
    command = ["perf", "stat", "-x", ",", "-D", "-1", "-e", "instructions:u", "-p", str(pid)]
    command += ["--control", f"fd:{told},{answer}"]
    perf = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, pass_fds=(told, answer))
    os.close(told)
    os.close(answer)
    with perf, open(tell, "w", buffering=1) as orders, open(answered) as answers:
        with contextlib.suppress(BrokenPipeError):  # it said what it lacks, and ended
            orders.write("enable\n")
            answers.readline()
        yield counted
        perf.send_signal(signal.SIGINT)
        assert perf.stderr is not None
        found = [line.split(",")[0] for line in perf.stderr if "instructions:u" in line]
    counted[0] = int(found[0]) if found and found[0].isdigit() else 0
