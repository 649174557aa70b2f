"""Small C programs, compiled on the spot and kept by the hash of their source."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from support.cache import Unavailable, cache_folder, made_once, require_program


def compiled(source: Path, *libraries: str) -> Path:
    """The program made from one C file; raises `Unavailable` when there is no C compiler.

    Args:
        source: the file.
        libraries: linker flags such as `-ldl`.
    """
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]

    def make(target: Path) -> None:
        compiler = require_program("cc", f"compiles {source.name}")
        done = subprocess.run(
            [compiler, "-O2", "-Wall", "-o", str(target), str(source), *libraries],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise Unavailable(f"{source.name} could not be compiled: {done.stderr[:500]}")

    return made_once(cache_folder() / "compiled" / f"{source.stem}-{digest}", make)
