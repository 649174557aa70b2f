"""`TRIONET_PURE=1`: the source of every module runs, whatever lies beside it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = """
import trionet, trionet.net.wire._framing
print(trionet.is_compiled(), trionet.net.wire._framing.__file__, trionet.__file__)
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the package and what looks like one of its modules compiled."""
    ignored = shutil.ignore_patterns("__pycache__", "messages")
    shutil.copytree(ROOT / "trionet", tmp_path / "trionet", ignore=ignored)
    # Empty files are found like real ones, and then cannot be loaded.
    suffix = EXTENSION_SUFFIXES[0]
    (tmp_path / f"trionet__mypyc{suffix}").touch()
    (tmp_path / f"trionet/net/wire/_framing{suffix}").touch()
    return tmp_path


def run(installed: Path, pure: str | None) -> subprocess.CompletedProcess[str]:
    # Nothing of the environment: `python3 tests compiled` has a trionet of its own in it.
    env = {"PYTHONPATH": str(installed), **({} if pure is None else {"TRIONET_PURE": pure})}
    command = [sys.executable, "-P", "-c", PROGRAM]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_with_the_variable_the_source_is_imported(installed: Path) -> None:
    done = run(installed, "1")

    package = installed / "trionet"
    assert "" == done.stderr
    assert ["False", f"{package / 'net/wire/_framing.py'}", f"{package / '__init__.py'}"] == (
        done.stdout.split()
    )


@pytest.mark.parametrize("pure", [None, "", "0"])
def test_without_it_python_takes_the_compiled_module(installed: Path, pure: str | None) -> None:
    done = run(installed, pure)

    assert "ImportError" in done.stderr
    assert f"framing{EXTENSION_SUFFIXES[0]}" in done.stderr


def test_what_lies_beside_another_trionet_does_not_count(installed: Path) -> None:
    env = {"PYTHONPATH": f"{ROOT}:{installed}"}
    command = [sys.executable, "-P", "-c", PROGRAM]

    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)

    assert (
        f"False {ROOT / 'trionet/net/wire/_framing.py'} {ROOT / 'trionet/__init__.py'}\n"
        == done.stdout
    )
