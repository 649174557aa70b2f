"""What is killed: a job in Spark with its processes, and a broker with its data on disk."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import trio

from support.kafka_node import KafkaFolder
from support.ports import free_ports
from support.process_list import descendants_of
from support.processes import SAME_TRIONET
from support.spark_cluster import SparkCluster
from support.spark_python import spark_python
from support.trionet_process import trionet_broker_process

#: How often a job may end by itself in a run; it would be started for ever.
ENDS_MAX: Final = 10
#: Spark waits ten seconds for a Python process; on a machine that is busy enough it gives up.
_NO_TIME: Final = "Python worker failed to connect back"
_DAEMON: Final = "pyspark.daemon"
_TASK: Final = "worker"
_COMMITTER: Final = "python_streaming_sink_runner"
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
        cluster: where its executors run; None if its driver does their work.

    Attributes:
        is_through: it has ended as it should.
        starts: how often it was started.
        ended: why it has ended after one of its workers was killed, or on too busy a machine.
        odd_ends: why it has ended for no such reason.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, cluster: SparkCluster | None = None
    ) -> None:
        self.is_through = False
        self.starts = 0
        self.ended: list[str] = []
        self.odd_ends: list[str] = []
        self._command = command
        self._cluster = cluster
        self._down_seconds = 0.0
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
            await trio.sleep(self._down_seconds)
            self._down_seconds = 0.0

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
                    **spark_python(),
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

    def kill(self, down_seconds: float = 0.0) -> str:
        """SIGKILL for the driver: its Python and its JVM.

        Args:
            down_seconds: how much later it is started again.
        """
        self._down_seconds = down_seconds
        if self._process is None:
            return "driver, which had just ended"
        self._is_killed = True
        os.killpg(self._process.pid, signal.SIGKILL)
        return f"driver for {down_seconds:.0f} s" if down_seconds else "driver"

    async def kill_executor(self, rng: random.Random) -> str:
        """SIGKILL for one of its executors; the Python processes below it notice and end."""
        assert self._cluster is not None
        found: list[int] = []
        while not found:
            found = await trio.to_thread.run_sync(self._cluster.executors)
            if not found:
                await trio.sleep(_LOOK_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.kill(rng.choice(found), signal.SIGKILL)
        return "executor"

    async def kill_worker(self, rng: random.Random, *, commits: bool = False) -> str:
        """SIGKILL for one of its Python processes: of a task, or one that plans or commits.

        Args:
            rng: chooses.
            commits: whether it is the one that commits micro-batches, if there is one.
        """
        found = await self._workers()
        while not found:
            await trio.sleep(_LOOK_SECONDS)
            found = await self._workers()
        kinds = sorted(set(found.values()))
        is_task = _TASK in kinds and rng.random() < _TASK_SHARE
        kind = _TASK if is_task else rng.choice(kinds)
        if commits and _COMMITTER in kinds:
            kind = _COMMITTER
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
        if self._cluster is not None:
            found += await trio.to_thread.run_sync(self._cluster.processes)
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


class Durable(ABC):
    """A broker that is killed, and started again with the same port and folder.

    Attributes:
        bootstrap_servers: where clients begin.
        kills: how often it was killed.
    """

    bootstrap_servers: str
    kills = 0

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()

    @abstractmethod
    def _process(self) -> AbstractContextManager[subprocess.Popen[bytes]]:
        """The process of a broker that is ready, for the length of a block."""

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """For the length of the block."""
        self._start()
        try:
            yield
        finally:
            self._stop()

    def _start(self) -> None:
        self._running = self._stack.enter_context(self._process())

    def _stop(self) -> None:
        self._stack.close()

    async def kill(self, rng: random.Random) -> str:
        """SIGKILL, and after up to a second it is there again, even if cancelled meanwhile."""
        with trio.CancelScope(shield=True):  # a second, and the time that it takes to start
            self._running.kill()
            await trio.to_thread.run_sync(self._stop)
            self.kills += 1
            await trio.sleep(rng.uniform(*_DOWN_SECONDS))
            await trio.to_thread.run_sync(self._start)
        return "broker"


#: Transactions whose time is over are looked for more often than every ten seconds.
_SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


class DurableBroker(Durable):
    """Ours.

    Args:
        folder: where its data is, and its log.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        [self._port] = free_ports(1)
        self._folder = folder
        self.bootstrap_servers = f"127.0.0.1:{self._port}"

    @contextlib.contextmanager
    def _process(self) -> Iterator[subprocess.Popen[bytes]]:
        with trionet_broker_process(
            self._folder / "data",
            port=self._port,
            settings=_SETTINGS,
            log=self._folder / f"broker-{self.kills}.log",
        ) as (_, process):
            yield process


class DurableKafka(Durable):
    """Apache Kafka.

    Args:
        folder: where its data is.

    Raises:
        Unavailable: there is no Kafka.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        path = folder / "kafka"
        path.mkdir()
        self._node = KafkaFolder(path, _SETTINGS, heap="512m")
        self.bootstrap_servers = self._node.bootstrap_servers

    def _process(self) -> AbstractContextManager[subprocess.Popen[bytes]]:
        return self._node.broker()
