"""Things that are downloaded or built once, outside the source tree, for all test runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path


class Unavailable(Exception):
    """Something foreign (a JVM, a registry, a compiler …) is missing; the text says what."""


def cache_folder() -> Path:
    """The folder that outlives test runs: `$XDG_CACHE_HOME/trionet` or `~/.cache/trionet`."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "trionet"


def require_program(name: str, purpose: str) -> str:
    """The path of an installed program, or `Unavailable` with a reason to show."""
    path = shutil.which(name)
    if path is None:
        raise Unavailable(f"{name} is not installed ({purpose})")
    return path


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def made_once(target: Path, make: Callable[[Path], None]) -> Path:
    """`target` (a file or folder), made by `make(scratch)` if it is not there yet.

    Safe between processes: one makes it, the others wait for the file lock beside it. `target`
    appears whole or not at all: the scratch path is renamed to it only after `make` has returned.
    """
    if target.exists():
        return target
    with _locked(target.with_name(target.name + ".lock")):
        if not target.exists():
            scratch = target.with_name(target.name + ".partial")
            if scratch.is_dir():
                shutil.rmtree(scratch)
            scratch.unlink(missing_ok=True)
            make(scratch)
            scratch.rename(target)
    return target
