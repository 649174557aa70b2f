"""Where records come from: standard input, files of lines, files that are one record each."""

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
#: So many pieces wait to be made records of.
_PIECES_MAX: Final = 2


class EndOfFile:
    """What follows belongs to another file."""


END_OF_FILE: Final = EndOfFile()


@attrs.frozen
class WholeFile:
    """All of a file."""

    data: bytes


Piece = bytes | EndOfFile | WholeFile


@attrs.frozen(kw_only=True)
class Sources:
    """Files in their order; ``-`` is standard input.

    Attributes:
        lines: of records.
        whole: each is a record.
        size_max: of a whole one, in bytes.
    """

    lines: Sequence[str] = ()
    whole: Sequence[str] = ()
    size_max: int

    async def read(self, send: trio.MemorySendChannel[Piece]) -> None:
        """Send all pieces.

        Raises:
            InputError: a file cannot be read.
        """
        await trio.lowlevel.checkpoint()
        for path in self.lines:
            with _telling_of(path):
                async with _opened(path) as descriptor:
                    while data := await read_some(descriptor):
                        await send.send(data)
            await send.send(END_OF_FILE)
        for path in self.whole:
            with _telling_of(path):
                data = await self._whole(path)
            await send.send(WholeFile(data))

    async def _whole(self, path: str) -> bytes:
        """A file, and a byte more than may be in it if there is more."""
        found = bytearray()
        async with _opened(path) as descriptor:
            while len(found) <= self.size_max and (data := await read_some(descriptor)):
                found += data
        return bytes(found)


def open_pieces() -> tuple[trio.MemorySendChannel[Piece], trio.MemoryReceiveChannel[Piece]]:
    """A channel for pieces, so that the next is read while one is worked on."""
    return trio.open_memory_channel[Piece](_PIECES_MAX)


@contextmanager
def _telling_of(path: str) -> Iterator[None]:
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
    # In a thread: opening a named pipe waits for who writes to it.
    descriptor = await trio.to_thread.run_sync(_open, path, abandon_on_cancel=True)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
