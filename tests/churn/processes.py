"""Processes with members in them, started, told what to do, and killed."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import trio

from churn.libraries import Settings

_TESTS = Path(__file__).parents[1]


class MemberProcess:
    """One process and who is in it; made by :meth:`Crowd.start`.

    Attributes:
        library: of all its members.
        members: those that have been asked to join, and not to leave.
    """

    def __init__(self, library: str, process: trio.Process) -> None:
        self.library = library
        self.members: set[str] = set()
        self._process = process

    async def tell(self, command: str, name: str) -> None:
        assert self._process.stdin is not None
        await self._process.stdin.send_all(f"{command} {name}\n".encode())

    def kill(self) -> None:
        """SIGKILL: nobody in it has time to say anything."""
        self._process.kill()
        self.members.clear()

    async def end(self) -> None:
        """All leave, and it ends."""
        assert self._process.stdin is not None
        await self._process.stdin.aclose()
        await self._process.wait()


class Crowd:
    """All processes.

    Args:
        settings: of the members.
        folder: where what they process is noted.
        failed: called with what a member says that has failed.
        nursery: listens to them.
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        failed: Callable[[str], None],
        nursery: trio.Nursery,
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._failed = failed
        self._nursery = nursery
        self._numbers = itertools.count()
        self._names = itertools.count()
        self.processes: list[MemberProcess] = []

    @property
    def members(self) -> set[str]:
        """Who should be in the group."""
        return {name for process in self.processes for name in process.members}

    async def start(self, library: str) -> None:
        """A process whose members can be told to join when this returns."""
        settings = self._settings
        notes = self._folder / f"{next(self._numbers)}.notes"
        command = [sys.executable, "-m", "churn.members", library, settings.bootstrap]
        command += [settings.group, settings.topic, str(settings.session_ms), str(notes)]
        path = os.pathsep.join(filter(None, [str(_TESTS), os.environ.get("PYTHONPATH", "")]))
        process = await trio.lowlevel.open_process(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        is_ready = trio.Event()
        self._nursery.start_soon(self._listen, process, is_ready)
        await is_ready.wait()
        self.processes.append(MemberProcess(library, process))

    async def _listen(self, process: trio.Process, is_ready: trio.Event) -> None:
        assert process.stdout is not None
        rest = b""
        try:
            async for data in process.stdout:
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    if line == b"ready":
                        is_ready.set()
                    elif line.startswith(b"failed"):
                        self._failed(line.decode())
        finally:
            process.kill()
            is_ready.set()
            with trio.CancelScope(shield=True):  # it has been killed, so that this is short
                await process.wait()

    async def join(self, process: MemberProcess) -> None:
        name = f"{process.library}-{next(self._names)}"
        process.members.add(name)
        await process.tell("join", name)

    async def leave(self, process: MemberProcess, name: str) -> None:
        process.members.remove(name)
        await process.tell("leave", name)

    def kill(self, process: MemberProcess) -> None:
        self.processes.remove(process)
        process.kill()

    async def end(self) -> None:
        """All leave; returns when all processes have ended."""
        async with trio.open_nursery() as nursery:
            for process in self.processes:
                nursery.start_soon(process.end)
