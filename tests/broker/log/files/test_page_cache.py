"""Which parts of files are in the page cache, and what the kernel learns before it opens logs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.page_cache import drop_from_cache, slow_disk
from trionet.broker.log import FolderDirectory, LogFile, MemoryDirectory
from trionet.broker.log.files import _page_cache as module
from trionet.broker.log.files._checkpoint_files import PARTITION_FILE
from trionet.broker.log.files._page_cache import (
    PROBE_BYTES,
    is_page_cached,
    is_range_cached,
    read_ahead,
    warm_range,
)

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


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The files that the kernel is told will be needed, as ``folder/name``.

    The first file tells whether the disk is needed: it is slow.
    """
    if not hasattr(os, "posix_fadvise"):
        pytest.skip("the kernel takes no such hints here")
    told: list[str] = []
    real = os.posix_fadvise

    def note(descriptor: int, offset: int, count: int, advice: int) -> None:
        if advice == os.POSIX_FADV_WILLNEED:
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            told.append(f"{path.parent.name}/{path.name}")
        real(descriptor, offset, count, advice)

    monkeypatch.setattr(os, "posix_fadvise", note)
    with slow_disk():
        yield told


def partition(folder: Path, *names: str) -> Path:
    """A partition's folder with such files, none of which is in the page cache."""
    folder.mkdir()
    for name in (PARTITION_FILE, *names):
        (folder / name).write_bytes(b"x")
        drop_from_cache(folder / name)
    return folder


def test_it_is_reported_of_the_newest_segment_and_of_all_other_files(
    tmp_path: Path, told: list[str]
) -> None:
    old, new = f"{7:020}", f"{8:020}"
    names = [f"{base}.{kind}" for base in (old, new) for kind in ("log", "index", "timeindex")]
    partition(tmp_path / "t-0", *names, f"{new}.snapshot", "leader-epoch-checkpoint")
    partition(tmp_path / "t-1", f"{old}.log")

    read_ahead(str(tmp_path), ["t-0", "t-1"])

    newest = [f"t-0/{new}.{kind}" for kind in ("index", "log", "snapshot", "timeindex")]
    others = ["t-0/leader-epoch-checkpoint", f"t-0/{PARTITION_FILE}", f"t-1/{PARTITION_FILE}"]
    assert sorted([*newest, *others, f"t-1/{old}.log"]) == sorted(told)


def test_nothing_is_reported_of_what_is_in_the_page_cache(tmp_path: Path, told: list[str]) -> None:
    for folder in ("t-0", "t-1"):
        (partition(tmp_path / folder) / PARTITION_FILE).read_bytes()

    read_ahead(str(tmp_path), ["t-0", "t-1"])

    assert [] == told


def test_a_folder_that_cannot_be_read_is_left_to_who_opens_it(
    tmp_path: Path, told: list[str]
) -> None:
    partition(tmp_path / "t-1")

    read_ahead(str(tmp_path), ["t-0", "t-1"])

    assert [f"t-1/{PARTITION_FILE}"] == told
