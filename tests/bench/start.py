"""Starting: how long until a broker responds to its first ApiVersions request, and its memory then.

"in process" is `open_broker()` inside a running trio program that has imported everything; "exec"
starts a process. Kafka's data directory is formatted beforehand.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.measured import Figure, Measured
from bench.options import Options
from support.cache import Unavailable
from support.kafka_node import kafka_folder
from support.kfake import kfake
from support.ports import answers_api_versions
from support.processes import SAME_TRIONET, memory_bytes
from support.trionet_process import trionet_broker_process

RUNS = 3
SECONDS = 1.0
STARTS_IN_PROCESS = 20
IN_PROCESS, EXEC = "in process", "exec"

_TESTS = Path(__file__).parents[1]


@contextlib.contextmanager
def _trionet() -> Iterator[int]:
    with trionet_broker_process() as (bootstrap, process):
        yield _answered(bootstrap, process.pid)


@contextlib.contextmanager
def _kfake() -> Iterator[int]:
    with kfake() as (bootstrap, pid):
        yield _answered(bootstrap, pid)


def _answered(bootstrap: str, pid: int) -> int:
    if not answers_api_versions(int(bootstrap.rpartition(":")[2])):
        raise RuntimeError("said that it is ready, but does not answer")
    return pid


def measure(options: Options) -> Measured:
    """Run the benchmark; `--seconds` has no meaning here."""
    measured = Measured(
        "start to first ApiVersions answer",
        (
            Figure("ms", "ms", "{:,.1f}".format),
            Figure("memory", "memory then, MB", lambda value: f"{value / 1e6:,.0f}"),
        ),
    )
    if options.wants("trionet") and options.wants_case(IN_PROCESS):
        for figures in _in_process():
            measured.add(IN_PROCESS, "trionet", figures)
    with contextlib.ExitStack() as stack:
        starts: dict[str, Callable[[], contextlib.AbstractContextManager[int]]] = {
            "trionet": _trionet,
            "kfake": _kfake,
        }
        if options.wants("Apache Kafka"):
            try:
                folder = stack.enter_context(kafka_folder())
            except Unavailable as reason:
                measured.skipped["Apache Kafka"] = str(reason)
            else:
                starts["Apache Kafka"] = lambda: _pid_of(folder.broker())
        for _ in range(options.runs if options.wants_case(EXEC) else 0):
            for side, start in starts.items():
                if options.wants(side) and side not in measured.skipped:
                    try:
                        measured.add(EXEC, side, _exec(start))
                    except Unavailable as reason:
                        measured.skipped[side] = str(reason)
    return measured


@contextlib.contextmanager
def _pid_of(
    broker: contextlib.AbstractContextManager[subprocess.Popen[bytes]],
) -> Iterator[int]:
    with broker as process:
        yield process.pid


def _exec(start: Callable[[], contextlib.AbstractContextManager[int]]) -> dict[str, float]:
    begin = time.perf_counter()
    with start() as pid:
        seconds = time.perf_counter() - begin
        return {"ms": seconds * 1000, "memory": memory_bytes(pid)}


def _in_process() -> list[dict[str, float]]:
    program = Path(__file__).parent / "servers" / "start_in_process.py"
    path = os.pathsep.join([SAME_TRIONET["PYTHONPATH"], str(_TESTS)])
    done = subprocess.run(
        [sys.executable, str(program), str(STARTS_IN_PROCESS)],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    runs: list[dict[str, float]] = json.loads(done.stdout)
    return runs
