"""What README.md and docs/ show is what happens.

* A block of ``python`` is a whole program: it runs in a fresh interpreter, in an empty folder, and
  must end with exit status 0 within its time.
* A block of ``console`` is a terminal session: its lines beginning with ``$ `` run in one shell, in
  an empty folder, and each must succeed. The lines below a command are what it prints, where
  ``...`` stands for anything, also for whole lines; without such lines any output will do.
* A block that cannot run here says why to the reader of the source, in a comment directly above it:
  ``<!-- not run: needs a cluster of three brokers -->``.
* A page whose sessions and files build upon one another says so in a comment of its own,
  ``<!-- one session -->``; ``tests/docs/test_whole_pages.py`` runs it.
* Every other language (``sh``, ``ini``, ``text``) is not run.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import trionet
from support.java import NO_JAVA, has_java

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
SECONDS_MAX = 60
#: A session of Spark takes ten seconds to start, and five times that beside other work.
SPARK_SECONDS_MAX = 280

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)")
NOT_RUN = re.compile(r"^\s*<!-- not run: (?P<reason>\S.*) -->$")
FILE = re.compile(r"^\s*<!-- file: (?P<name>[\w.-]+) -->$")
ONE_SESSION = "<!-- one session -->"
LINK = re.compile(r"\[[^\]\[]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"^#+ +(?P<title>.+)$")
#: Between the outputs of two commands of a session.
MARK = "--- next command ---"


class Block(NamedTuple):
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    not_run: str
    file: str = ""  # its name, if it is a file of its page's session


def blocks(page: str, text: str) -> Iterator[Block]:
    lines = enumerate(text.splitlines(), 1)
    before = ""
    for number, line in lines:
        if opened := FENCE.match(line):
            indent = len(opened["indent"])
            body = []
            for _, inner in lines:
                if inner.strip() == "```":
                    break
                body.append(inner[indent:] + "\n")
            reason = NOT_RUN.match(before)
            not_run = reason["reason"] if reason else ""
            file = FILE.match(before)
            name = file["name"] if file else ""
            yield Block(page, number, opened["language"], "".join(body), not_run, name)
        before = line if line.strip() else before


BLOCKS = [
    block
    for page in PAGES
    for block in blocks(page.relative_to(ROOT).as_posix(), page.read_text("utf-8"))
]


def in_language(language: str) -> list[object]:
    return [
        pytest.param(block, id=f"{block.page}:{block.line}", marks=marks_of(block))
        for block in BLOCKS
        if block.language == language and not is_of_session(block)
    ]


def is_of_session(block: Block) -> bool:
    """Whether a block is a part of a page that runs as a whole."""
    is_part = block.language == "console" or bool(block.file)
    return is_part and ONE_SESSION in (ROOT / block.page).read_text("utf-8").splitlines()


def marks_of(block: Block) -> list[pytest.MarkDecorator]:
    skip = [pytest.mark.skip(reason=block.not_run)] if block.not_run else []
    spark = [pytest.mark.spark, pytest.mark.timeout(SPARK_SECONDS_MAX)] if in_spark(block) else []
    return [pytest.mark.slow, *skip, *spark]


def in_spark(block: Block) -> bool:
    """Whether a program starts a session of Spark."""
    return "SparkSession.builder" in block.text


def run(command: list[str], text: str, folder: Path, seconds_max: int = SECONDS_MAX) -> str:
    """What a program of a page prints; it ends, and ends well."""
    return printed_by(begin(command, folder), text, seconds_max)


def begin(command: list[str], folder: Path) -> subprocess.Popen[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONWARNINGS": "default"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def printed_by(program: subprocess.Popen[str], text: str, seconds_max: int) -> str:
    with program:
        try:
            printed, _ = program.communicate(text, seconds_max)
        except subprocess.TimeoutExpired:
            kill_with_jobs(program)
            printed, _ = program.communicate()
            pytest.fail(f"not over after {seconds_max} s\n{printed}")
        finally:
            if program.poll() is None:
                kill_with_jobs(program)
    assert program.returncode == 0, f"exit status {program.returncode}\n{printed}"
    return printed


def kill_with_jobs(program: subprocess.Popen[str]) -> None:
    """A shell alone would leave its jobs behind, whose output would be waited for."""
    os.killpg(program.pid, signal.SIGKILL)


@pytest.mark.parametrize("block", in_language("python"))
def test_a_program_on_a_page_runs(block: Block, tmp_path: Path) -> None:
    if in_spark(block) and not has_java():
        pytest.skip(NO_JAVA)
    seconds_max = SPARK_SECONDS_MAX if in_spark(block) else SECONDS_MAX
    run([sys.executable, "-"], block.text, tmp_path, seconds_max)


@pytest.mark.parametrize("block", in_language("console"))
def test_a_session_on_a_page_happens_as_shown(block: Block, tmp_path: Path) -> None:
    shown = session(block.text)
    assert shown, "a console block shows at least one command, behind `$ `"

    actual = play([command for command, _ in shown], tmp_path)

    for (command, expected), output in zip(shown, actual, strict=True):
        assert matches(expected, output), f"$ {command}\n{output}"


def session(text: str) -> list[tuple[str, str]]:
    """The commands of a session, each with the output that is shown below it."""
    steps: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], ""))
        elif steps and steps[-1][0].endswith("\\"):
            steps[-1] = (f"{steps[-1][0]}\n{line}", "")
        elif steps:
            steps[-1] = (steps[-1][0], f"{steps[-1][1]}{line}\n")
    return steps


def play(commands: list[str], folder: Path, seconds_max: int = SECONDS_MAX) -> list[str]:
    """What each command prints; all of them run in one shell, whose jobs end with it."""
    return printed_in(begin_session(commands, folder), seconds_max)


def begin_session(commands: list[str], folder: Path) -> subprocess.Popen[str]:
    script = f"\necho '{MARK}'\n".join(commands)
    stop_jobs = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"
    return begin(["bash", "-c", f"set -e\n{stop_jobs}\n{script}"], folder)


def printed_in(shell: subprocess.Popen[str], seconds_max: int) -> list[str]:
    return printed_by(shell, "", seconds_max).split(f"{MARK}\n")


def matches(expected: str, output: str) -> bool:
    """Whether a command printed what is shown, ``...`` standing for anything."""
    if not expected.strip():
        return True
    pattern = r"[\s\S]*".join(re.escape(part) for part in expected.strip().split("..."))
    return re.fullmatch(pattern, output.strip()) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    without_code = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    targets = [found["target"] for found in LINK.finditer(without_code)]

    broken = [target for target in targets if not resolves(page, target)]

    assert [] == broken


def resolves(page: Path, target: str) -> bool:
    if "://" in target or target.startswith("mailto:"):
        return True
    name, _, anchor = target.partition("#")
    file = page.parent / name if name else page
    if not file.exists() or not file.resolve().is_relative_to(ROOT):
        return False
    return not anchor or (file.suffix == ".md" and anchor in anchors(file.read_text("utf-8")))


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as the usual renderers make them."""
    titles = [found["title"] for line in text.splitlines() if (found := HEADING.match(line))]
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", trionet.__all__)
def test_a_public_name_is_explained_in_the_reference(name: str) -> None:
    reference = (ROOT / "docs" / "reference").rglob("*.md")

    assert any(re.search(rf"`{name}\b", page.read_text("utf-8")) for page in reference)


