"""The tests that are nearest to a change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from changed import ROOT, changed_paths, nearest


@pytest.mark.parametrize(
    ("path", "contained", "left_out"),
    [
        ("trionet/net/_selector.py", "tests/net/test_selector.py", "tests/net/sasl/"),
        ("trionet/net/wire/_framing.py", "tests/net/test_framing.py", "tests/server/"),
        ("trionet/errors.py", "tests/test_errors.py", "tests/test_tidy.py"),
        ("tests/net/test_framing.py", "tests/net/test_framing.py", "tests/net/test_selector.py"),
        ("tests/support/selecting.py", "tests/net/test_selector.py", "tests/cli/"),
        ("docs/design.md", "tests/docs", "tests/net/"),
        ("README.md", "tests/test_docs.py", "tests/net/"),
        ("demo/__main__.py", "tests/demo", "tests/net/"),
        ("pyproject.toml", "tests/test_setup.py", "tests/net/"),
    ],
)
def test_the_folder_that_mirrors_a_module_is_near_it(
    path: str, contained: str, left_out: str
) -> None:
    found = list(nearest([path], ROOT))

    assert contained in found
    assert not [each for each in found if each.startswith(left_out)]
    assert all((ROOT / each).exists() for each in found)


def test_a_test_that_is_gone_is_not_near() -> None:
    assert [] == list(nearest(["tests/net/test_gone.py"], ROOT))


def test_what_differs_counts_and_else_the_last_commit(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )

    git("init", "-q")
    for number in range(2):
        (tmp_path / f"{number}.py").write_text("")
        git("add", "-A")
        git("commit", "-qm", str(number))

    assert ["1.py"] == changed_paths(tmp_path, None)
    (tmp_path / "0.py").write_text("x = 1\n")
    (tmp_path / "new.py").write_text("")
    assert ["0.py", "new.py"] == changed_paths(tmp_path, None)
    assert ["0.py", "1.py", "new.py"] == changed_paths(tmp_path, "HEAD~1")
    with pytest.raises(subprocess.CalledProcessError):
        changed_paths(tmp_path, "nowhere")
