"""``python3 demo`` as a program, and what it needs."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from demo.analysis import no_spark
from demo.dataset import data_file

ROOT: Final = Path(__file__).resolve().parents[2]
COMMAND: Final = (sys.executable, "-m", "demo.flights")
VERDICT: Final = re.compile(
    r"Verdict: consumed == produced, record by record, for all \d+ carriers\."
)


def skip_without_flights() -> None:
    """Skip the module that calls this where the data set is not installed."""
    try:
        data_file()
    except FileNotFoundError as missing:
        pytest.skip(str(missing), allow_module_level=True)


def skip_without_spark() -> None:
    """Skip the module that calls this where the demo cannot run Spark."""
    skip_without_flights()
    if obstacle := no_spark():
        pytest.skip(obstacle, allow_module_level=True)


def own_folders(folder: Path) -> dict[str, str]:
    """Environment variables by which the demo has folders of its own, below an existing one."""
    folders = {"TMPDIR": folder / "temporary", "XDG_RUNTIME_DIR": folder / "runtime"}
    for each in folders.values():
        each.mkdir(0o700)
    return {name: str(each) for name, each in folders.items()}


def files_left(folder: Path) -> list[Path]:
    """What is left in the folders of `own_folders`; that of the sockets stays, and is empty."""
    return [*(folder / "temporary").iterdir(), *folder.glob("runtime/trionet/*")]


@contextlib.contextmanager
def running_demo(
    *arguments: str, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """The running demo without a terminal; whatever is left of it is killed at the end.

    Args:
        arguments: for its command line.
        env: adds to the environment.
    """
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()
