"""Which parts of files are in the page cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.page_cache import drop_from_cache, slow_disk
from trionet._util.files import _page_cache as module
from trionet._util.files._page_cache import (
    PROBE_BYTES,
    is_page_cached,
    is_range_cached,
    warm_range,
)
from trionet.broker.log import FolderDirectory, LogFile, MemoryDirectory

SIZE = 5 * PROBE_BYTES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.fixture
def file(path: Path) -> Iterator[LogFile]:
    """A file on a slow file system that reports what is in the cache; nothing of it is."""
    path.write_bytes(b"x" * SIZE)
    drop_from_cache(path)
    with slow_disk():
        yield FolderDirectory(path.parent).open("file")


def test_cold_range_is_warm_after_it_was_read(file: LogFile) -> None:
    cold = is_range_cached(file, 0, SIZE)
    warm_range(file, 0, SIZE)

    assert not cold
    assert is_range_cached(file, 0, SIZE)


@pytest.mark.parametrize(
    ("offset", "count", "expected"),
    [
        (0, 2 * PROBE_BYTES, True),
        (PROBE_BYTES, PROBE_BYTES, True),
        (0, 3 * PROBE_BYTES, False),
        (2 * PROBE_BYTES - 1, 2, False),
        (3 * PROBE_BYTES, 1, False),
    ],
)
def test_range_is_cached_if_all_of_it_is(
    file: LogFile, path: Path, offset: int, count: int, expected: bool
) -> None:
    drop_from_cache(path, but_first=2 * PROBE_BYTES)

    assert expected == is_range_cached(file, offset, count)


def test_last_byte_counts_too(file: LogFile, path: Path) -> None:
    drop_from_cache(path, but_first=SIZE - PROBE_BYTES // 2)

    assert not is_range_cached(file, 0, SIZE)


def test_nothing_is_always_cached(path: Path) -> None:
    path.write_bytes(b"")

    assert is_range_cached(FolderDirectory(path.parent).open("file"), 0, 0)


def test_memory_is_always_cached() -> None:
    file = MemoryDirectory().create("file")
    file.write_at(0, [b"x" * 10])

    assert is_range_cached(file, 0, 10)


def test_file_system_that_cannot_report_it_is_asked_once() -> None:
    # A file of RAM refuses RWF_NOWAIT, as tmpfs does on older kernels, or responds at once.
    file = MemoryDirectory().create("file")
    file.write_at(0, [b"x" * 10])
    file.in_memory = False

    assert is_page_cached(file, 0)
    assert is_range_cached(file, 0, 10)


def test_systems_that_cannot_ask_say_cached(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"x" * SIZE)
    file = FolderDirectory(path.parent).open("file")
    drop_from_cache(path)
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
