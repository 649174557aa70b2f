"""Jobs that write results and are killed, and the reports beside them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import attrs
import pyarrow.compute as pc
import trio

import trionet
from spark.pipeline.light_job import differences
from spark.pipeline.logged import BEGIN, Logged, traffic
from support.processes import SAME_TRIONET
from support.spark_python import spark_python
from trionet.protocol.request_log import LoggedRequest, encode
from trionet.spark.pipeline.report._arrow_queries import ArrowResults
from trionet.spark.pipeline.report._inputs import Filters, TimeRange
from trionet.spark.pipeline.report._queries import INTAKE_COUNTS
from trionet.spark.pipeline.report._report import make_report
from trionet.spark.pipeline.results._cuts import CUTS, Cut

_LOOK_SECONDS: Final = 0.05
#: However busy the machine is: a job that writes nothing for so long stands still.
_PATIENCE_SECONDS: Final = 600.0
_WRONG_MAX: Final = 10
NOW: Final = datetime(2100, 1, 1, tzinfo=UTC)

_TESTS: Final = str(Path(__file__).parents[1])
_ENVIRONMENT: Final = {"PYTHONPATH": os.pathsep.join([_TESTS, SAME_TRIONET["PYTHONPATH"]])}


class Job(ABC):
    """A process that writes results.

    Args:
        folder: for everything of it.

    Attributes:
        results: the results directory.
        pauses: the shortest and the longest time from its first results to a kill, in seconds.
    """

    pauses: tuple[float, float]

    def __init__(self, folder: Path) -> None:
        self.results = folder / "results"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @contextmanager
    def open(self) -> Iterator[None]:
        """Have what it needs, and the process itself, for the length of the block."""
        try:
            self.start()
            yield
        finally:
            self.kill()

    def start(self) -> None:
        """Start the process."""
        with (self._folder / "job.log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={**os.environ, **_ENVIRONMENT, **spark_python()},
                start_new_session=True,
            )

    def kill(self) -> None:
        """SIGKILL for the process and its children."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    @property
    def end(self) -> str:
        """How it has ended by itself; empty if it has not."""
        assert self._process is not None
        if self._process.poll() is None:
            return ""
        said = (self._folder / "job.log").read_text(errors="replace").splitlines()[-20:]
        return "\n".join([f"it has ended with {self._process.returncode}", *said])

    @property
    def cut(self) -> Cut | None:
        """The latest cut of its results."""
        return Cut.latest(each.name for each in (self.results / CUTS).glob("*"))

    @abstractmethod
    def command(self) -> Sequence[str]:
        """The command of the process."""

    @abstractmethod
    def differences(self) -> list[str]:
        """Make a report, and return what of it does not belong together, in words."""

    @abstractmethod
    def go_on(self) -> None:
        """Give the process something to do; called all the time."""


class LightJob(Job):
    """A process without Spark."""

    pauses = (0.0, 4.0)

    def command(self) -> Sequence[str]:
        return [sys.executable, "-m", "reports.writer", str(self.results)]

    def differences(self) -> list[str]:
        return differences(self.results, NOW)

    def go_on(self) -> None:
        """It has always something to do."""


_LOG: Final = "requests"
#: Records of tests are of a day that may not be over yet, and no log has records of tomorrow.
_DAYS_AGO: Final = 3
#: How much time of the log is in a second.
_LOG_SECONDS: Final = 120
_RECORDS_PER_MINUTE: Final = 60


