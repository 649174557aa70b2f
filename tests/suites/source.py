"""The source of a library at the version that is installed here, and a Python to run its tests."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

from suites.suite import Suite
from support.cache import Unavailable, cache_folder, made_once, require_program

#: A registry that does not respond must not hold the others up.
FETCH_SECONDS_MAX = 300.0


def installed(suite: Suite) -> str:
    """The version of the library that the tests of this project talk with."""
    return version(suite.distribution)


def folder_of(suite: Suite) -> Path:
    """Where what belongs to this version of a suite is kept."""
    return cache_folder() / "suites" / f"{suite.name}-{installed(suite)}"


def source(suite: Suite) -> Path:
    """The folder of the source; raises `Unavailable` when it is nowhere to be had."""
    if suite.in_archive:
        fetch = partial(_unpack_archive, suite)
    else:
        fetch = partial(clone, suite.repository, suite.tag.format(installed(suite)))
    return made_once(folder_of(suite) / "source", fetch)


def _unpack_archive(suite: Suite, folder: Path) -> None:
    wanted = f"{suite.distribution}=={installed(suite)}"
    downloads = folder.with_name("downloads")
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", suite.distribution]
    call([*pip, "--dest", str(downloads), wanted], f"pip could not fetch the source of {wanted}")
    [archive] = downloads.glob("*.tar.gz")
    unpacked = folder.with_name("unpacked")
    with tarfile.open(archive) as opened:
        opened.extractall(unpacked, filter="data")
    [top] = unpacked.iterdir()
    suite.complete(top)
    top.rename(folder)
    shutil.rmtree(unpacked)


def clone(repository: str, tag: str, folder: Path) -> None:
    """Fetch one version of a repository; raises `Unavailable` when it cannot be had."""
    git = require_program("git", f"fetches {tag} of {repository}")
    command = [git, "clone", "--quiet", "--depth", "1", "--branch", tag, repository]
    call([*command, str(folder)], f"git could not fetch {tag} of {repository}")


def call(command: Sequence[str], failure: str) -> None:
    """Run a command that fetches something; raises `Unavailable` with its last line."""
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS_MAX,
            # A repository that is not there would make git ask who you are.
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{failure}: no answer within {FETCH_SECONDS_MAX:.0f} s") from None
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise Unavailable(f"{failure}: {said[-1] if said else 'it says nothing'}")


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
