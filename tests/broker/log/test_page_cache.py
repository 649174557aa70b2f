from __future__ import annotations

import os
from pathlib import Path

import pytest

from trionet.broker.log import FolderDirectory, LogFile, MemoryDirectory
from trionet.broker.log import page_cache as module
from trionet.broker.log.page_cache import (
    PROBE_BYTES,
    is_page_cached,
    is_range_cached,
    warm_range,
)

SIZE = 5 * PROBE_BYTES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


def drop(path: Path, offset: int = 0, count: int = 0) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, offset, count, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def test_cold_ranges_are_told_from_warm_ones(path: Path) -> None:
    path.write_bytes(b"x" * SIZE)
    file = FolderDirectory(path.parent).open("file")
    drop(path)
    if is_page_cached(file, 0):
        pytest.skip("this file system does not tell what is cached, or caches everything")

    assert not is_range_cached(file, 0, SIZE)
    warm_range(file, 0, SIZE)
    assert is_range_cached(file, 0, SIZE)
    drop(path, 2 * PROBE_BYTES, PROBE_BYTES)
    assert not is_range_cached(file, 0, SIZE)
    assert is_range_cached(file, 0, PROBE_BYTES)
    assert is_range_cached(file, 3 * PROBE_BYTES, 2 * PROBE_BYTES)


def test_last_byte_counts_too(path: Path) -> None:
    path.write_bytes(b"x" * SIZE)
    file = FolderDirectory(path.parent).open("file")
    drop(path)
    # No reading ahead: only what is read comes into the cache.
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
    warm_range(file, 0, SIZE - PROBE_BYTES // 2)
    if is_page_cached(file, SIZE - 1):
        pytest.skip("this file system does not tell what is cached, or caches everything")

    assert is_range_cached(file, 0, SIZE - PROBE_BYTES // 2)
    assert not is_range_cached(file, 0, SIZE)


def test_nothing_is_always_cached(path: Path) -> None:
    path.write_bytes(b"")

    assert is_range_cached(FolderDirectory(path.parent).open("file"), 0, 0)


def test_memory_is_always_cached() -> None:
    file = MemoryDirectory().create("file")
    file.write_at(0, [b"x" * 10])

    assert is_range_cached(file, 0, 10)


def test_file_system_that_cannot_tell_is_asked_once() -> None:
    # A file of RAM refuses RWF_NOWAIT, as tmpfs does on older kernels, or answers at once.
    file = MemoryDirectory().create("file")
    file.write_at(0, [b"x" * 10])
    file.in_memory = False

    assert is_page_cached(file, 0)
    assert is_range_cached(file, 0, 10)


def test_systems_that_cannot_ask_say_cached(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"x" * SIZE)
    file = FolderDirectory(path.parent).open("file")
    drop(path)
    monkeypatch.setattr(module, "_NOWAIT", 0)

    assert is_range_cached(file, 0, SIZE)


def test_unreadable_file_is_not_taken_for_cached(path: Path) -> None:
    path.write_bytes(b"x")
    file = LogFile(os.open(path, os.O_WRONLY))

    with pytest.raises(OSError, match="Bad file descriptor"):
        is_page_cached(file, 0)


def test_warming_ends_at_the_end_of_the_file(path: Path) -> None:
    path.write_bytes(b"x" * 10)
    file = FolderDirectory(path.parent).open("file")
    warm_range(file, 0, 10**9)

    assert b"x" * 10 == file.read_at(0, 100)