class SparkJob(Job):
    """``trionet pipeline run``, of a log in which two minutes take a second."""

    pauses = (0.0, 20.0)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._began = time.monotonic()
        self._written_minutes = 0
        self._first_second = int(time.time()) - _DAYS_AGO * 86_400

    @contextmanager
    def open(self) -> Iterator[None]:
        with ExitStack() as stack:
            settings = {"log.retention.ms": -1}
            broker = trionet.testing.broker(settings, topics={_LOG: 2})
            self._broker = stack.enter_context(broker)
            stack.enter_context(super().open())
            yield

    def command(self) -> Sequence[str]:
        command = [sys.executable, "-m", "trionet", "pipeline", "run", "--topic", _LOG]
        command += ["--bootstrap-server", self._broker.bootstrap_servers, "--master", "local[2]"]
        command += ["--folder", str(self.results), "--watermark", "1s", "--interval", "500ms"]
        return [*command, "--set", "spark.driver.memory=1g"]

    def go_on(self) -> None:
        reached = int((time.monotonic() - self._began) * _LOG_SECONDS / 60)
        for minute in range(self._written_minutes, reached):
            logged = traffic(minute, _RECORDS_PER_MINUTE, 60)
            moved_us = (self._first_second - BEGIN + 60 * minute) * 1_000_000
            self._broker.seed(_LOG, [encode(_later(each, moved_us)) for each in logged])
        self._written_minutes = max(self._written_minutes, reached)

    def differences(self) -> list[str]:
        found = ArrowResults(str(self.results), TimeRange())

        def total(table: str, column: str) -> int:
            rows = found.table(table, (column,))
            return 0 if rows is None else int(pc.sum(rows[column]).as_py() or 0)

        opened = found.table("intake", ("open_records",))
        lost = sum(total("intake", name) for name in INTAKE_COUNTS)
        last = max(zip(opened["at"].to_pylist(), opened["open_records"].to_pylist(), strict=True))
        in_windows = total("windows", "records") + total("windows", "connections")
        report = make_report(None, str(self.results), TimeRange(), Filters(), 10, NOW)
        in_report = sum(each.requests for each in report.errors)
        pairs = {
            "records": (total("windows", "records"), total("requests", "records")),
            "errors": (total("windows", "errors"), total("errors", "requests")),
            "connections": (total("windows", "connections"), total("closes", "connections")),
            "records read": (total("intake", "records"), in_windows + lost + last[1]),
            "errors of the report": (report.traffic.errors, in_report),
        }
        return [f"{one} and {other} {name}" for name, (one, other) in pairs.items() if one != other]


def _later(logged: Logged, moved_us: int) -> Logged:
    if isinstance(logged, LoggedRequest):
        return attrs.evolve(logged, completed_at_us=logged.completed_at_us + moved_us)
    return attrs.evolve(logged, closed_at_us=logged.closed_at_us + moved_us)


@attrs.define
class Outcome:
    """What came of it.

    Attributes:
        reports: how many were made.
        kills: how often the job was killed.
        batches: how many micro-batches are whole.
        removals: how often files were deleted.
        wrong: in words.
    """

    reports: int = 0
    kills: int = 0
    batches: int = 0
    removals: int = 0
    wrong: list[str] = attrs.field(factory=list)

    def __str__(self) -> str:
        return (
            f"{self.reports:,} reports beside {self.batches:,} micro-batches, {self.kills} kills"
            f" and {self.removals} removals of files: {len(self.wrong)} wrong"
        )


class Beside:
    """Reports beside a job.

    Args:
        job: is running.
        rng: draws the kills.
    """

    def __init__(self, job: Job, rng: random.Random) -> None:
        self._job = job
        self._rng = rng
        self._outcome = Outcome()
        self._started_at = time.monotonic()
        self._kill_at: float | None = None

    async def run(self, reports: int, show: Callable[[Outcome], None]) -> Outcome:
        """Make reports until there are as many, or too much is wrong."""
        outcome = self._outcome
        while outcome.reports < reports and len(outcome.wrong) < _WRONG_MAX:
            await trio.lowlevel.checkpoint()
            self._job.go_on()
            if end := self._job.end or self._standstill():
                outcome.wrong.append(end)
                break
            self._follow()
            if not outcome.batches:
                await trio.sleep(_LOOK_SECONDS)
                continue
            outcome.wrong += self._report()
            outcome.reports += 1
            show(outcome)
        return outcome

    def _report(self) -> list[str]:
        try:
            return self._job.differences()
        except Exception:  # boundary: a report that fails must not end the ones after it
            return [traceback.format_exc()]

    def _follow(self) -> None:
        """Note how far the job is, and kill it when that is due."""
        if (cut := self._job.cut) is None:
            return
        outcome = self._outcome
        if cut.end > outcome.batches and self._kill_at is None:
            self._kill_at = time.monotonic() + self._rng.uniform(*self._job.pauses)
        outcome.batches, outcome.removals = cut.end, cut.removals
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._job.kill()
            outcome.kills += 1
            self._job.start()
            self._started_at = time.monotonic()
            self._kill_at = None

    def _standstill(self) -> str:
        is_late = time.monotonic() - self._started_at > _PATIENCE_SECONDS
        return "it stands still" if is_late and self._kill_at is None else ""
