"""What is killed: a job in Spark with its processes, and a broker with its data on disk."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import trio

from support.ports import free_ports
from support.process_list import descendants_of
from support.processes import SAME_TRIONET
from support.trionet_process import trionet_broker_process

#: How often a job may end by itself in a run; it would be started for ever.
ENDS_MAX: Final = 10
#: Spark waits ten seconds for a Python process; on a machine that is busy enough it gives up.
_NO_TIME: Final = "Python worker failed to connect back"
_DAEMON: Final = "pyspark.daemon"
_TASK: Final = "worker"
_PLANNER: Final = "python_streaming_source_runner"
_LOOK_SECONDS: Final = 0.05
_REASON_CHARS_MAX: Final = 200
#: How often it is a worker of a task, where there is one.
_TASK_SHARE: Final = 0.5
_DOWN_SECONDS: Final = (0.0, 1.0)


class Job:
    """A program that is started again whenever it ends without being through.

    Args:
        command: the program; its exit status is 0 when it is through.
        folder: for its log, and for what it would leave behind when it is killed.

    Attributes:
        is_through: it has ended as it should.
        starts: how often it was started.
        ended: why it has ended after one of its workers was killed, or on too busy a machine.
        odd_ends: why it has ended for no such reason.
    """

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self.is_through = False
        self.starts = 0
        self.ended: list[str] = []
        self.odd_ends: list[str] = []
        self._command = command
        self._log = folder / "job.log"
        self._temporary = folder / "temporary"
        self._temporary.mkdir()
        self._process: trio.Process | None = None
        self._is_killed = False
        self._has_lost_worker = False

    @property
    def has_given_up(self) -> bool:
        """Whether it is not started again."""
        return len(self.odd_ends) + len(self.ended) >= ENDS_MAX

    async def run(self) -> None:
        """Until it is through; killed when this is cancelled."""
        while not self.has_given_up:
            if await self._run_once() == 0:
                self.is_through = True
                return

    async def _run_once(self) -> int:
        self.starts += 1
        self._is_killed = self._has_lost_worker = False
        size = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            process = await trio.lowlevel.open_process(
                list(self._command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    **SAME_TRIONET,
                    "PYSPARK_PYTHON": sys.executable,
                    "SPARK_LOCAL_DIRS": str(self._temporary),
                    "TMPDIR": str(self._temporary),
                },
                start_new_session=True,
            )
        self._process = process
        try:
            status = await process.wait()
        finally:
            self._process = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with trio.CancelScope(shield=True):  # it has been killed, so that this is short
                await process.wait()
        if status and not self._is_killed:
            reason = _reason(self._log.read_bytes()[size:])
            is_known = self._has_lost_worker or _NO_TIME in reason
            (self.ended if is_known else self.odd_ends).append(reason)
        return status

    def kill(self) -> str:
        """SIGKILL for the driver: its Python and its JVM."""
        if self._process is None:
            return "driver, which had just ended"
        self._is_killed = True
        os.killpg(self._process.pid, signal.SIGKILL)
        return "driver"

    async def kill_worker(self, rng: random.Random) -> str:
        """SIGKILL for one of its Python processes: of a task, or one that plans or commits."""
        found = await self._workers()
        while not found:
            await trio.sleep(_LOOK_SECONDS)
            found = await self._workers()
        kinds = sorted(set(found.values()))
        is_task = _TASK in kinds and rng.random() < _TASK_SHARE
        kind = _TASK if is_task else rng.choice(kinds)
        victim = rng.choice(sorted(pid for pid, each in found.items() if each == kind))
        self._has_lost_worker = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        return kind

    async def _workers(self) -> dict[int, str]:
        """What runs tasks, and what plans: by process id, what it is for."""
        if self._process is None:
            return {}
        found = await trio.to_thread.run_sync(descendants_of, self._process.pid)
        daemons = {each.pid for each in found if _DAEMON in each.command}
        return {
            each.pid: each.command.rpartition(".")[2]
            for each in found
            if each.command.endswith(_PLANNER) or (each.pid in daemons and each.parent in daemons)
        }


def _reason(said: bytes) -> str:
    """The last line of an error that is not Java's stack."""
    lines = said.decode(errors="replace").splitlines()
    told = [line.strip() for line in lines if line.strip() and not line.startswith(("\t", " "))]
    errors = [line for line in told if "Error: " in line or "Exception: " in line]
    text = next(reversed(errors or told), "without a word")
    return text.rpartition("terminated with exception: ")[2][:_REASON_CHARS_MAX]


class DurableBroker:
    """A broker that is killed, and started again with the same port and folder.

    Args:
        folder: where its data is, and its log.

    Attributes:
        bootstrap_servers: where clients begin.
        kills: how often it was killed.
    """

    def __init__(self, folder: Path) -> None:
        [self._port] = free_ports(1)
        self._folder = folder
        self._stack = contextlib.ExitStack()
        self.bootstrap_servers = f"127.0.0.1:{self._port}"
        self.kills = 0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """For the length of the block."""
        self._start()
        try:
            yield
        finally:
            self._stop()

    def _start(self) -> None:
        _, self._process = self._stack.enter_context(
            trionet_broker_process(
                self._folder / "data",
                port=self._port,
                settings={"auto.create.topics.enable": "false"},
                log=self._folder / f"broker-{self.kills}.log",
            )
        )

    def _stop(self) -> None:
        self._stack.close()

    async def kill(self, rng: random.Random) -> str:
        """SIGKILL, and after up to a second it is there again, even if cancelled meanwhile."""
        with trio.CancelScope(shield=True):  # a second, and the time that it takes to start
            self._process.kill()
            await trio.to_thread.run_sync(self._stop)
            self.kills += 1
            await trio.sleep(rng.uniform(*_DOWN_SECONDS))
            await trio.to_thread.run_sync(self._start)
        return "broker"
