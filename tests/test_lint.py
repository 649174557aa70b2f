"""The linters: ruff for everything, flake8-async for what it alone knows about cancellation."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CODE = ["trionet", "tests", "demo", "docs", ".ci"]

#: What users call: there every async function is a checkpoint on each of its paths. Further inside,
#: a request passes through hands that only sometimes wait: one checkpoint per turn of the loop.
FOR_USERS = (
    "trionet/broker/run/_broker.py",
    "trionet/cli/",
    "trionet/client/",
    "trionet/dashboard/",
    "trionet/server/_socket_server.py",
    "trionet/spark/",
    "trionet/testing/",
)
#: What shows or reads, and keeps nobody's records.
LOOKED_AT = ("trionet/cli/", "trionet/dashboard/")
CHECKPOINTS = "ASYNC910,ASYNC911"
#: An implementation of an async interface need not await (ASYNC124); a task of asyncio that nobody
#: holds is ruff's to find, as RUF006 (ASYNC300).
NOT_HERE = "ASYNC124,ASYNC300"
#: A `yield` inside a nursery.
YIELDS = "ASYNC101"


def run(*command: str) -> None:
    """Run one linter; what it says is the failure."""
    command = (sys.executable, *command)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, f"{' '.join(command[1:6])}\n{done.stdout}{done.stderr}"


def async_sources(*folders: str) -> list[str]:
    """The files that flake8-async can have an opinion about; it is slow."""
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    with_async = [path for path in found if "async " in path.read_text("utf-8")]
    return sorted(path.relative_to(ROOT).as_posix() for path in with_async)


def test_ruff_has_nothing_to_say() -> None:
    run("-m", "ruff", "check", "--quiet", *CODE)


def test_the_code_is_formatted() -> None:
    run("-m", "ruff", "format", "--check", "--quiet", *CODE)


def options_for(path: str) -> tuple[str, ...]:
    """flake8-async's options for a file, without the passes over it that can find nothing there.

    It is slow: all five take half a minute for the package.
    """
    text = (ROOT / path).read_text("utf-8")
    off = [NOT_HERE]
    if not path.startswith(FOR_USERS):
        off.append(CHECKPOINTS)
    if "yield" not in text:
        off.append(YIELDS)
    # Named, the list of what is off replaces flake8-async's own: also what is off by default is on.
    options = [f"--disable={','.join(off)}"]
    if "noqa" not in text:
        options.append("--disable-noqa")
    return tuple(options)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "is_depended_on",
    [
        pytest.param(True, id="what records depend on"),
        # As many lines again: in the longer job.
        pytest.param(False, id="the rest", marks=pytest.mark.soak),
    ],
)
def test_everything_is_safe_to_cancel(is_depended_on: bool) -> None:
    files = [
        path
        for path in async_sources("trionet", "tests", "demo")
        if (path.startswith("trionet/") and not path.startswith(LOOKED_AT)) == is_depended_on
    ]
    by_options: dict[tuple[str, ...], list[str]] = {}
    for path in files:
        by_options.setdefault(options_for(path), []).append(path)
    with ThreadPoolExecutor(os.cpu_count()) as executor:
        checks = [
            executor.submit(
                run,
                "tests/support/flake8_async_once.py",
                *options,
                # What the package itself begins with `await nursery.start(...)`.
                "--startable-in-context-manager=run,serve,process_records,_keep,_run_processor,"
                "_hold_nursery",
                *alike,
            )
            for options, alike in by_options.items()
        ]
    for check in checks:
        check.result()
