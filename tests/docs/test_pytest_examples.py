"""Examples that are test modules pass under pytest, with the plugin as a user has it.

`tests/test_docs.py` runs them too, but as programs: it only sees that they can be loaded.
Those that are files of a page's session run there, beside the other files.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from test_docs import BLOCKS

EXAMPLES = [
    block
    for block in BLOCKS
    if block.language == "python"
    and "def test_" in block.text
    and "unittest" not in block.text
    and not block.file
]


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.skipif(
    not any(point.value.startswith("trionet.") for point in entry_points(group="pytest11")),
    reason="trionet is not installed here, so that pytest does not know its plugin",
)
def test_examples_of_tests_pass(tmp_path: Path) -> None:
    for block in EXAMPLES:
        name = re.sub(r"\W+", "_", f"{block.page.removesuffix('.md')}_line_{block.line}")
        (tmp_path / f"test_{name}.py").write_text(block.text, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert len(EXAMPLES) > 5
    assert 0 == done.returncode, done.stdout + done.stderr
    assert f"{len(EXAMPLES)} passed" in done.stdout
