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


needs_plugin = pytest.mark.skipif(
    not any(point.value.startswith("trionet.") for point in entry_points(group="pytest11")),
    reason="trionet is not installed here, so that pytest does not know its plugin",
)


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.interop
@needs_plugin
def test_examples_of_tests_pass(tmp_path: Path) -> None:
    for block in EXAMPLES:
        name = re.sub(r"\W+", "_", f"{block.page.removesuffix('.md')}_line_{block.line}")
        (tmp_path / f"test_{name}.py").write_text(block.text, "utf-8")

    done = run_pytest(tmp_path)

    assert len(EXAMPLES) > 5
    assert 0 == done.returncode, done.stdout + done.stderr
    assert f"{len(EXAMPLES)} passed" in done.stdout


@pytest.mark.slow
@pytest.mark.interop
@needs_plugin
def test_workers_of_xdist_have_brokers_of_their_own_or_share_that_of_the_page(
    tmp_path: Path,
) -> None:
    for block in BLOCKS:
        if block.page == "docs/howto/test-with-pytest.md" and block.file:
            (tmp_path / block.file).write_text(block.text, "utf-8")
    (tmp_path / "test_addresses.py").write_text(ADDRESSES, "utf-8")

    done = run_pytest(tmp_path, "-n", "2")

    assert 0 == done.returncode, done.stdout + done.stderr
    assert "6 passed" in done.stdout
    lines = [line.split() for line in (tmp_path / "addresses").read_text("utf-8").splitlines()]
    workers, shared, own = map(set, zip(*lines, strict=True))
    assert (2, 1, 2) == (len(workers), len(shared), len(own))


# Each of two workers begins with two of these tests, and notes which brokers it has.
ADDRESSES = """
import pytest


@pytest.mark.parametrize("number", range(4))
def test_addresses(number, kafka, trionet_session_broker, trionet_broker, worker_id):
    with open("addresses", "a") as file:
        print(worker_id, kafka, trionet_session_broker.bootstrap_servers, file=file)
"""
