"""Runs cleanings outside of the loop: in a thread, or in a process of their own.

The problem: a cleaning decodes every record of a log, which takes seconds of processor time per
gigabyte. In a thread it would compete with the loop for the interpreter: whenever the loop has
waited for a socket, it would get the interpreter back only after 5 ms, and every request would be
that much slower.

The choice: a child process with its own interpreter, which starts when there is much to clean and
ends with the round. It knows no names and no settings: it gets an open descriptor with a
call over a Unix socket (SCM_RIGHTS), so that logs in memory can be cleaned too, and what is left
of a cleaning that is killed is one unnamed or ``.cleaned`` file. Small cleanings run in a thread,
since starting an interpreter takes longer than they do.

Rejected: ``multiprocessing``, because a spawned child imports the user's main module again, and
waiting for it needs a thread. Also rejected: ``fork``, because other threads may hold locks.
Reconsider when interpreters with locks of their own (PEP 684) can load the codecs.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
from array import array
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Protocol

import trio

from ...._util.files._log_file import LogFile, log_file
from ....errors import TrionetError
from ..files._directory import Directory
from ._cleaning import Cleaning, CleaningInput
from ._throttle import Throttle, sleep_in_thread

#: Whether descriptors can be passed to a child.
CAN_START_WORKERS = hasattr(socket, "AF_UNIX") and hasattr(socket, "send_fds")

# A cleaning yields to everything else that wants the processor, the broker above all.
NICENESS = 10

# How long a child may take to end before it is killed.
END_SECONDS = 1.0

_BEGIN: Final = "begin"

# The argument whose descriptor comes with the call.
_FILE: Final = "<file>"

_LENGTH = struct.Struct(">I")

# Where the C library is glibc and the kernel allows it, the table of a large map is in huge pages:
# most of the time of the first pass is spent waiting for memory that no cache holds, and for the
# addresses of its pages.
_HUGE_PAGES: Final = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}

# The child gets the path of this process, since the package may lie anywhere, and no main module.
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[2:];"
    "from trionet.broker.log.compaction._worker import serve; serve(int(sys.argv[1]))"
)


class WorkerError(TrionetError):
    """Raised when the process of a cleaning cannot be started, or has ended unexpectedly."""


class Worker(Protocol):
    """A place where one :class:`.Cleaning` after the other runs."""

    async def begin(self, what: CleaningInput, bytes_per_second: float | None) -> None:
        """Begin another cleaning.

        Args:
            what: what to clean.
            bytes_per_second: the maximum rate of reads and writes; None without a limit.
        """

    async def call(self, method: str, *args: Any) -> Any:
        """Call a method of the cleaning, and return its result; or return an attribute.

        Args:
            method: the name of the method or attribute.
            args: the arguments, of which at most one is a :class:`.LogFile`.

        Raises:
            Exception: what the method raises.
            WorkerError: the process has ended.

        Cancellation: the method runs to its end, in part, or not at all. Begin another cleaning.
        """


class _Server:
    """The cleaning of a worker, wherever that runs.

    Args:
        throttle_with: makes the throttle for a rate.
    """

    def __init__(self, throttle_with: Callable[[float], Throttle]) -> None:
        self._throttle_with = throttle_with
        self._cleaning: Cleaning | None = None

    def call(self, method: str, args: Sequence[Any]) -> Any:
        if method == _BEGIN:
            what, bytes_per_second = args
            if bytes_per_second is None:
                self._cleaning = Cleaning(what)
            else:
                self._cleaning = Cleaning(what, self._throttle_with(bytes_per_second).note)
            return None
        found = getattr(self._cleaning, method)
        return found(*args) if callable(found) else found


class ThreadWorker:
    """Runs cleanings in threads, or in the loop if time is virtual; see :class:`Worker`."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._server = _Server(partial(Throttle, sleep=sleep_in_thread))

    async def begin(self, what: CleaningInput, bytes_per_second: float | None) -> None:
        await self.call(_BEGIN, what, bytes_per_second)

    async def call(self, method: str, *args: Any) -> Any:
        return await self._directory.in_thread(partial(self._server.call, method, args))


