"""The demo with Spark beside it, as a user starts it: how it ends, and what is left."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from demo.analysis import no_spark
from demo.dataset import data_file
from support.process_list import children_of

ROOT = Path(__file__).resolve().parents[2]
WORST = re.compile(r" +[A-Z0-9]{2} [A-Z]{3}-[A-Z]{3} +-?\d+ min on average, one in ten ")

try:
    data_file()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)
if obstacle := no_spark():
    pytest.skip(obstacle, allow_module_level=True)

if not hasattr(os, "pidfd_open"):
    pytest.skip("no pidfd_open on this system", allow_module_level=True)

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


@contextlib.contextmanager
def demo(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The running demo, whose files for Spark are below the folder."""
    process = subprocess.Popen(
        [sys.executable, "-m", "demo.flights", "--spark", *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def below(pid: int) -> dict[int, str]:
    """All processes that a process has started, and those that they have."""
    found = children_of(pid)
    for child in list(found):
        found |= below(child)
    return found


def first_results(process: subprocess.Popen[str]) -> dict[int, str]:
    """Read on until the first delays are shown; Spark's processes, the child's own first."""
    assert process.stdout is not None
    for line in process.stdout:
        if WORST.match(line):
            break
    [pipeline] = [
        pid for pid, command in children_of(process.pid).items() if "demo.pipeline" in command
    ]
    return {pipeline: "pipeline", **below(pipeline)}


@contextlib.contextmanager
def all_of_them_end(processes: Iterable[int]) -> Iterator[None]:
    """Wait for the end of all these processes; who does not end lets the test time out."""
    with contextlib.ExitStack() as stack:
        waiting = []
        for pid in processes:
            with contextlib.suppress(ProcessLookupError):  # it was a short one
                waiting.append(os.pidfd_open(pid))
                stack.callback(os.close, waiting[-1])
        yield
        for descriptor in waiting:
            select.select([descriptor], [], [])


def test_the_whole_year_as_fast_as_possible_waits_for_all_its_delays(tmp_path: Path) -> None:
    with demo(tmp_path, "--speed", "max") as process:
        output, errors = process.communicate()
    *lines, delays, _, _, verdict = output.splitlines()

    assert (0, "") == (process.returncode, errors)
    assert delays.startswith("Delays by Spark: 336,776 read, 0 waiting, 0 groups too late, ")
    assert " windows of 28 days in the topic flight-delays." in delays
    assert any(WORST.match(line) for line in lines)
    assert verdict.startswith("Verdict: consumed == produced")
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_spark_too_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with demo(tmp_path) as process:
        started = first_results(process)
        with all_of_them_end(started):
            process.send_signal(number)
            output, errors = process.communicate()

    assert (0, "") == (process.returncode, errors)
    assert output.splitlines()[-1].startswith("Verdict: consumed == produced")
    assert any("java" in command for command in started.values())
    assert [] == list(tmp_path.iterdir())


def test_spark_that_dies_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    with demo(tmp_path) as process:
        started = first_results(process)
        assert process.stdout is not None
        with all_of_them_end(started):
            os.kill(next(iter(started)), signal.SIGKILL)
            for line in process.stdout:
                if "no delays by Spark" in line:
                    break
        for _ in range(2):
            process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate()

    told = "the pipeline ended early, with exit status -9"
    assert line.strip().startswith(f"no delays by Spark: {told}")
    assert output.splitlines()[-1].startswith("Verdict: consumed == produced")
    assert errors.startswith(f"demo: {told}")
    assert 1 == process.returncode
