"""A child process as the demo sees it: its reports, its end, and never a trace of it afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

_STDERR_BYTES_MAX = 4000
#: A killed process is gone within milliseconds, unless the machine is in trouble.
_KILL_SECONDS_MAX = 5.0


class ChildFailed(Exception):
    """A child ended before its last report; the text says what it wrote to stderr."""


def early_end(group: BaseExceptionGroup[ChildFailed], mark: str) -> str:
    """How the child that a group is about has ended, and why.

    Args:
        group: of one error.
        mark: with this begin the lines on the child's stderr that say why.
    """
    [failure] = group.exceptions
    how, *lines = str(failure).splitlines()
    why = [line.removeprefix(mark) for line in lines if line.startswith(mark)]
    return ": ".join([how, *why[-1:]])


class Child:
    """One running child.

    Attributes:
        name: of its module in ``demo``.
        latest: what it reported last.
    """

    def __init__(self, name: str, process: trio.Process) -> None:
        self.name = name
        self.latest: dict[str, Any] = {}
        self._process = process
        self._stderr = b""
        self._has_reported = trio.Event()
        self._has_finished = trio.Event()
        self._is_gone = False

    @property
    def is_finished(self) -> bool:
        """Whether it has given its last report, the one with its totals."""
        return "totals" in self.latest

    async def first_report(self) -> None:
        await self._has_reported.wait()

    async def finished(self) -> None:
        """Wait for the last report."""
        await self._has_finished.wait()

    async def stop(self) -> None:
        """Ask it to come to an end, and wait for its last report."""
        if not self.is_finished:
            assert self._process.stdin is not None
            try:
                await self._process.stdin.send_all(b"stop\n")
            except trio.BrokenResourceError:
                pass  # it has ended: by its last report, or the reader of its reports raises
        await self.finished()

    async def read_reports(self) -> None:
        """Follow its reports to the last one.

        Raises:
            ChildFailed: it ended without that.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read_stderr)
            rest = b""
            assert self._process.stdout is not None
            async for data in self._process.stdout:
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self.latest = json.loads(line)
                    self._has_reported.set()
                    if self.is_finished:
                        self._has_finished.set()
        self._is_gone = True
        if not self.is_finished:
            status = await self._process.wait()
            text = self._stderr.decode(errors="replace").strip()
            raise ChildFailed(f"the {self.name} ended early, with exit status {status}\n{text}")

    async def kill(self) -> None:
        """Kill it and what it has started, such as a JVM; reap it; close its pipes.

        Shielded, for as long as killed processes take to go.
        """
        with trio.move_on_after(_KILL_SECONDS_MAX, shield=True):
            if not self._is_gone:
                # The processes that it has started are in its group.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
            await self._read_stderr()  # to its end: no process is left to write to it
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with trio.CancelScope(shield=True):
                    await pipe.aclose()

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        async for data in self._process.stderr:
            self._stderr = (self._stderr + data)[-_STDERR_BYTES_MAX:]


@asynccontextmanager
async def open_child(name: str, *arguments: str, folder: str | None = None) -> AsyncIterator[Child]:
    """Run ``demo.<name>`` for as long as the block lasts; at its end it is killed with its own.

    Args:
        name: the module.
        arguments: for its command line.
        folder: for temporary files, which a killed process leaves there; the system's by default.

    Raises:
        ChildFailed: in a group, cancelling the block: it ended before its last report.
    """
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", f"demo.{name}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=None if folder is None else {**os.environ, "TMPDIR": folder},
        # Of its own: Ctrl-C in the terminal is the demo's, which then ends the child.
        process_group=0,
    )
    child = Child(name, process)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child.read_reports, name=f"reports of the {name}")
            yield child
            nursery.cancel_scope.cancel(reason="the demo is over")
    finally:
        await child.kill()
