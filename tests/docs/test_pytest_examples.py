"""Examples that are test modules pass under pytest, with the plugin as a user has it.

`tests/test_docs.py` runs them too, but as programs: it only sees that they can be loaded.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from test_docs import BLOCKS, Block

EXAMPLES = [
    pytest.param(block, id=f"{block.page}:{block.line}")
    for block in BLOCKS
    if block.language == "python" and "def test_" in block.text and "unittest" not in block.text
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.interop,
    pytest.mark.skipif(
        not any(point.value.startswith("trionet.") for point in entry_points(group="pytest11")),
        reason="trionet is not installed here, so that pytest does not know its plugin",
    ),
]


@pytest.mark.parametrize("block", EXAMPLES)
def test_an_example_of_a_test_passes(block: Block, tmp_path: Path) -> None:
    module = tmp_path / "test_example.py"
    module.write_text(block.text, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", module.name]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout + done.stderr


def test_there_are_such_examples() -> None:
    assert len(EXAMPLES) > 5
