"""Folders of the demo's children: gone with the demo, or with the next one."""

from __future__ import annotations

import shutil
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


@pytest.mark.skipif(shutil.which("unshare") is None, reason="there is no unshare")
def test_the_folder_of_a_demo_in_another_container_stays(tmp_path: Path) -> None:
    """Where our process has another number, or none."""
    program = (
        "import pathlib, sys, tempfile\n"
        "from demo.scratch import scratch_folder\n"
        "tempfile.tempdir = sys.argv[1]\n"
        "with scratch_folder():\n"
        "    pass\n"
    )
    container = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*container, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no containers are allowed here")

    with scratch_folder() as ours:
        root = Path(__file__).parents[2]
        command = [*container, sys.executable, "-c", program, str(tmp_path)]
        subprocess.run(command, cwd=root, check=True)
        assert [Path(ours)] == list(tmp_path.iterdir())


def test_folders_that_are_made_and_removed_by_many_at_once_are_never_anothers(
    tmp_path: Path,
) -> None:
    """Each is seen by others before it is locked."""
    program = (
        "import pathlib, sys, tempfile\n"
        "from demo.scratch import scratch_folder\n"
        "tempfile.tempdir = sys.argv[1]\n"
        "for _ in range(200):\n"
        "    with scratch_folder() as folder:\n"
        "        pathlib.Path(folder, 'file').touch()\n"
        "        assert pathlib.Path(folder, 'file').exists()\n"
    )
    root = Path(__file__).parents[2]
    demos = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=root) for _ in range(4)
    ]
    assert [0] * 4 == [demo.wait() for demo in demos]
    assert [] == list(tmp_path.iterdir())


def test_what_is_of_others_stays(tmp_path: Path) -> None:
    others = {tmp_path / name for name in ("trionet-demo-x", "trionet-demo-1-x", "others")}
    for each in others:
        each.mkdir()
    file = tmp_path / "trionet-demo-file"
    file.touch()

    with scratch_folder():
        pass

    assert {*others, file} == set(tmp_path.iterdir())
