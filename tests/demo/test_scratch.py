"""Folders of the demo's children: gone with the demo, or with the next one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from demo.scratch import scratch_folder


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_a_folder_goes_with_the_block(tmp_path: Path) -> None:
    with scratch_folder() as folder:
        Path(folder, "file").touch()
        assert [Path(folder)] == list(tmp_path.iterdir())

    assert [] == list(tmp_path.iterdir())


def test_what_a_demo_left_that_was_killed_goes_with_the_next(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, signal, sys, tempfile\n"
        "from demo.scratch import scratch_folder\n"
        "tempfile.tempdir = sys.argv[1]\n"
        "with scratch_folder() as folder:\n"
        "    pathlib.Path(folder, 'file').touch()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=root, check=False)
    [left] = tmp_path.iterdir()

    with scratch_folder() as folder:
        assert [Path(folder)] == list(tmp_path.iterdir())
        assert left != Path(folder)


def test_what_is_of_others_stays(tmp_path: Path) -> None:
    others = {tmp_path / name for name in ("trionet-demo-x", "trionet-demo-1-x", "others")}
    for each in others:
        each.mkdir()
    own = tmp_path / f"trionet-demo-{os.getpid()}-x"
    own.mkdir()

    with scratch_folder():
        pass

    assert {*others, own} == set(tmp_path.iterdir())
