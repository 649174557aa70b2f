from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from trionet.broker.log import Directory, FolderDirectory, MemoryDirectory


@pytest.fixture(params=["disk", "memory"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Directory:
    """A folder of each kind; what is tested with it holds for both."""
    return FolderDirectory(tmp_path / "folder") if request.param == "disk" else MemoryDirectory()


@pytest.fixture
def folder(tmp_path: Path) -> FolderDirectory:
    return FolderDirectory(tmp_path / "folder")


@pytest.fixture
def quick_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder where syncing costs nothing, if there is such a place."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as path:
        yield Path(path)
