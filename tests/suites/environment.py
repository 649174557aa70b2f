"""A virtual environment for each suite: its tests want other versions of pytest than ours."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from suites.source import folder_of, installed
from suites.suite import Suite
from support.cache import Unavailable, made_once

_PYTHON = Path("bin") / "python"


def python_for(suite: Suite, source: Path) -> Path:
    """The Python that runs a suite; raises `Unavailable` when its packages cannot be had."""
    wanted = [f"{suite.distribution}=={installed(suite)}", "pytest-timeout"]
    wanted += [each.format(source=source) for each in suite.requirements]
    digest = hashlib.sha256(" ".join([sys.implementation.cache_tag, *wanted]).encode())
    folder = folder_of(suite) / f"venv-{digest.hexdigest()[:12]}"
    made_once(folder.with_name(folder.name + ".made"), partial(_make, wanted, folder))
    return folder / _PYTHON


def _make(wanted: Sequence[str], folder: Path, made: Path) -> None:
    # Made where it stays: its programs name their folder.
    venv.create(folder, clear=True, with_pip=True)
    command: list[str | Path] = [folder / _PYTHON, "-m", "pip", "install", "--quiet", *wanted]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it says nothing"]
        why = next((line for line in said if line.startswith("ERROR:")), said[-1])
        raise Unavailable(f"pip could not install {' '.join(wanted)}: {why}")
    made.touch()
