"""The compiled build does what the pure one does, error for error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_public_calls_have_equal_outcomes_in_both_builds() -> None:
    compiled, pure = start("0"), start("1")
    is_compiled, expected = outcomes(pure)
    assert not is_compiled
    is_compiled, found = outcomes(compiled)
    assert is_compiled

    different = {
        name: (expected.get(name), found.get(name))
        for name in expected.keys() | found.keys()
        if expected.get(name) != found.get(name)
    }
    assert len(expected) > 5_000
    assert {} == different


def start(pure: str) -> subprocess.Popen[str]:
    """The program of this folder in a child, with the package that this process has imported."""
    path = [os.environ.get("PYTHONPATH", ""), str(TESTS)]
    environment = {**os.environ, "TRIONET_PURE": pure, "PYTHONPATH": os.pathsep.join(path)}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "builds"], env=environment, stdout=subprocess.PIPE, text=True
    )


def outcomes(program: subprocess.Popen[str]) -> tuple[bool, dict[str, str]]:
    """Whether the modules were compiled, and the outcomes of all calls by name."""
    output, _ = program.communicate()
    assert program.returncode == 0
    found = json.loads(output)
    return found["compiled"], found["outcomes"]
