"""``trionet pipeline run`` as a process: what ends it, and what the next one goes on with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import trionet
from spark.pipeline.logged import counted, traffic, window_of
from spark.pipeline.written_results import tables
from support.java import NO_JAVA, has_java
from trionet.protocol.request_log import encode
from trionet.testing._threaded import ThreadedBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not has_java(), reason=NO_JAVA),
]

LOG = "requests"
#: Spark's tests are small, and so are its processes.
SPARK = ["--master", "local[2]", "--set", "spark.driver.memory=1g"]
#: What Spark writes before the job has set its log level.
OF_STARTING_SPARK = (
    "WARNING: Using incubator modules",
    "Using Spark's default log4j profile",
    "Setting default log level",
    "To adjust logging level",
    "Unable to load native-hadoop library",
    "Setting Spark log level",
)


@contextmanager
def running(broker: ThreadedBroker, folder: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A job for the length of a block, in a process group of its own, as a terminal has it.

    Nothing but the command itself may write, and Spark while it starts.
    """
    command = [sys.executable, "-m", "trionet", "pipeline", "run", "--json", "--topic", LOG, *SPARK]
    where = ["--bootstrap-server", broker.bootstrap_servers, "--folder", str(folder)]
    # The records are of one day, and older with each day that passes.
    how = ["--watermark", "1s", "--interval", "500ms", "--max-age", "36500d", *more]
    with subprocess.Popen(
        [*command, *where, *how],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
        for _ in events(process):
            pass


def events(process: subprocess.Popen[str]) -> Iterator[dict[str, Any] | str]:
    """What the job tells: its events, and the messages for people."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{"):
            yield json.loads(line)
        elif not any(each in line for each in OF_STARTING_SPARK):
            message = line.removeprefix("trionet pipeline: ")
            assert message != line, "neither Python nor Java writes anything else"
            yield message


def next_event(process: subprocess.Popen[str], **wanted: Any) -> dict[str, Any]:
    """The next event that has windows, or is of a kind."""
    for event in events(process):
        if isinstance(event, dict) and all(event[name] == wanted[name] for name in wanted):
            return event
    raise AssertionError(f"the job has ended with {process.wait()}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_job_that_was_ended_goes_on_where_it_was(tmp_path: Path, number: signal.Signals) -> None:
    records = traffic(seed=6, count=600, seconds=5 * 60)
    values = [encode(each) for each in records]
    settings = {"log.retention.ms": -1}
    with trionet.testing.broker(settings, topics={LOG: 1}) as broker:
        broker.seed(LOG, values[:400])
        with running(broker, tmp_path) as process:
            first = next_event(process, records=400)
            if number == signal.SIGINT:  # as a terminal does, and Spark's JVM is of the same group
                os.killpg(process.pid, number)
            else:
                process.send_signal(number)
            if number != signal.SIGKILL:
                assert next_event(process, event="end")["is_stopped"]
                assert 0 == process.wait()
        assert 3 == len(first["windows"])

        broker.seed(LOG, values[400:])
        with running(broker, tmp_path, "--available-now") as process:
            end = next_event(process, event="end")
            assert 0 == process.wait()

    found = tables(tmp_path)
    last = max(window_of(each) for each in records)
    over = counted(each for each in records if window_of(each) < last)
    assert {key: row["requests"] for key, row in over["windows"].items()} == {
        (row["window"],): row["requests"] for row in found["windows"]
    }
    assert len(records) == end["open_records"] + sum(
        row["records"] + row["connections"] for row in found["windows"]
    )


@pytest.mark.parametrize("is_begun", [False, True])
def test_ctrl_c_ends_a_job_that_starts_or_is_busy(tmp_path: Path, is_begun: bool) -> None:
    values = [encode(each) for each in traffic(seed=6, count=20_000, seconds=30 * 60)]
    with trionet.testing.broker({"log.retention.ms": -1}, topics={LOG: 1}) as broker:
        broker.seed(LOG, values)
        busy = ["--max-records", "100", "--interval", "1ms"]
        with running(broker, tmp_path / "results", *busy) as process:
            if is_begun:
                next_event(process, event="batch")
            else:
                assert "starting Spark (local[2])\n" in events(process)
            os.killpg(process.pid, signal.SIGINT)

            assert next_event(process, event="end")["is_stopped"]
            assert 0 == process.wait()


def test_results_of_another_checkpoint_are_not_counted_twice(tmp_path: Path) -> None:
    values = [encode(each) for each in traffic(seed=6, count=100, seconds=3 * 60)]
    with trionet.testing.broker({"log.retention.ms": -1}, topics={LOG: 1}) as broker:
        broker.seed(LOG, values)
        with running(broker, tmp_path, "--available-now") as process:
            assert 0 == process.wait()
        elsewhere = str(tmp_path.with_name("checkpoint"))
        with running(broker, tmp_path, "--available-now", "--checkpoint", elsewhere) as process:
            assert 2 == process.wait()
