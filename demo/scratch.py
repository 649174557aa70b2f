"""Folders for the files of children, which clean nothing up when they are killed.

Who is killed itself, as by ``kill -9``, leaves its folder behind; its name tells whose it was, and
the next demo removes it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "trionet-demo-"


@contextmanager
def scratch_folder() -> Iterator[str]:
    """A folder for the length of the block; those of demos that are no more go first."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        found = re.match(rf"{_PREFIX}(\d+)-", left.name)
        if found is not None and not _is_running(int(found[1])):
            # Of somebody else's it cannot, and need not.
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-") as folder:
        yield folder


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass  # of somebody else; or no number of a process
    return True
