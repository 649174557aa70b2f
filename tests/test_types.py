"""mypy, as strict as pyproject.toml says, over everything that is written by hand or generated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_types_fit() -> None:
    programs = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(".ci/*.py"))
    command = [sys.executable, "-m", "mypy", "trionet", "tests", "demo", "docs", *programs]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, f"\n{done.stdout}{done.stderr}"
