"""What the kernel learns before logs are opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.page_cache import drop_from_cache, slow_disk
from trionet.broker.log.files._checkpoint_files import PARTITION_FILE
from trionet.broker.log.files._page_cache import read_ahead


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
