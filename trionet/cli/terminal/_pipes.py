"""Reads and writes standard streams in a thread, so that the event loop never blocks."""

from __future__ import annotations

import os
import select
import sys
from typing import Final

import trio

from ._streams import output_error

#: The buffer size of pipes. Linux's default is 64 KB. A larger buffer causes fewer wake-ups.
PIPE_BYTES: Final = 1024 * 1024
READ_BYTES: Final = 1024 * 1024


def widen(descriptor: int) -> None:
    """Enlarge the buffer of a pipe if the system allows it."""
    if sys.platform == "linux":
        import fcntl

        try:
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass  # not a pipe, or the user's limit for all pipes is reached


async def read_some(descriptor: int, size: int = READ_BYTES) -> bytes:  # noqa: ASYNC910
    """Read the available data, waiting for at least one byte. Return empty bytes at the end.

    Raises:
        OSError: reading failed.

    Cancellation: the thread keeps waiting for data, and any data that it reads is lost.
    """
    return await trio.to_thread.run_sync(_read, descriptor, size, abandon_on_cancel=True)


async def write_all(descriptor: int, data: bytes) -> None:  # noqa: ASYNC910
    """Write all data.

    Raises:
        OutputError: writing failed.
        BrokenPipeError: the reader of the pipe has exited.

    Cancellation: it is unknown how much of the data was written.
    """
    await trio.to_thread.run_sync(_write, descriptor, data, abandon_on_cancel=True)


def _read(descriptor: int, size: int) -> bytes:
    trio.from_thread.check_cancelled()  # what is read after a cancellation is lost
    while True:
        try:
            return os.read(descriptor, size)
        except BlockingIOError:  # the parent process made it non-blocking
            select.select([descriptor], [], [])


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
        except OSError as error:
            raise output_error(error) from error
