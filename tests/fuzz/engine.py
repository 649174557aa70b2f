"""Where atheris comes from, which lets the coverage of an input decide what is tried next.

It is no part of the environment: its wheels have 35 MB, and there are some only for Linux on
x86-64. It is fetched when a search begins for the first time, and lies beside what pip manages.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from environment import VENV, Progress, SetupFailed, locked, pip

FOLDER = VENV / "atheris"
REQUIREMENT = "atheris>=3,<4"


def fetched(requirement: str = REQUIREMENT, folder: Path = FOLDER) -> Path | None:
    """The folder to import atheris from; None, and a line that says why, if there is no such."""
    if not folder.exists():
        folder.parent.mkdir(exist_ok=True)
        with locked(VENV / "lock"):
            if not folder.exists():  # made while we waited
                try:
                    with Progress("fuzz: fetching atheris (once)") as progress:
                        _install(requirement, folder, progress)
                except SetupFailed as failure:
                    reason = str(failure).strip().splitlines()[-1]
                    print(
                        f"fuzz: no atheris here, so nothing guides the search: {reason}",
                        file=sys.stderr,
                    )
                    return None
    return folder


def _install(requirement: str, folder: Path, progress: Progress) -> None:
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)  # of an interrupted start
    # Its sources need a compiler of their own; without a wheel there is none.
    options = ["--only-binary=:all:", "--no-deps", "--no-compile", "--target", str(new)]
    progress.run([*pip("install"), *options, requirement])
    new.rename(folder)
