"""The demo with Spark beside it, as a user starts it: how it ends, and what is left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from support.flights_demo import files_left, own_folders, running_demo, skip_without_spark
from support.process_list import children_of, descendants_of
from support.processes import all_of_them_end

WORST = re.compile(r" +[A-Z0-9]{2} [A-Z]{3}-[A-Z]{3} +-?\d+ min on average, one in ten ")

skip_without_spark()
if not hasattr(os, "pidfd_open"):
    pytest.skip("no pidfd_open on this system", allow_module_level=True)

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]


def demo(folder: Path, *arguments: str) -> AbstractContextManager[subprocess.Popen[str]]:
    """The running demo, whose files for Spark are below the folder."""
    return running_demo("--spark", *arguments, env=own_folders(folder))


def first_results(process: subprocess.Popen[str]) -> dict[int, str]:
    """Read on until the first delays are shown; Spark's processes, the child's own first."""
    assert process.stdout is not None
    for line in process.stdout:
        if WORST.match(line):
            break
    [pipeline] = [
        pid for pid, command in children_of(process.pid).items() if "demo.pipeline" in command
    ]
    return {pipeline: "pipeline", **{each.pid: each.command for each in descendants_of(pipeline)}}


def test_the_whole_year_as_fast_as_possible_waits_for_all_its_delays(tmp_path: Path) -> None:
    with demo(tmp_path, "--speed", "max") as process:
        output, errors = process.communicate()
    *lines, verdict = output.splitlines()
    [at] = [at for at, line in enumerate(lines) if line.startswith("Delays by Spark: ")]
    delays, *worst = lines[at:]

    assert (0, "") == (process.returncode, errors)
    assert delays.startswith("Delays by Spark: 336,776 read, 0 waiting, 0 groups too late, ")
    assert " windows of 28 days in the topic flight-delays." in delays
    assert any(WORST.match(line) for line in worst)
    assert verdict.startswith("Verdict: consumed == produced")
    assert [] == files_left(tmp_path)


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
    assert [] == files_left(tmp_path)


def test_spark_that_dies_is_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
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
