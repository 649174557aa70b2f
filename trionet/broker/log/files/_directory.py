"""The interface through which the log accesses the file system, and its on-disk implementation.

The interface has two implementations: :class:`FolderDirectory` on a disk, and
:class:`~trionet.broker.log.MemoryDirectory` in memory. Both provide real file descriptors, so that
``pwritev`` and ``sendfile`` work with either.

``.log`` files, which are appended to and sent, are kept open. Files that are read or written whole
or in large parts (indexes, snapshots, checkpoints) are opened, used and closed in one call, so that
a partition needs one file descriptor rather than four.

Data is durable only once it has been synced: the contents of a file by :meth:`LogFile.sync` or
:meth:`Directory.sync_file`, the name of a file by :meth:`Directory.sync`. Only
:meth:`Directory.replace` syncs both. A power failure may undo any of the changes of names that were
not synced, whatever their order was.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol, TypeVar

import trio

from ...._util._descriptors import (
    descriptor_limit,
    lock_descriptor,
    sync_descriptor,
    sync_folder,
    unlock_descriptor,
)
from ....errors import ConfigError

T = TypeVar("T")

Buffer = bytes | bytearray | memoryview

# Descriptors that log files leave free for connections, the database, and loading modules.
RESERVED_DESCRIPTORS = 64

# The kernel accepts at most this many buffers in one gathering write (IOV_MAX).
GATHER_BUFFERS_MAX = 1024

_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class LogFile:
    """An open file, closed when the last reference to it is dropped.

    While it is referenced, for example by a range that is being sent, it stays readable even after
    the file has been removed.

    Args:
        descriptor: a file descriptor opened for reading and writing, which this object now owns.
        in_memory: whether reads never wait for a disk.
    """

    __slots__ = ("__weakref__", "_descriptor", "in_memory")

    def __init__(self, descriptor: int, *, in_memory: bool = False) -> None:
        self._descriptor = descriptor
        self.in_memory: bool = in_memory

    def fileno(self) -> int:
        """Return the file descriptor, which is valid while this object is referenced."""
        return self._descriptor

    def size(self) -> int:
        """Return the size of the file in bytes, as reported by the kernel."""
        return os.fstat(self._descriptor).st_size

    def read_at(self, position: int, count: int) -> bytes:
        """Read ``count`` bytes starting at ``position``; fewer only at the end of the file.

        Thread-safe. May wait for the disk.
        """
        chunk = os.pread(self._descriptor, count, position)
        if len(chunk) == count or not chunk:
            return chunk
        parts = [chunk]
        got = len(chunk)
        # The kernel limits one read to 2 GiB and may be interrupted; only b"" is the end.
        while got < count and (chunk := os.pread(self._descriptor, count - got, position + got)):
            parts.append(chunk)
            got += len(chunk)
        return b"".join(parts)

    def write_at(self, position: int, buffers: list[Buffer]) -> int:
        """Write at most :data:`GATHER_BUFFERS_MAX` buffers in one call.

        Returns:
            The number of bytes written, which may be less than requested if the disk is full.

        Raises:
            OSError: an unknown part of the data was written, possibly nothing.
        """
        return os.pwritev(self._descriptor, buffers, position)

    def truncate(self, size: int) -> None:
        """Truncate the file to ``size`` bytes."""
        os.ftruncate(self._descriptor, size)

    def sync(self) -> None:
        """Wait until every byte written so far is on disk. Blocks; call it in a thread.

        Raises:
            OSError: the state of the file on disk is unknown. A retry proves nothing, because
                the kernel may have dropped the pages that it could not write.
        """
        sync_descriptor(self._descriptor)

    def __del__(self, _close: Callable[[int], None] = os.close) -> None:
        descriptor = getattr(self, "_descriptor", -1)  # missing if __init__ failed
        if descriptor >= 0:
            _close(descriptor)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(fd={self._descriptor})"


class SeekingLogFile(LogFile):
    """A log file for Windows, which lacks positioned reads and writes: it seeks before each one.

    A lock is needed because all threads share the file descriptor's position.
    """

    __slots__ = ("_position_lock",)

    def __init__(self, descriptor: int, *, in_memory: bool = False) -> None:
        super().__init__(descriptor, in_memory=in_memory)
        self._position_lock = threading.Lock()

    def read_at(self, position: int, count: int) -> bytes:
        parts = []
        with self._position_lock:
            os.lseek(self._descriptor, position, os.SEEK_SET)
            while count and (chunk := os.read(self._descriptor, count)):
                parts.append(chunk)
                count -= len(chunk)
        return b"".join(parts)

    def write_at(self, position: int, buffers: list[Buffer]) -> int:
        with self._position_lock:
            os.lseek(self._descriptor, position, os.SEEK_SET)
            written = 0
            for buffer in buffers:
                count = os.write(self._descriptor, buffer)
                written += count
                if count < len(buffer):
                    break
            return written


def check_descriptor_limit(descriptor: int) -> int:
    """Return ``descriptor``, newly opened for a log file, unless its number is reserved.

    The process's last file descriptors are reserved: with none left, a broker could not even load
    the code that deletes a topic.

    Raises:
        OSError: EMFILE if too few file descriptors are left; ``descriptor`` was closed.
    """
    limit = descriptor_limit()
    left = min(RESERVED_DESCRIPTORS, limit // 16)
    if descriptor >= limit - left:
        os.close(descriptor)
        raise OSError(
            errno.EMFILE,
            f"log files use all but {left} of the {limit} file descriptors that this process"
            " may open; raise the limit (ulimit -n) or use fewer partitions",
        )
    return descriptor


def log_file(descriptor: int, *, in_memory: bool = False) -> LogFile:
    """Wrap a file descriptor in the type of log file that this platform supports."""
    kind = LogFile if hasattr(os, "pwritev") and hasattr(os, "pread") else SeekingLogFile
    return kind(descriptor, in_memory=in_memory)


class FolderLock:
    """A lock on a directory, held by this process."""

    def __init__(self, file: LogFile | None = None) -> None:
        self._file = file

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self._file is not None:
            unlock_descriptor(self._file.fileno())
            self._file = None


class Directory(Protocol):
    """A directory of files and subdirectories. Names are plain file names, without a path.

    All methods are thread-safe as long as no two concurrent calls write to the same name. All
    methods raise the system call's ``OSError``, such as ``FileNotFoundError`` for a missing name.
    """

    @property
    def is_durable(self) -> bool:
        """Whether the directory is on disk. In memory, syncing does nothing."""

    @property
    def path(self) -> str | None:
        """The path of the directory; None in memory."""

    def names(self) -> list[str]:
        """Return the names of the files (not the subdirectories) in this directory, sorted."""

    def folders(self) -> list[str]:
        """Return the names of the subdirectories, sorted."""

    def create(self, name: str) -> LogFile:
        """Create a file, or truncate an existing one, and open it for reading and writing."""

    def open(self, name: str) -> LogFile:
        """Open an existing file for reading and writing."""

    def read(self, name: str, position: int = 0, count: int | None = None) -> bytes:
        """Read part of a file, by default everything from ``position`` to the end."""

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""

    def modified_ms(self, name: str) -> int | None:
        """Return the modification time of a file, in ms since the epoch; None if unknown."""

    def set_modified_ms(self, name: str, modified_ms: int) -> None:
        """Set the modification time of a file, in ms since the epoch. In memory, none is kept."""

    def write(self, name: str, position: int, data: Buffer) -> None:
        """Write to a file at ``position``, creating the file if needed.

        Raises:
            OSError: an unknown part of ``data`` was written.
        """

    def replace(self, name: str, data: Buffer) -> None:
        """Replace the contents of a file atomically, even across a power failure.

        The name and the contents are durable when this returns.
        """

    def reserve(self, name: str, size: int) -> None:
        """Reserve disk space for the next :meth:`replace`, which may write up to ``size`` bytes.

        Raises:
            OSError: too little disk space is left.
        """

    def truncate(self, name: str, size: int) -> None:
        """Truncate a file to ``size`` bytes."""

    def remove(self, name: str) -> None:
        """Remove a file, which stays readable while open. Does nothing if the file is missing."""

    def rename(self, name: str, new_name: str) -> None:
        """Rename a file atomically, replacing a file that has the new name. Syncs nothing."""

    def sync_file(self, name: str) -> None:
        """Wait until the contents of a file are on disk."""

    def sync(self) -> None:
        """Wait until the names in this directory are on disk."""

    def folder(self, name: str) -> Directory:
        """Open a subdirectory, creating it if needed."""

    def move_to(self, name: str) -> None:
        """Rename this directory within its parent. This object then refers to the new name."""

    def remove_folder(self, name: str) -> None:
        """Remove a subdirectory and everything in it."""

    async def in_thread(
        self, work: Callable[[], T], limiter: trio.CapacityLimiter | None = None
    ) -> T:
        """Call ``work()``, which may block, without blocking the loop. Always a checkpoint.

        Args:
            work: a function that uses this directory and must not access the loop's state.
            limiter: limits the number of concurrent calls.

        Cancellation: raises ``Cancelled`` only if ``work`` was not called; once called, it runs to
        completion, and its result is returned.
        """

    def lock(self) -> FolderLock:
        """Lock the directory for this process until the lock is released or the process ends.

        Raises:
            ConfigError: another broker uses the directory.
        """


async def in_thread(work: Callable[[], T], limiter: trio.CapacityLimiter | None = None) -> T:
    """Call ``work()`` in one of trio's threads.

    Cancellation: raises ``Cancelled`` only if ``work`` was not called; once called, it runs to
    completion, and its result is returned.
    """
    return await trio.to_thread.run_sync(work, limiter=limiter)


async def run_blocking(directory: Directory, work: Callable[..., T], *args: object) -> T:
    """Call ``work(*args)``, in a thread if ``directory`` is on disk. Always a checkpoint.

    Cancellation: raises ``Cancelled`` only if ``work`` was not called; once called, it runs to
    completion, and its result is returned.
    """
    if directory.is_durable:
        return await directory.in_thread(partial(work, *args))
    await trio.lowlevel.checkpoint()
    return work(*args)


class FolderDirectory:
    """A directory on disk, created with its parents if it does not exist."""

    is_durable = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: str = os.path.abspath(os.fspath(path))
        os.makedirs(self.path, exist_ok=True)

    def names(self) -> list[str]:
        with os.scandir(self.path) as entries:
            return sorted(entry.name for entry in entries if entry.is_file())

    def folders(self) -> list[str]:
        with os.scandir(self.path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())

    def create(self, name: str) -> LogFile:
        descriptor = self._open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        return log_file(check_descriptor_limit(descriptor))

    def open(self, name: str) -> LogFile:
        return log_file(check_descriptor_limit(self._open(name, os.O_RDWR)))

    def read(self, name: str, position: int = 0, count: int | None = None) -> bytes:
        try:
            descriptor = self._open(name, os.O_RDONLY)
            if position or count is not None:
                return _read_part(log_file(descriptor), position, count)
            # Startup reads thousands of small files whole: no LogFile for each of them.
            try:
                size = os.fstat(descriptor).st_size
                content = os.read(descriptor, size)
            finally:
                os.close(descriptor)
        except OSError as error:
            error.filename = error.filename or self._join(name)
            raise
        return content if len(content) == size else self.read(name, 0, size)

    def size(self, name: str) -> int:
        return os.stat(self._join(name)).st_size

    def modified_ms(self, name: str) -> int:
        return os.stat(self._join(name)).st_mtime_ns // 1_000_000

    def set_modified_ms(self, name: str, modified_ms: int) -> None:
        os.utime(self._join(name), ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def write(self, name: str, position: int, data: Buffer) -> None:
        with _with_filename(self._join(name)):
            _write_all(log_file(self._open(name, os.O_WRONLY | os.O_CREAT)), position, data)

    def replace(self, name: str, data: Buffer) -> None:
        # The new content must be on disk before the name refers to it (rename is atomic, but
        # not ordered after the data), and the name itself is part of the directory.
        draft = name + ".tmp"
        with _with_filename(self._join(draft)):
            # Not truncated first: its space may be reserved (see reserve()).
            file = log_file(self._open(draft, os.O_WRONLY | os.O_CREAT))
            _write_all(file, 0, data)
            file.truncate(len(data))
            file.sync()
        try:
            os.replace(self._join(draft), self._join(name))
        except OSError as error:
            # The name is at fault; the draft is fine.
            error.filename, error.filename2 = self._join(name), None
            raise
        self.sync()

    def reserve(self, name: str, size: int) -> None:
        self.write(name + ".tmp", 0, bytes(size))

    def truncate(self, name: str, size: int) -> None:
        with _with_filename(self._join(name)):
            log_file(self._open(name, os.O_WRONLY)).truncate(size)

    def remove(self, name: str) -> None:
        try:
            os.unlink(self._join(name))
        except FileNotFoundError:
            pass

    def rename(self, name: str, new_name: str) -> None:
        os.replace(self._join(name), self._join(new_name))

    def sync_file(self, name: str) -> None:
        with _with_filename(self._join(name)):
            log_file(self._open(name, os.O_RDWR)).sync()

    def sync(self) -> None:
        with _with_filename(self.path):
            sync_folder(self.path)

    def folder(self, name: str) -> FolderDirectory:
        inner = FolderDirectory.__new__(FolderDirectory)
        inner.path = self._join(name)
        try:
            os.mkdir(inner.path)
        except FileExistsError:
            pass
        return inner

    def move_to(self, name: str) -> None:
        path = os.path.join(os.path.dirname(self.path), name)
        os.rename(self.path, path)
        self.path = path

    def remove_folder(self, name: str) -> None:
        shutil.rmtree(self._join(name))

    async def in_thread(
        self, work: Callable[[], T], limiter: trio.CapacityLimiter | None = None
    ) -> T:
        return await in_thread(work, limiter)

    def lock(self) -> FolderLock:
        file = self.create(".lock")
        try:
            lock_descriptor(file.fileno())
        except OSError as error:
            raise ConfigError(
                f"the data directory {self.path} is in use by another broker (its .lock is held); "
                "stop that broker, or give this one its own directory (log.dirs)"
            ) from error
        return FolderLock(file)

    def _join(self, name: str) -> str:
        return f"{self.path}{os.sep}{name}"

    def _open(self, name: str, flags: int) -> int:
        return os.open(self._join(name), flags | _BINARY, 0o644)

    def __repr__(self) -> str:
        return f"FolderDirectory({self.path!r})"


@contextlib.contextmanager
def _with_filename(path: str) -> Iterator[None]:
    """Add the file name to errors from operations on file descriptors, which lack it."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or path
        raise


def _read_part(file: LogFile, position: int, count: int | None) -> bytes:
    return file.read_at(position, max(0, file.size() - position) if count is None else count)


def _write_all(file: LogFile, position: int, data: Buffer) -> None:
    rest = memoryview(data).cast("B")
    while rest:
        written = file.write_at(position, [rest])
        if not written:
            raise OSError("the file system wrote no bytes")
        position += written
        rest = rest[written:]
