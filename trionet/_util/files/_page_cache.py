"""Checks whether parts of a file are in the page cache, and reads them into it.

Reading a page that is not cached blocks until the disk responds, which takes milliseconds and
sometimes a second. The loop must not block, so it checks the page cache and delegates uncached
reads to a thread.
"""

# Compiled by mypyc.

from __future__ import annotations

import errno
import os
from typing import Final, Protocol

# Linux reads ahead in blocks of this size (read_ahead_kb), and evicts in about the same.
PROBE_BYTES: Final = 131072
_WARM_BYTES: Final = 1048576

_NOWAIT = getattr(os, "RWF_NOWAIT", 0)
# What is read does not matter.
_BUFFERS: Final = [bytearray(1)]
_NOT_SUPPORTED: Final = (errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)


class CachedFile(Protocol):
    """A file, and whether its reads are known never to wait for a disk."""

    in_memory: bool

    def fileno(self) -> int: ...

    def read_at(self, position: int, count: int, /) -> bytes: ...


def is_page_cached(file: CachedFile, position: int) -> bool:
    """Return whether the byte at ``position`` can be read without disk access; True if unknown."""
    if file.in_memory or not _NOWAIT:
        return True
    try:
        os.preadv(file.fileno(), _BUFFERS, position, _NOWAIT)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise
        # A file system in memory (tmpfs), or one without RWF_NOWAIT: do not probe this file again.
        file.in_memory = True
    return True


def is_range_cached(file: CachedFile, offset: int, count: int) -> bool:
    """Return whether a range is cached; probes one byte per :data:`PROBE_BYTES`. Never blocks."""
    if not count or file.in_memory:
        return True
    last = offset + count - 1
    for position in range(offset, last, PROBE_BYTES):
        if not is_page_cached(file, position):
            return False
    return is_page_cached(file, last)


def warm_range(file: CachedFile, offset: int, count: int) -> None:
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