def test_a_block_knows_its_language_its_line_its_file_and_why_it_is_not_run() -> None:
    text = "Text\n\n```python\na\n\nb\n```\n\n<!-- not run: needs luck -->\n```console\n$ x\n```\n"
    text += "<!-- file: a.ini -->\n```ini\nx=1\n```\n"

    actual = list(blocks("page.md", text))

    assert [
        Block("page.md", 3, "python", "a\n\nb\n", ""),
        Block("page.md", 10, "console", "$ x\n", "needs luck"),
        Block("page.md", 14, "ini", "x=1\n", "", "a.ini"),
    ] == actual


def test_a_session_is_commands_with_their_output(tmp_path: Path) -> None:
    text = "$ echo one && echo two\none\ntwo\n$ false || cat\n$ echo a \\\n  b\na b\n"

    shown = session(text)
    actual = play([command for command, _ in shown], tmp_path)

    assert [
        ("echo one && echo two", "one\ntwo\n"),
        ("false || cat", ""),
        ("echo a \\\n  b", "a b\n"),
    ] == shown
    assert ["one\ntwo\n", "", "a b\n"] == actual


def test_a_session_with_a_failing_command_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="exit status 1"):
        play(["echo before", "false", "echo after"], tmp_path)


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        ("", "anything\n", True),
        ("one\n", "one\n", True),
        ("one\n", "one\ntwo\n", False),
        ("port ...\n", "port 9092\n", True),
        ("one\n...\nthree\n", "one\n2\n2\nthree\n", True),
        ("one\n...\nthree\n", "one\ntwo\n", False),
    ],
)
def test_three_dots_stand_for_anything(expected: str, output: str, same: bool) -> None:
    assert same is matches(expected, output)