class ProcessWorker:
    """Runs cleanings in a child process; see :class:`Worker` and :func:`open_process_worker`."""

    def __init__(self, connection: trio.socket.SocketType) -> None:
        self._connection = connection

    async def begin(self, what: CleaningInput, bytes_per_second: float | None) -> None:
        await self.call(_BEGIN, what, bytes_per_second)

    async def call(self, method: str, *args: Any) -> Any:
        files = array("i", [each.fileno() for each in args if isinstance(each, LogFile)])
        rest = [_FILE if isinstance(each, LogFile) else each for each in args]
        body = pickle.dumps((method, rest))
        head = _LENGTH.pack(len(body))
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)] if files else []
        try:
            sent = await self._connection.sendmsg([head], ancillary)
            await self._send_all(head[sent:] + body)
            (length,) = _LENGTH.unpack(await self._receive_all(_LENGTH.size))
            # What our own child has written, to a socket of which it has the other end.
            is_ok, result = pickle.loads(await self._receive_all(length))  # noqa: S301
        except (OSError, EOFError) as error:
            raise WorkerError(
                "the process that cleans logs has ended unexpectedly; it may have been killed for"
                " its memory (see log.cleaner.dedupe.buffer.size)"
            ) from error
        if not is_ok:
            raise result
        return result

    async def _send_all(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[await self._connection.send(rest) :]

    async def _receive_all(self, count: int) -> bytes:
        parts = []
        while count:
            part = await self._connection.recv(min(count, 1048576))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


@asynccontextmanager
async def open_process_worker() -> AsyncIterator[ProcessWorker]:
    """Start a child process for cleanings, and end it with the block.

    Raises:
        WorkerError: the process cannot be started.

    Cancellation: the process is killed.
    """
    ours, theirs = socket.socketpair()
    with theirs, trio.socket.from_stdlib_socket(ours) as connection:
        command = [sys.executable, "-I", "-c", _PROGRAM, str(theirs.fileno()), *sys.path]
        try:
            process = await trio.lowlevel.open_process(
                command,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={**os.environ, **_HUGE_PAGES},
                start_new_session=True,  # Ctrl-C in a terminal is for the broker, which ends it
            )
        except OSError as error:
            raise WorkerError(f"cannot start a process to clean logs: {error}") from error
        theirs.close()
        try:
            yield ProcessWorker(connection)
        finally:
            connection.close()  # the child ends when it reads the end of the stream
            with trio.CancelScope(shield=True):
                with trio.move_on_after(END_SECONDS):
                    await process.wait()
                if process.returncode is None:
                    process.kill()
                    await process.wait()


def serve(descriptor: int) -> None:
    """Serve the requests of a :class:`ProcessWorker` until its connection ends. Blocks.

    Args:
        descriptor: the descriptor of a Unix stream socket, which is closed at the end.
    """
    os.nice(NICENESS)
    # A service manager may send it to all processes of the service; the broker ends this one.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server = _Server(Throttle)
    with socket.socket(fileno=descriptor) as connection, connection.makefile("rb") as stream:
        while True:
            try:
                head, descriptors, _, _ = socket.recv_fds(connection, _LENGTH.size, 1)
                file = log_file(descriptors[0]) if descriptors else None
                head += stream.read(_LENGTH.size - len(head)) if head else b""
                length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else 0
                body = stream.read(length)
            except OSError:
                return  # the parent was killed, and has left a response unread
            if not body or len(body) < length:
                return
            method, args = pickle.loads(body)  # noqa: S301 - from our own parent
            try:
                result = server.call(method, [file if each == _FILE else each for each in args])
                response = pickle.dumps((True, result))
            except Exception as error:  # boundary: the parent decides what an error means
                response = pickle.dumps((False, error))
            del file, args
            try:
                connection.sendall(_LENGTH.pack(len(response)) + response)
            except OSError:
                return
