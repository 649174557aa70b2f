"""Pages whose examples build upon one another: one shell and one folder, from top to bottom.

* Such a page has the line ``<!-- one session -->``. Its blocks of ``console`` are as in
  ``tests/test_docs.py``, but all of them run in one shell.
* A block below ``<!-- file: NAME -->`` is a file, which is there from that place on.
* ``<!-- needs: kcat, openssl -->`` names programs; without one of them the test is skipped.
* The ports from 9092 to 9099 stand for free ones.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
from pathlib import Path

import pytest

from support.ports import free_ports
from test_docs import BLOCKS, ONE_SESSION, ROOT, Block, is_of_session, matches, play, session

NEEDS = re.compile(r"^<!-- needs: (?P<programs>[\w, -]+) -->$", re.MULTILINE)
# The longest page starts a broker ten times, and waits a look at its certificates long: it takes 45
# seconds on two processors, and four times that beside other work.
SECONDS_MAX = 280
PORT = re.compile(r"\b909[2-9]\b")


def whole_pages() -> list[str]:
    return sorted({block.page for block in BLOCKS if is_of_session(block)})


def steps_of(blocks: list[Block]) -> list[tuple[str, str]]:
    """The commands of a page, each with the output that is shown; files are commands, too."""
    steps = []
    for block in blocks:
        if block.file:
            text = shlex.quote(block.text.removesuffix("\n"))
            steps.append((f"printf '%s\\n' {text} > {block.file}", ""))
        else:
            steps += session(block.text)
    return steps


def with_free_ports(steps: list[tuple[str, str]]) -> list[tuple[str, str]]:
    shown = sorted({port for step in steps for text in step for port in PORT.findall(text)})
    free = dict(zip(shown, map(str, free_ports(len(shown))), strict=True))

    def replace(text: str) -> str:
        return PORT.sub(lambda found: free[found[0]], text)

    return [(replace(command), replace(output)) for command, output in steps]


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.timeout(SECONDS_MAX + 20)
@pytest.mark.parametrize("page", whole_pages())
def test_what_a_page_shows_from_top_to_bottom_happens(page: str, tmp_path: Path) -> None:
    for found in NEEDS.finditer((ROOT / page).read_text("utf-8")):
        for program in re.split(r",\s*", found["programs"]):
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed (used by {page})")
    blocks = [block for block in BLOCKS if block.page == page and is_of_session(block)]
    assert not any(block.not_run for block in blocks)
    steps = with_free_ports(steps_of(blocks))

    actual = play([command for command, _ in steps], tmp_path, SECONDS_MAX)

    for (command, expected), output in zip(steps, actual, strict=True):
        assert matches(expected, output), f"$ {command}\n{output}"


def test_a_page_is_played_in_one_folder_with_its_files_and_free_ports(tmp_path: Path) -> None:
    page = [
        Block("page.md", 1, "ini", "it's = 9092\n", "", "a.ini"),
        Block("page.md", 5, "console", "$ cat a.ini > b\n$ cd /\n", ""),
        Block("page.md", 9, "console", "$ pwd; cat $OLDPWD/b\n/\nit's = 9092\n", ""),
    ]

    steps = with_free_ports(steps_of(page))
    actual = play([command for command, _ in steps], tmp_path)

    assert matches(steps[-1][1], actual[-1])
    assert "9092" not in actual[-1]


@pytest.mark.slow
def test_a_session_that_does_not_end_leaves_nothing_behind(tmp_path: Path) -> None:
    commands = ["echo begun", "sleep 600 & echo $! > job", "wait"]

    with pytest.raises(pytest.fail.Exception, match="not over after 1 s\nbegun"):
        play(commands, tmp_path, 1)

    assert is_over(int((tmp_path / "job").read_text()))


def is_over(process: int) -> bool:
    """Whether a process has ended, or does so now: who is killed may need a moment for it."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 10)[0])
    finally:
        os.close(handle)


def test_the_pages_are_found() -> None:
    marked = [path for path in (ROOT / "docs").rglob("*.md") if ONE_SESSION in path.read_text()]

    assert len(marked) == len(whole_pages()) > 0
