"""A folder whose calls fail when they are told to: before, after, or in the middle of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import trio

from trionet._util.files._log_file import Buffer
from trionet.broker.log import Directory, LogFile
from trionet.broker.log.files._directory import FolderLock

T = TypeVar("T")

BEFORE: Final = "before"
AFTER: Final = "after"
IN_THE_MIDDLE: Final = "in the middle"
SHORT: Final = "short"
MOMENTS: Final = (BEFORE, AFTER, IN_THE_MIDDLE, SHORT)
"""When a call fails: a write may also stop in the middle, with an error or without one."""


class Faults:
    """Which calls fail.

    Attributes:
        calls: how many there were since they began to be counted.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._failing: dict[int, str] = {}

    @contextmanager
    def failing(self, numbers: dict[int, str]) -> Iterator[None]:
        """Let the calls with these numbers fail, counted from now on."""
        self.calls, self._failing = 0, numbers
        try:
            yield
        finally:
            self._failing = {}

    def next(self) -> str | None:
        """The moment at which this call fails, if it does."""
        self.calls += 1
        return self._failing.get(self.calls - 1)

    def call(self, work: Callable[[], T]) -> T:
        """A call that is done whole or not at all."""
        moment = self.next()
        if moment not in {None, AFTER}:
            raise _error()
        result = work()
        if moment == AFTER:
            raise _error()
        return result


def _error() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


class FaultyFile(LogFile):
    """A file whose calls fail when they are told to."""

    __slots__ = ("_faults",)

    def __init__(self, descriptor: int, faults: Faults, *, in_memory: bool) -> None:
        super().__init__(descriptor, in_memory=in_memory)
        self._faults = faults

    def write_at(self, position: int, buffers: list[Buffer]) -> int:
        moment = self._faults.next()
        if moment == BEFORE:
            raise _error()
        if moment in {IN_THE_MIDDLE, SHORT}:
            data = b"".join(buffers)
            buffers = [data[: len(data) // 2]]
        written = super().write_at(position, buffers)
        if moment in {AFTER, IN_THE_MIDDLE}:
            raise _error()
        return written

    def truncate(self, size: int) -> None:
        self._faults.call(lambda: super(FaultyFile, self).truncate(size))

    def sync(self) -> None:
        self._faults.call(super().sync)


class FaultyDirectory:
    """Another folder, whose calls that change something fail when they are told to."""

    def __init__(self, inner: Directory, faults: Faults) -> None:
        self.inner = inner
        self.is_durable = inner.is_durable
        self.path = inner.path
        self._faults = faults

    def names(self) -> list[str]:
        return self.inner.names()

    def folders(self) -> list[str]:
        return self.inner.folders()

    def create(self, name: str) -> LogFile:
        return self._faults.call(lambda: self._faulty(self.inner.create(name)))

    def open(self, name: str) -> LogFile:
        return self._faults.call(lambda: self._faulty(self.inner.open(name)))

    def _faulty(self, file: LogFile) -> LogFile:
        descriptor = os.dup(file.fileno())
        return FaultyFile(descriptor, self._faults, in_memory=file.in_memory)

    def read(self, name: str, position: int = 0, count: int | None = None) -> bytes:
        return self.inner.read(name, position, count)

    def size(self, name: str) -> int:
        return self.inner.size(name)

    def modified_ms(self, name: str) -> int | None:
        return self.inner.modified_ms(name)

    def set_modified_ms(self, name: str, modified_ms: int) -> None:
        self._faults.call(lambda: self.inner.set_modified_ms(name, modified_ms))

    def write(self, name: str, position: int, data: Buffer) -> None:
        self._faults.call(lambda: self.inner.write(name, position, data))

    def replace(self, name: str, data: Buffer) -> None:
        self._faults.call(lambda: self.inner.replace(name, data))

    def replace_in_turn(self, name: str, data: Buffer, growth: int) -> None:
        self._faults.call(lambda: self.inner.replace_in_turn(name, data, growth))

    def truncate(self, name: str, size: int) -> None:
        self._faults.call(lambda: self.inner.truncate(name, size))

    def remove(self, name: str) -> None:
        self._faults.call(lambda: self.inner.remove(name))

    def rename(self, name: str, new_name: str) -> None:
        self._faults.call(lambda: self.inner.rename(name, new_name))

    def sync_file(self, name: str) -> None:
        self._faults.call(lambda: self.inner.sync_file(name))

    def sync(self) -> None:
        self._faults.call(self.inner.sync)

    def folder(self, name: str) -> Directory:
        return self.inner.folder(name)

    def move_to(self, name: str) -> None:
        self.inner.move_to(name)

    def remove_folder(self, name: str) -> None:
        self.inner.remove_folder(name)

    async def in_thread(
        self, work: Callable[[], T], limiter: trio.CapacityLimiter | None = None
    ) -> T:
        await trio.lowlevel.checkpoint()
        return work()

    def lock(self) -> FolderLock:
        return self.inner.lock()
