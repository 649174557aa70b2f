"""A directory in memory whose log files have real file descriptors.

Log files are anonymous memory files (``memfd_create``, or unlinked temporary files on systems that
lack it), so that gathering writes and ``sendfile`` take the same path as on a disk. A memory file
is created by the first write, so that a new topic of 10,000 partitions needs no file descriptors.
Files that are never sent (indexes, snapshots, checkpoints) are bytearrays.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from typing import TypeVar

import trio

from ...._util.files._log_file import Buffer, LogFile, check_descriptor_limit, log_file
from ._directory import FolderLock, in_thread

T = TypeVar("T")

_NO_DESCRIPTOR = -1


class MemoryDirectory:
    """A directory in memory, initially empty.

    The methods are documented in :class:`~trionet.broker.log.Directory`.

    Args:
        place: the parent's subdirectories, and the name of this directory; None without a parent.
        is_virtual: whether to run blocking work in the loop instead of in threads, so that tests
            with virtual time are deterministic.
    """

    is_durable = False
    path = None

    def __init__(
        self,
        place: tuple[dict[str, MemoryDirectory], str] | None = None,
        *,
        is_virtual: bool = False,
    ) -> None:
        self._is_virtual = is_virtual
        self._files: dict[str, LogFile | bytearray] = {}
        self._folders: dict[str, MemoryDirectory] = {}
        self._place = place

    def names(self) -> list[str]:
        return sorted(self._files)

    def folders(self) -> list[str]:
        return sorted(self._folders)

    def create(self, name: str) -> LogFile:
        file = self._files[name] = _memory_file(name)
        return file

    def open(self, name: str) -> LogFile:
        file = self._existing(name)
        if isinstance(file, bytearray):
            content, file = file, _memory_file(name)
            file.write_at(0, [content])
            self._files[name] = file
        return file

    def read(self, name: str, position: int = 0, count: int | None = None) -> bytes:
        file = self._existing(name)
        if isinstance(file, bytearray):
            end = len(file) if count is None else position + count
            return bytes(file[position:end])
        return file.read_at(position, file.size() - position if count is None else count)

    def size(self, name: str) -> int:
        file = self._existing(name)
        return len(file) if isinstance(file, bytearray) else file.size()

    def modified_ms(self, name: str) -> int | None:
        self._existing(name)
        return None

    def set_modified_ms(self, name: str, modified_ms: int) -> None:
        pass

    def write(self, name: str, position: int, data: Buffer) -> None:
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = bytearray()
        if isinstance(file, bytearray):
            file.extend(bytes(max(0, position - len(file))))
            file[position : position + len(data)] = data
        else:
            file.write_at(position, [data])

    def replace(self, name: str, data: Buffer) -> None:
        self._files[name] = bytearray(data)

    def replace_in_turn(
        self,
        name: str,
        data: Buffer,
        growth: int,  # noqa: ARG002 - no disk can be full
    ) -> None:
        self.replace(name, data)

    def truncate(self, name: str, size: int) -> None:
        file = self._existing(name)
        if isinstance(file, bytearray):
            del file[size:]
        else:
            file.truncate(size)

    def remove(self, name: str) -> None:
        self._files.pop(name, None)

    def rename(self, name: str, new_name: str) -> None:
        file = self._existing(name)
        self._files[new_name] = file
        del self._files[name]

    def sync_file(self, name: str) -> None:
        self._existing(name)

    def sync(self) -> None:
        pass

    def folder(self, name: str) -> MemoryDirectory:
        if name not in self._folders:
            self._folders[name] = MemoryDirectory(
                (self._folders, name), is_virtual=self._is_virtual
            )
        return self._folders[name]

    def move_to(self, name: str) -> None:
        if self._place is None:
            raise ValueError("a directory without a parent cannot be renamed")
        siblings, old = self._place
        siblings[name] = siblings.pop(old)
        self._place = (siblings, name)

    def remove_folder(self, name: str) -> None:
        del self._folders[name]

    async def in_thread(
        self, work: Callable[[], T], limiter: trio.CapacityLimiter | None = None
    ) -> T:
        if self._is_virtual:
            await trio.lowlevel.checkpoint()
            return work()
        return await in_thread(work, limiter)

    def lock(self) -> FolderLock:
        return FolderLock()

    def _existing(self, name: str) -> LogFile | bytearray:
        try:
            return self._files[name]
        except KeyError:
            raise FileNotFoundError(name) from None

    def __repr__(self) -> str:
        return f"MemoryDirectory({len(self._files)} files, {len(self._folders)} folders)"


if sys.platform == "linux":

    class MemoryLogFile(LogFile):
        """A log file in memory that opens its file descriptor on the first write.

        Args:
            name: the name that the operating system displays for the file; need not be unique.
        """

        __slots__ = ("_name",)

        def __init__(self, name: str) -> None:
            super().__init__(_NO_DESCRIPTOR, in_memory=True)
            self._name = name

        @property
        def _is_there(self) -> bool:
            return self._descriptor != _NO_DESCRIPTOR

        def fileno(self) -> int:
            if self._descriptor == _NO_DESCRIPTOR:
                self._descriptor = check_descriptor_limit(
                    os.memfd_create(self._name, os.MFD_CLOEXEC)
                )
            return self._descriptor

        def size(self) -> int:
            return super().size() if self._is_there else 0

        def read_at(self, position: int, count: int) -> bytes:
            if self._descriptor == _NO_DESCRIPTOR:
                return b""
            return LogFile.read_at(self, position, count)

        def write_at(self, position: int, buffers: list[Buffer]) -> int:
            descriptor = self._descriptor
            if descriptor == _NO_DESCRIPTOR:
                descriptor = self.fileno()
            return os.pwritev(descriptor, buffers, position)

        def truncate(self, size: int) -> None:
            if size or self._is_there:
                os.ftruncate(self.fileno(), size)

        def sync(self) -> None:
            pass


def _memory_file(name: str) -> LogFile:
    if sys.platform == "linux" and hasattr(os, "memfd_create"):
        return MemoryLogFile(name)
    return unlinked_file()


def unlinked_file() -> LogFile:
    """Create an unlinked temporary file, for systems without ``memfd_create``."""
    with tempfile.TemporaryFile(prefix="trionet-", buffering=0) as file:
        return log_file(os.dup(file.fileno()), in_memory=True)
