"""`trionet pipeline run` as a process that can be killed with all that it has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from support.processes import SAME_TRIONET

INTERVAL, WATERMARK = "5s", "10s"
WATERMARK_SECONDS = 10.0
# Spark ends what it does, and its workers.
_STOP_SECONDS = 180.0


@attrs.frozen
class Job:
    """Where the pipeline reads and writes.

    Attributes:
        bootstrap: the broker.
        topic: its request log's.
        folder: of the results.
        log: what it says, of all its runs.
        options: more of the command line.
    """

    bootstrap: str
    topic: str
    folder: Path
    log: Path
    options: tuple[str, ...] = ()

    @property
    def command(self) -> list[str]:
        return [
            *(sys.executable, "-m", "trionet", "pipeline", "run"),
            *("--bootstrap-server", self.bootstrap, "--topic", self.topic),
            *("--folder", str(self.folder), "--interval", INTERVAL, "--watermark", WATERMARK),
            *self.options,
        ]

    def progress(self) -> tuple[int, ...]:
        """How many batches were begun, and ended, by what is in the checkpoint."""
        checkpoint = self.folder / "_checkpoint"
        return tuple(
            sum(path.name.isdecimal() for path in (checkpoint / each).glob("*"))
            for each in ("offsets", "commits")
        )


class Running:
    """A pipeline that runs."""

    def __init__(self, process: subprocess.Popen[bytes], job: Job) -> None:
        self._process = process
        self._job = job

    def check(self) -> None:
        """Raise RuntimeError if it has ended by itself."""
        status = self._process.poll()
        if status is not None:
            raise RuntimeError(f"the pipeline ended with {status}:\n{self.tail()}")

    def tail(self, size: int = 3000) -> str:
        """The last that it said."""
        return self._job.log.read_bytes()[-size:].decode(errors="replace")

    def stop(self) -> None:
        """Have it end as a user does; RuntimeError if it does not, or fails."""
        self._process.terminate()
        try:
            status = self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"SIGTERM did not end the pipeline:\n{self.tail()}") from None
        if status:
            raise RuntimeError(f"SIGTERM ended the pipeline with {status}:\n{self.tail()}")

    def kill(self) -> None:
        """Kill it, its JVM and its Python workers at once."""
        for pid in _session(self._process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._process.wait()


def _session(leader: int) -> list[int]:
    """All processes of a session (Linux): Spark's workers have process groups of their own."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        if int(fields[3]) == leader:
            found.append(int(path.parent.name))
    return found


@contextmanager
def running_pipeline(job: Job) -> Iterator[Running]:
    """A pipeline that is killed at the end of the block, unless it has ended."""
    with job.log.open("ab") as log:
        process = subprocess.Popen(
            job.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **SAME_TRIONET},
            start_new_session=True,
        )
        running = Running(process, job)
        try:
            yield running
        finally:
            running.kill()
