"""Lines of 100 bytes through pipes, to a topic and from one: our commands beside kcat.

`cat lines | trionet produce TOPIC` and `trionet consume TOPIC -e | wc -c`, each beside kcat with
the same pipe; the figures are of the whole process, its start included. "CPU µs" is what a record
cost that process. Our producer is idempotent, and our consumer looks at checksums; kcat does
neither unless it is told to, and is measured as it comes.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from bench.brokers import Broker
from bench.clients.process import Side, cases, wanted_sides
from bench.measured import Figure, Measured
from bench.options import Options
from bench.topics import topic
from support.cache import Unavailable, require_program
from support.kafka_node import memory_folder
from support.processes import SAME_TRIONET

RUNS = 5
SECONDS = 3.0
RECORDS = 1_000_000  # a second's worth, more or less
SIZE = 100
PRODUCE = "produce"
CONSUME = "consume"
KCAT = "kcat"
SIDES = (
    Side("trionet", "", ""),
    Side("trionet pure", "", "", is_pure=True),
    Side(KCAT, "", ""),
)


def measure(options: Options) -> Measured:
    """Run the benchmark."""
    measured = Measured(
        "lines of 100 bytes through pipes",
        (
            Figure("records", "records/s"),
            Figure("cpu_us", "CPU µs", "{:,.2f}".format),
        ),
    )
    count = max(1000, int(RECORDS * options.seconds))
    sides = [each for each in wanted_sides(SIDES, options, measured) if _is_here(each, measured)]
    with _lines(count) as path:
        for broker, name, case in cases((PRODUCE, CONSUME), options, measured):
            for run in range(options.runs):
                _run(measured, case, broker, sides, _Pipe(name, path, count, run))
    return measured


def _is_here(side: Side, measured: Measured) -> bool:
    if side.name != KCAT:
        return True
    try:
        require_program(KCAT, "what is measured beside")
    except Unavailable as reason:
        measured.skipped[side.name] = str(reason)
        return False
    return True


@attrs.frozen
class _Pipe:
    """What is measured: in which direction, which lines, how many, in which run."""

    name: str
    path: Path
    count: int
    run: int


def _run(measured: Measured, case: str, broker: Broker, sides: Sequence[Side], pipe: _Pipe) -> None:
    for number, side in enumerate(sides):
        with topic(broker.bootstrap, f"pipes-{pipe.name}-{pipe.run}-{number}") as name:
            if pipe.name == CONSUME:
                _produced(_command(SIDES[0], PRODUCE, broker, name), {}, pipe.path)
            command = _command(side, pipe.name, broker, name)
            environment = {"TRIONET_PURE": "1"} if side.is_pure else {}
            if pipe.name == PRODUCE:
                seconds, cpu = _produced(command, environment, pipe.path)
            else:
                seconds, cpu = _consumed(command, environment, pipe.count * (SIZE + 1))
            figures = {"records": pipe.count / seconds, "cpu_us": cpu / pipe.count * 1e6}
            measured.add(case, side.name, figures)


def _command(side: Side, name: str, broker: Broker, topic_name: str) -> list[str]:
    if side.name == KCAT:
        way = ["-P"] if name == PRODUCE else ["-C", "-e", "-q"]
        return [KCAT, *way, "-b", broker.bootstrap, "-t", topic_name]
    way = [name, "-q"] if name == PRODUCE else [name, "-q", "-e"]
    return [sys.executable, "-m", "trionet", *way, "-b", broker.bootstrap, topic_name]


@contextlib.contextmanager
def _lines(count: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="trionet-pipes-", dir=memory_folder()) as folder:
        path = Path(folder) / "lines"
        with path.open("wb") as file:
            for start in range(0, count, 10_000):
                numbers = range(start, min(count, start + 10_000))
                file.write(b"".join(b"%0*d\n" % (SIZE, number) for number in numbers))
        yield path


def _produced(
    command: Sequence[str], environment: Mapping[str, str], path: Path
) -> tuple[float, float]:
    """Seconds, and seconds of the processor, that a command takes for the lines of a file."""
    with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE) as cat:
        start = time.perf_counter()
        process = _started(command, environment, stdin=cat.stdout)
        assert cat.stdout is not None
        cat.stdout.close()
        cpu = _ended(command, process)
        return time.perf_counter() - start, cpu


def _consumed(
    command: Sequence[str], environment: Mapping[str, str], size: int
) -> tuple[float, float]:
    """The same for a command that writes so many bytes."""
    counter = ["wc", "-c"]
    with subprocess.Popen(counter, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as counting:
        start = time.perf_counter()
        process = _started(command, environment, stdout=counting.stdin)
        assert counting.stdin is not None
        counting.stdin.close()
        cpu = _ended(command, process)
        assert counting.stdout is not None
        found = int(counting.stdout.read())
        seconds = time.perf_counter() - start
    if found != size:
        raise RuntimeError(f"{command[0]} wrote {found} bytes, not {size}")
    return seconds, cpu


def _started(
    command: Sequence[str], environment: Mapping[str, str], **pipes: object
) -> subprocess.Popen[bytes]:
    everything: dict[str, Any] = {"env": {**os.environ, **SAME_TRIONET, **environment}, **pipes}
    return subprocess.Popen(command, **everything)


def _ended(command: Sequence[str], process: subprocess.Popen[bytes]) -> float:
    """Wait for a process; the seconds of the processor that it took."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime
