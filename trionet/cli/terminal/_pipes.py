"""Standard input and output that never hold the loop: a thread waits for whoever is slow."""

from __future__ import annotations

import os
import select
import sys
from typing import Final

import trio

from trionet.errors import TrionetError

#: A pipe on Linux holds 64 KB unless it is told otherwise; with more, both sides are woken less
#: often.
PIPE_BYTES: Final = 1024 * 1024
READ_BYTES: Final = 1024 * 1024


class OutputError(TrionetError):
    """Standard output cannot be written; whoever reads it may be there still."""


def widen(descriptor: int) -> None:
    """Let a pipe hold more, where the system lets it."""
    if sys.platform == "linux":
        import fcntl

        try:
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass  # no pipe, or the user's pipes are as large as they may be together


async def read_some(descriptor: int, size: int = READ_BYTES) -> bytes:  # noqa: ASYNC910
    """What can be read next; nothing at the end.

    Raises:
        OSError: it cannot be read.

    Cancellation: the thread stays behind until something comes, which is lost then.
    """
    return await trio.to_thread.run_sync(_read, descriptor, size, abandon_on_cancel=True)


async def write_all(descriptor: int, data: bytes) -> None:  # noqa: ASYNC910
    """Write everything.

    Raises:
        OutputError: it cannot be written.
        BrokenPipeError: the reader has gone.

    Cancellation: nobody knows how much was written.
    """
    await trio.to_thread.run_sync(_write, descriptor, data, abandon_on_cancel=True)


def _read(descriptor: int, size: int) -> bytes:
    trio.from_thread.check_cancelled()  # what is read for nobody is lost to whoever reads next
    while True:
        try:
            return os.read(descriptor, size)
        except BlockingIOError:  # whoever started us has made it so
            select.select([descriptor], [], [])


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"cannot write the output: {error.strerror}") from error
