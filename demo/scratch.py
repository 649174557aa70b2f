"""Folders for the files of children, which clean nothing up when they are killed.

The folder of a demo that is killed itself, as by ``kill -9``, is removed by the next demo. A lock
on a file in it shows whether its demo still runs, since it goes with its owner: a process id says
nothing where containers share the folder of temporary files.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where folders of killed demos stay
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True

_PREFIX = "trionet-demo-"
_LOCK = "in-use"


@contextmanager
def scratch_folder() -> Iterator[str]:
    """A folder for the length of the block; those of demos that are no more go first."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        _remove_if_left(left)
    while True:
        with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as folder:
            lock = _locked(Path(folder, _LOCK), os.O_CREAT)
            if lock is None:
                continue  # another demo saw it before it was locked, and took it for a left one
            try:
                yield folder
            finally:
                os.close(lock)
            return


def _remove_if_left(folder: Path) -> None:
    """Remove a folder whose lock no process holds; one without a lock may be about to get it."""
    lock = _locked(folder / _LOCK)
    if lock is None:
        return
    try:
        if _HAS_LOCKS:
            # Another user's folder cannot be removed, and need not be.
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _locked(path: Path, flags: int = 0) -> int | None:
    """A descriptor of the file that holds its lock; None if that is another's, or the file gone."""
    flags |= os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        return None
    try:
        if _HAS_LOCKS:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None
