"""A user's program of some two hundred lines: mypy has nothing to say about it, and it runs.

`tests/test_types.py` looks at it, too, by the rules of this project. Here it is a user's, in a
folder of its own: strict, without any settings of ours, and with the package ``trio-typing``, whose
old stubs take the place of trio's own types.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.cache import Unavailable, cache_folder, made_once

HERE = Path(__file__).resolve().parent
PROGRAM = HERE / "coffee_shop.py"
TRIO_TYPING = "trio-typing==0.10.0"
#: What its stubs import.
ITS_NEEDS = ("async_generator>=1.10,<2", "mypy_extensions>=1,<2", "importlib_metadata>=8")

#: A name that trio has had since it has types of its own, and which the old stubs lack.
PROBE = "import trio\n\nstatus: trio.TaskStatus[None]\n"


@pytest.mark.slow
def test_the_program_runs() -> None:
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, check=False)

    assert "20 espresso, 20 flat white, 20 tea\n" == done.stdout, done.stderr


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return Path(shutil.copy(PROGRAM, tmp_path))


@pytest.fixture(scope="module")
def trio_typing() -> Path:
    """A folder with the package and what it needs."""
    try:
        return made_once(cache_folder() / TRIO_TYPING, _install)
    except Unavailable as reason:
        pytest.skip(str(reason))


def _install(folder: Path) -> None:
    # Not what it needs of trio's: that would be another trio.
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    command: list[str | Path] = [*pip, "--target", folder, TRIO_TYPING, *ITS_NEEDS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"pip could not install {TRIO_TYPING}: {done.stderr.strip()[-200:]}")


def mypy(file: Path, *beside: Path) -> str:
    """What mypy says of a file, strict and without settings, with folders of other packages."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, beside))}
    cache = f"--cache-dir={cache_folder() / 'mypy' / ('beside' if beside else 'alone')}"
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", cache, file.name]
    done = subprocess.run(
        command, cwd=file.parent, env=env, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.types
def test_mypy_has_nothing_to_say(program: Path) -> None:
    assert "Success: no issues found in 1 source file\n" == mypy(program)


@pytest.mark.types
def test_mypy_has_nothing_to_say_beside_trio_typing(program: Path, trio_typing: Path) -> None:
    assert "Success: no issues found in 1 source file\n" == mypy(program, trio_typing)


@pytest.mark.types
def test_the_old_stubs_are_in_force_beside_trio_typing(tmp_path: Path, trio_typing: Path) -> None:
    file = tmp_path / "probe.py"
    file.write_text(PROBE)

    assert "Success" in mypy(file)
    assert "has no attribute" in mypy(file, trio_typing) or "is not defined" in mypy(
        file, trio_typing
    )


@pytest.mark.types
def test_the_program_runs_beside_trio_typing(program: Path, trio_typing: Path) -> None:
    env = os.environ | {"PYTHONPATH": str(trio_typing)}

    done = subprocess.run(
        [sys.executable, program], env=env, capture_output=True, text=True, check=False
    )

    assert "20 espresso, 20 flat white, 20 tea\n" == done.stdout, done.stderr


@pytest.mark.types
@pytest.mark.parametrize("beside", [False, True])
def test_mistakes_are_found(beside: bool, tmp_path: Path, trio_typing: Path) -> None:
    file = tmp_path / "mistakes.py"
    shutil.copy(HERE / "mistakes.py.txt", file)

    said = mypy(file, *([trio_typing] if beside else []))

    found = re.findall(r"^mistakes\.py:(\d+): error: .*\[([a-z-]+)\]$", said, re.MULTILINE)
    assert [
        ("6", "call-arg"),
        ("7", "arg-type"),
        ("8", "arg-type"),
        ("9", "assignment"),
    ] == found, said
