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
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from support.ports import free_ports
from test_docs import (
    BLOCKS,
    ONE_SESSION,
    ROOT,
    Block,
    begin_session,
    is_of_session,
    kill_with_jobs,
    matches,
    play,
    printed_in,
    session,
)

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


def with_free_ports(pages: list[list[tuple[str, str]]]) -> list[list[tuple[str, str]]]:
    """The steps of pages, which are played at the same time, each with ports of its own."""
    shown = [
        sorted({port for step in steps for text in step for port in PORT.findall(text)})
        for steps in pages
    ]
    free = iter(free_ports(sum(map(len, shown))))
    replaced = []
    for steps, ports in zip(pages, shown, strict=True):
        own = {port: str(next(free)) for port in ports}
        replaced.append(
            [(_replaced(command, own), _replaced(output, own)) for command, output in steps]
        )
    return replaced


def _replaced(text: str, ports: dict[str, str]) -> str:
    return PORT.sub(lambda found: ports[found[0]], text)


class Played(NamedTuple):
    """A page that is being played in a shell: its steps, and what each of them prints."""

    steps: list[tuple[str, str]]
    shell: subprocess.Popen[str]
    printed: Future[list[str]]


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Played]]:
    """The pages of the tests that were chosen, all at once: most of the time a page waits."""
    chosen = " ".join(item.name for item in request.session.items)
    pages = [page for page in whole_pages() if f"[{page}]" in chosen and not missing_for(page)]
    all_steps = with_free_ports([steps_of(blocks_of(page)) for page in pages])
    with ThreadPoolExecutor(max(1, len(pages))) as pool:
        found = {}
        try:
            for page, steps in zip(pages, all_steps, strict=True):
                commands = [command for command, _ in steps]
                shell = begin_session(commands, tmp_path_factory.mktemp("page"))
                found[page] = Played(steps, shell, pool.submit(printed_in, shell, SECONDS_MAX))
            yield found
        finally:
            for each in found.values():
                if not each.printed.done():  # of a test that was not run after all
                    kill_with_jobs(each.shell)


def blocks_of(page: str) -> list[Block]:
    return [block for block in BLOCKS if block.page == page and is_of_session(block)]


def missing_for(page: str) -> str:
    """A program that a page needs and that is not installed; empty if all are there."""
    for found in NEEDS.finditer((ROOT / page).read_text("utf-8")):
        for program in re.split(r",\s*", found["programs"]):
            if shutil.which(program) is None:
                return program
    return ""


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.timeout(SECONDS_MAX + 20)
@pytest.mark.parametrize("page", whole_pages())
def test_what_a_page_shows_from_top_to_bottom_happens(page: str, played: dict[str, Played]) -> None:
    if program := missing_for(page):
        pytest.skip(f"{program} is not installed (used by {page})")
    assert not any(block.not_run for block in blocks_of(page))

    actual = played[page].printed.result()

    for (command, expected), output in zip(played[page].steps, actual, strict=True):
        assert matches(expected, output), f"$ {command}\n{output}"


def test_a_page_is_played_in_one_folder_with_its_files_and_free_ports(tmp_path: Path) -> None:
    page = [
        Block("page.md", 1, "ini", "it's = 9092\n", "", "a.ini"),
        Block("page.md", 5, "console", "$ cat a.ini > b\n$ cd /\n", ""),
        Block("page.md", 9, "console", "$ pwd; cat $OLDPWD/b\n/\nit's = 9092\n", ""),
    ]

    [steps] = with_free_ports([steps_of(page)])
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
