"""A disk that is soon full: a tmpfs of a few megabytes."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class SmallDisk:
    """A mounted folder that can be filled up and emptied again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self) -> None:
        """Leave no room at all."""
        with self._ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    def give_back(self) -> None:
        """Make the room again that :meth:`fill` took."""
        self._ballast.unlink()


@contextlib.contextmanager
def small_disk(path: Path, size: int) -> Iterator[SmallDisk]:
    """A tmpfs of `size` bytes at `path`; the test is skipped where nobody may mount one."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(path)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no small disk: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
