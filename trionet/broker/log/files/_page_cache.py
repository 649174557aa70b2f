"""Checks whether parts of a file are in the page cache, and reads them into it.

Reading a page that is not cached blocks until the disk responds, which takes milliseconds and
sometimes a second. The loop must not block, so it checks the page cache and delegates uncached
reads to a thread.

Opening a log after a clean shutdown takes a third of a millisecond, plus half a dozen reads of a
few bytes from as many files. After a reboot, each of these reads waits for the disk in turn. More
threads would overlap the waits, but lose more time competing for the GIL. Instead, the kernel is
notified in advance of the files that the next logs need, and reads them in parallel.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from ._checkpoint_files import PARTITION_FILE
from ._directory import LogFile, log_file

# Linux reads ahead in blocks of this size (read_ahead_kb), and evicts in about the same.
PROBE_BYTES = 131072
_WARM_BYTES = 1048576

_NOWAIT = getattr(os, "RWF_NOWAIT", 0)
_NOT_SUPPORTED = (errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)

# Of each file, no more than this: what is read is small, or the start of a file.
_BYTES_MAX = 65536
# Of these, opening a log reads the newest; the names rise with the offsets.
_SEGMENT_SUFFIXES = ("log", "index", "timeindex", "snapshot")


def is_page_cached(file: LogFile, position: int) -> bool:
    """Return whether the byte at ``position`` can be read without disk access; True if unknown."""
    if file.in_memory or not _NOWAIT:
        return True
    try:
        os.preadv(file.fileno(), [bytearray(1)], position, _NOWAIT)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise
        # A file system in memory (tmpfs), or one without RWF_NOWAIT: do not probe this file again.
        file.in_memory = True
    return True


def is_range_cached(file: LogFile, offset: int, count: int) -> bool:
    """Return whether a range is cached; probes one byte per :data:`PROBE_BYTES`. Never blocks."""
    if not count or file.in_memory:
        return True
    last = offset + count - 1
    return all(
        is_page_cached(file, position) for position in range(offset, last, PROBE_BYTES)
    ) and is_page_cached(file, last)


def warm_range(file: LogFile, offset: int, count: int) -> None:
    """Read a range into the page cache. Blocks; call it in a thread.

    Raises:
        OSError: the range cannot be read from disk.
    """
    end = offset + count
    while offset < end:
        chunk = file.read_at(offset, min(_WARM_BYTES, end - offset))
        if not chunk:
            return
        offset += len(chunk)


def read_ahead(path: str, folders: Iterable[str]) -> None:
    """Start reading the files needed to open the logs in the given directories.

    Does nothing if the first directory's files appear to be in the page cache, or if the system
    does not support read-ahead hints. Never raises: opening the log reports any error. Blocks while
    it lists the directories.

    Args:
        path: the data directory.
        folders: the names of partition directories in ``path``.
    """
    if not hasattr(os, "posix_fadvise"):
        return
    for number, folder in enumerate(folders):
        at = os.path.join(path, folder)
        try:
            if not number and _is_cached(os.path.join(at, PARTITION_FILE)):
                return
            for name in _files_to_read(os.listdir(at)):
                _start_reading(os.path.join(at, name))
        except OSError:
            continue


def _is_cached(path: str) -> bool:
    return is_page_cached(log_file(os.open(path, os.O_RDONLY)), 0)


def _files_to_read(names: list[str]) -> Iterable[str]:
    newest: dict[str, str] = {}
    for name in names:
        _, _, suffix = name.rpartition(".")
        kind = suffix if suffix in _SEGMENT_SUFFIXES else name
        newest[kind] = max(name, newest.get(kind, ""))
    return newest.values()


def _start_reading(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, _BYTES_MAX, os.POSIX_FADV_WILLNEED)
    finally:
        os.close(descriptor)
