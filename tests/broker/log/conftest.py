from __future__ import annotations

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
