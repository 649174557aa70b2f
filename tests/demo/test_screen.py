"""The demo in a terminal, as a user sees it there: tmux is the terminal."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.dataset import data_file
from support.process_list import commands_with

ROOT = Path(__file__).resolve().parents[2]
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
#: When this has been written, the frame above it is complete.
SECOND_FRAME = r"(?s)Produced .*Produced +[1-9]"
FRAME_BEGINS = "trionet broker at 127.0.0.1:"
#: The lines of a frame begin with these.
LABELS = [
    "trionet broker at",
    "New York",
    "Produced",
    "Consumed",
    "End to end",
    "Requests/s",
    "Network",
    "",
    "Broker's loop",
    "Log",
    "Ctrl-C ends it.",
]

try:
    data_file()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)
if shutil.which("tmux") is None:
    pytest.skip("tmux is not installed", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.interop]


class Terminal:
    """A shell in a tmux of its own."""

    def __init__(self, folder: Path, columns: int, rows: int) -> None:
        self._tmux = ["tmux", "-S", str(folder / "socket"), "-f", os.devnull]
        self._fifo = folder / "written"
        os.mkfifo(self._fifo)
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "PS1": "$ "}
        environment.pop("TMUX", None)
        size = ["-x", str(columns), "-y", str(rows)]
        self._call("new-session", "-d", *size, "-c", str(ROOT), "sh", env=environment)
        self._call("pipe-pane", f"exec cat > '{self._fifo}'")
        self._written = self._fifo.open("rb", buffering=0)

    def type(self, *keys: str) -> None:
        self._call("send-keys", *keys)

    def read_until(self, pattern: str) -> str:
        """What is written from here on, without colours, to where the pattern matches."""
        written, text = b"", ""
        while not re.search(pattern, text):
            data = self._written.read(65536)
            assert data, f"the terminal has gone; it showed:\n{text}"
            written += data
            text = CONTROL.sub("", written.decode(errors="replace"))
        return text

    def screen(self) -> list[str]:
        """What is to be seen now, without the empty lines at the end."""
        lines = self._call("capture-pane", "-p").rstrip().splitlines()
        return [line.rstrip() for line in lines]

    def close(self) -> None:
        self._call("kill-server")
        self._written.close()

    def _call(self, *arguments: str, env: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            [*self._tmux, *arguments], capture_output=True, text=True, check=True, env=env
        )
        return done.stdout


@contextlib.contextmanager
def demo_in_terminal(
    folder: Path, *arguments: str, variables: str = "", columns: int = 110, rows: int = 30
) -> Iterator[Terminal]:
    terminal = Terminal(folder, columns, rows)
    try:
        command = " ".join(
            [variables, sys.executable, "-m", "demo.flights", "--no-spark", *arguments]
        )
        terminal.type(f"clear; {command}; echo status=$?", "Enter")
        yield terminal
    finally:
        terminal.close()


def frame_of(screen: list[str]) -> list[str]:
    """The lines of the one frame on a screen."""
    begins = [number for number, line in enumerate(screen) if line.startswith(FRAME_BEGINS)]
    assert 1 == len(begins), "\n".join(screen)
    return screen[begins[0] : begins[0] + len(LABELS)]


def beginnings(frame: list[str]) -> list[str]:
    """As much of each line as its label is long."""
    return [line[: len(label)] for label, line in zip(LABELS, frame, strict=False)]


def test_in_a_terminal_the_lines_change_in_place_and_the_verdict_follows(tmp_path: Path) -> None:
    with demo_in_terminal(tmp_path, "--for", "3") as terminal:
        written = terminal.read_until(r"status=\d")
        screen = terminal.screen()
    frame = frame_of(screen)
    *_, verdict, status = screen[: screen.index("status=0") + 1]

    assert written.count(FRAME_BEGINS) >= 3
    assert LABELS == beginnings(frame)
    assert re.fullmatch(r"New York      2013-01-0\d \d\d:\d\d", frame[1])
    assert re.search(r"Produce \d+  Fetch \d+|Fetch \d+  Produce \d+", frame[5])
    assert re.fullmatch(r" +[▁▂▃▄▅▆▇█]{60}", frame[7])
    assert verdict.startswith("Verdict: consumed == produced")
    assert "status=0" == status
    assert [] == commands_with(frame[0].split()[3].strip(":"))


def test_ctrl_c_ends_it_with_the_summary_and_the_terminal_as_it_was(tmp_path: Path) -> None:
    with demo_in_terminal(tmp_path) as terminal:
        terminal.read_until(SECOND_FRAME)
        terminal.type("C-c")
        terminal.read_until(r"status=\d")
        screen = terminal.screen()
        terminal.type("stty -a", "Enter")
        settings = terminal.read_until(r"extproc")

    assert "status=0" in screen
    assert any(line.startswith("Verdict: consumed == produced") for line in screen)
    assert "^C" not in "\n".join(screen)
    assert LABELS == beginnings(frame_of(screen))
    assert {"icanon", "echo", "isig"} <= set(settings.split())


def test_a_narrow_and_low_terminal_shows_what_fits(tmp_path: Path) -> None:
    with demo_in_terminal(tmp_path, "--for", "2", columns=40, rows=6) as terminal:
        terminal.read_until(SECOND_FRAME)
        screen = terminal.screen()
        terminal.read_until(r"status=\d")

    assert LABELS[:5] == beginnings(screen)
    assert [] == [line for line in screen if len(line) >= 40]


def test_the_size_is_that_of_the_terminal_not_of_the_environment(tmp_path: Path) -> None:
    with demo_in_terminal(tmp_path, "--for", "1.5", variables="COLUMNS=20 LINES=4") as terminal:
        terminal.read_until(r"status=\d")
        screen = terminal.screen()

    assert LABELS == beginnings(frame_of(screen))
    assert len(frame_of(screen)[0]) > 20


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(tmp_path: Path) -> None:
    with demo_in_terminal(tmp_path, "--for", "1.5", variables="TERM=dumb") as terminal:
        written = terminal.read_until(r"status=\d")

    assert re.search(r"\d s  2013-01-0\d \d\d:\d\d  produced \d+", written)
    assert "New York" not in written
