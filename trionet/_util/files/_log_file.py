"""Open files of logs: positioned reads and writes, syncing, and how many a process may have."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from typing import Final

from ._descriptors import descriptor_limit, sync_descriptor

Buffer = bytes | bytearray | memoryview

# Descriptors that log files leave free for connections, the database, and loading modules.
RESERVED_DESCRIPTORS: Final = 64

# The kernel accepts at most this many buffers in one gathering write (IOV_MAX).
GATHER_BUFFERS_MAX: Final = 1024

# Opening a pipe does not wait for its other end; see FolderDirectory.
OPEN_FLAGS: Final = (
    getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
)


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

    def write_all(self, position: int, data: Buffer) -> None:
        """Write all of ``data``.

        Raises:
            OSError: an unknown part of the data was written, possibly nothing.
        """
        rest = memoryview(data).cast("B")
        while rest:
            written = self.write_at(position, [rest])
            if not written:
                raise OSError("the file system wrote no bytes")
            position += written
            rest = rest[written:]

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


def open_log_file(path: str, flags: int, mode: int = 0o644) -> LogFile:
    """Open a file of a log, unless too few file descriptors are left.

    Args:
        path: the path of the file.
        flags: such as ``os.O_RDWR | os.O_CREAT``.
        mode: the mode of a file that is created.

    Raises:
        OSError: the file cannot be opened, or EMFILE; with ``O_CREAT``, it may have been created.
    """
    return log_file(check_descriptor_limit(os.open(path, flags | OPEN_FLAGS, mode)))
