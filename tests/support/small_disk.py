"""A disk that is soon full: a file system of a few megabytes, in RAM or in a file."""

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
def small_disk(path: Path, size: int, kind: str = "tmpfs") -> Iterator[SmallDisk]:
    """A file system of `size` bytes at `path`; the test is skipped where nobody may mount one.

    Args:
        path: a folder.
        size: in bytes.
        kind: `tmpfs`; or `ext4`, in a file beside the folder.
    """
    if kind == "tmpfs":
        _run("mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(path))
    else:
        image = path.with_name(f"{path.name}.image")
        with image.open("wb") as file:
            file.truncate(size)
        _run(f"mkfs.{kind}", "-q", "-F", str(image))
        _run("mount", "-o", "loop", str(image), str(path))
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        pytest.skip(f"no small disk: {error}")
    if done.returncode:
        pytest.skip(f"no small disk: {done.stderr.strip()}")
