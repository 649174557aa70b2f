"""The interface through which the log accesses the file system, and its on-disk implementation.

The interface has two implementations: :class:`FolderDirectory` on a disk, and
:class:`~trionet.broker.log.MemoryDirectory` in memory. Both provide real file descriptors, so that
``pwritev`` and ``sendfile`` work with either.

``.log`` files, which are appended to and sent, are kept open. Files that are read or written whole
or in large parts (indexes, snapshots, checkpoints) are opened, used and closed in one call, so that
a partition needs one file descriptor rather than four.

Data is durable only once it has been synced: the contents of a file by :meth:`LogFile.sync` or
:meth:`Directory.sync_file`, the name of a file by :meth:`Directory.sync`. Only
:meth:`Directory.replace` and :meth:`Directory.replace_in_turn` sync both. A power failure may undo
any of the changes of names that were not synced, whatever their order was.

On a disk, a name that leads to a pipe or a device counts as missing. Nothing waits for the other
end of a pipe, and a call that creates a file replaces it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol, TypeVar

import trio

from ...._util._logging import get_logger
from ...._util.files._descriptors import sync_folder, unlock_descriptor
from ...._util.files._lock_file import PRIVATE, lock_file
from ...._util.files._log_file import (
    OPEN_FLAGS,
    Buffer,
    LogFile,
    check_descriptor_limit,
    log_file,
)
from ....errors import ConfigError

logger = get_logger("trionet.broker.log")

T = TypeVar("T")

LOCK = ".lock"
_DRAFT_SUFFIX = ".tmp"
_SPARE_SUFFIX = ".spare"


class NotRegularError(FileNotFoundError):
    """Raised for a name that leads to a pipe or a device, which counts as a missing file."""


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

    def replace_in_turn(self, name: str, data: Buffer, growth: int) -> None:
        """Replace the contents of a file like :meth:`replace`, and keep the old file's disk space.

        Two files take turns, so that the next call needs no space on a full disk. It writes into
        the old file; do not keep that open to read it.

        Args:
            name: the file's name.
            data: its new contents.
            growth: by how many bytes the contents of the next call may grow without needing disk
                space. Nothing is reserved for that if the disk is full now.
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
        return self._open_log(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)

    def open(self, name: str) -> LogFile:
        return self._open_log(name, os.O_RDWR)

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
            log_file(self._open(name, os.O_RDWR | os.O_CREAT)).write_all(position, data)

    def replace(self, name: str, data: Buffer) -> None:
        self._write_draft(name, data)
        self._put_in_place(name)

    def replace_in_turn(self, name: str, data: Buffer, growth: int) -> None:
        spare = name + _SPARE_SUFFIX
        self._end_turn(name)
        self._write_draft(name, data)
        has_spare = self._give_second_name(name)
        self._put_in_place(name)
        try:
            if has_spare:
                # The name of the new content is on disk: whatever a power failure undoes from now
                # on, the draft of the next call is not the file itself.
                self.rename(spare, name + _DRAFT_SUFFIX)
            self._extend(name + _DRAFT_SUFFIX, len(data) + growth)
        except OSError:
            # The disk is full: the next call uses what space there is.
            pass

    def _write_draft(self, name: str, data: Buffer) -> None:
        # The new content must be on disk before the name refers to it (rename is atomic, but
        # not ordered after the data), and the name itself is part of the directory.
        draft = name + _DRAFT_SUFFIX
        with _with_filename(self._join(draft)):
            # Not truncated first: it may have space that no other file can get.
            file = log_file(self._open(draft, os.O_RDWR | os.O_CREAT))
            file.write_all(0, data)
            file.truncate(len(data))
            file.sync()

    def _put_in_place(self, name: str) -> None:
        try:
            os.replace(self._join(name + _DRAFT_SUFFIX), self._join(name))
        except OSError as error:
            # The name is at fault; the draft is fine.
            error.filename, error.filename2 = self._join(name), None
            raise
        self.sync()

    def _end_turn(self, name: str) -> None:
        """Complete or undo what a crash has left of an earlier call of :meth:`replace_in_turn`."""
        spare, draft = name + _SPARE_SUFFIX, name + _DRAFT_SUFFIX
        old = self._inode(spare)
        if old is not None and old == self._inode(name):
            self.remove(spare)
        elif old is not None:
            self.sync()  # on the disk, the name may still be that of the old file
            self.rename(spare, draft)

    def _give_second_name(self, name: str) -> bool:
        """Keep a file that is about to be replaced, under another name; return whether that works.

        There may be no such file, or no such second names, or a backup that consists of them: then
        its content must stay.
        """
        path = self._join(name)
        try:
            if os.stat(path).st_nlink > 1:
                return False
            os.link(path, path + _SPARE_SUFFIX)
        except OSError:
            return False
        return True

    def _extend(self, name: str, size: int) -> None:
        file = log_file(self._open(name, os.O_RDWR | os.O_CREAT))
        position = file.size()
        file.write_all(position, bytes(max(0, size - position)))

    def _inode(self, name: str) -> int | None:
        try:
            return os.stat(self._join(name)).st_ino
        except FileNotFoundError:
            return None

    def truncate(self, name: str, size: int) -> None:
        with _with_filename(self._join(name)):
            log_file(self._open(name, os.O_RDWR)).truncate(size)

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
        try:
            return FolderLock(lock_file(self._join(LOCK), self._open_lock))
        except BlockingIOError as error:
            raise ConfigError(
                f"the data directory {self.path} is in use by another broker (its .lock is held); "
                "stop that broker, or give this one its own directory (log.dirs)"
            ) from error

    def _open_lock(self) -> LogFile:
        return log_file(self._open(LOCK, os.O_RDWR | os.O_CREAT, PRIVATE))

    def _join(self, name: str) -> str:
        return f"{self.path}{os.sep}{name}"

    def _open_log(self, name: str, flags: int) -> LogFile:
        return log_file(check_descriptor_limit(self._open(name, flags)))

    def _open(self, name: str, flags: int, mode: int = 0o644) -> int:
        # Never only for writing, which fails for a pipe without a reader.
        path = self._join(name)
        descriptor = os.open(path, flags | OPEN_FLAGS, mode)
        found = os.fstat(descriptor).st_mode
        if stat.S_ISREG(found) or stat.S_ISDIR(found):
            return descriptor
        os.close(descriptor)
        if not flags & os.O_CREAT:
            raise NotRegularError(errno.ENOENT, "it is not a regular file", path)
        logger.warning("replacing %s, which is not a regular file", path)
        os.unlink(path)
        return self._open(name, flags, mode)

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
