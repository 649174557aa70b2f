"""Sources of records: standard input, files with records, and files sent as one record each."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import attrs
import trio

from ..records._splitting import InputError
from ..terminal._pipes import read_some, widen

STDIN: Final = "-"
#: The maximum number of chunks to read ahead.
_CHUNKS_MAX: Final = 2


class EndOfFile:
    """A marker for the end of a file."""


END_OF_FILE: Final = EndOfFile()


@attrs.frozen
class WholeFile:
    """The content of a file that is sent as one record."""

    data: bytes


Chunk = bytes | EndOfFile | WholeFile


@attrs.frozen(kw_only=True)
class Sources:
    """The input files in order, where ``-`` is standard input.

    Attributes:
        lines: the files that contain records.
        whole: the files to send as one record each.
        size_max: the maximum size of a file in ``whole``, in bytes.
    """

    lines: Sequence[str] = ()
    whole: Sequence[str] = ()
    size_max: int

    async def read(self, send: trio.MemorySendChannel[Chunk]) -> None:
        """Read the files and send their content to a channel in chunks.

        Raises:
            InputError: a file cannot be read.
        """
        await trio.lowlevel.checkpoint()
        for path in self.lines:
            with _naming(path):
                async with _opened(path) as descriptor:
                    while data := await read_some(descriptor):
                        await send.send(data)
            await send.send(END_OF_FILE)
        for path in self.whole:
            with _naming(path):
                data = await self._whole(path)
            await send.send(WholeFile(data))

    async def _whole(self, path: str) -> bytes:
        """Read a file, up to slightly more than ``size_max`` bytes."""
        found = bytearray()
        async with _opened(path) as descriptor:
            while len(found) <= self.size_max and (data := await read_some(descriptor)):
                found += data
        return bytes(found)


def open_chunks() -> tuple[trio.MemorySendChannel[Chunk], trio.MemoryReceiveChannel[Chunk]]:
    """Open a channel for chunks, so that the next ones are read while one is processed."""
    return trio.open_memory_channel[Chunk](_CHUNKS_MAX)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        name = "standard input" if path == STDIN else path
        raise InputError(f"cannot read {name}: {error.strerror}") from error


@asynccontextmanager
async def _opened(path: str) -> AsyncIterator[int]:
    if path == STDIN:
        widen(0)
        await trio.lowlevel.checkpoint()
        yield 0
        return
    # In a thread, because opening a named pipe blocks until it has a writer.
    descriptor = await trio.to_thread.run_sync(_open, path, abandon_on_cancel=True)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
