"""Files that are not in the page cache, on a disk that takes its time."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def drop_from_cache(path: Path, but_first: int = 0) -> None:
    """Have the kernel forget a file, but for its first bytes; skips where it does not."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        if _in_cache(descriptor, 0):
            pytest.skip("this file system cannot be made to forget a page")
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        os.pread(descriptor, but_first, 0)
    finally:
        os.close(descriptor)


@contextmanager
def slow_disk() -> Iterator[None]:
    """A read that may not wait finds what is in the page cache, and no more.

    Linux begins to read when it is asked without leave to wait. A fast disk often responses before
    Linux has looked again, so that nothing is ever missing.
    """
    real = os.preadv

    def preadv(descriptor: int, buffers: list[bytearray], offset: int, flags: int = 0, /) -> int:
        if flags & os.RWF_NOWAIT and not _in_cache(descriptor, offset):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return real(descriptor, buffers, offset, flags)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "preadv", preadv)
        yield


def _in_cache(descriptor: int, offset: int) -> bool:
    """Whether a page is in the page cache; asking, unlike reading, changes nothing."""
    page = offset - offset % mmap.PAGESIZE
    with mmap.mmap(descriptor, 0, mmap.MAP_PRIVATE, offset=page) as mapped:
        first = ctypes.c_char.from_buffer(mapped)
        resident = ctypes.c_ubyte()
        libc = ctypes.CDLL(None, use_errno=True)
        failed = libc.mincore(
            ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(1), ctypes.byref(resident)
        )
        number = ctypes.get_errno()
        del first
    if failed:
        raise OSError(number, os.strerror(number))
    return bool(resident.value & 1)
