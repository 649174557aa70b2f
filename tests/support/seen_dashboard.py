"""A dashboard in a terminal: started, looked at, and left, as somebody in front of it does."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Sequence
from typing import Final

from support.terminal import Terminal

#: What is on the screen as long as a dashboard has it.
FOOT: Final = "q quit"
DASHBOARD: Final = [sys.executable, "-m", "trionet", "dashboard"]
#: The first line of a view, below the header, the tabs and the title.
BODY: Final = 3
_STYLE: Final = re.compile(r"\x1b\[([\d;]*)m")
_QUESTIONS: Final = itertools.count()


def start(screen: Terminal, arguments: Sequence[str], *expected: str) -> str:
    """Start a dashboard; gives the settings of the line from before.

    Args:
        screen: of a shell that waits for a command.
        arguments: of the dashboard.
        expected: what is on the screen then; by default what the overview has.
    """
    before = screen.modes()
    screen.run([*DASHBOARD, *arguments])
    screen.wait_for(FOOT, *(expected or ("Overview", "Traffic")))
    return before


def status(screen: Terminal) -> str:
    """What the shell says of the command that has ended."""
    screen.wait_for_prompt()
    name = f"status-{next(_QUESTIONS)}"  # an earlier response may still be there
    screen.type(f"echo {name}=$?")
    screen.press("Enter")
    answer = re.compile(rf"^{name}=(\d+)$", re.MULTILINE)
    found = answer.search(screen.wait_until(answer.search, "a status"))
    assert found is not None
    return found[1]


def assert_restored(screen: Terminal, modes: str) -> None:
    """The terminal is as it was when its line had these settings."""
    assert not screen.has_alternate_screen()
    assert screen.shows_cursor()
    assert not screen.reports_mouse()
    assert modes == screen.modes()


def title(screen: Terminal) -> str:
    """The line that says which view this is, of which rows."""
    return screen.screen()[BODY - 1].strip()


def wait_for_title(screen: Terminal, text: str) -> str:
    """The screen as soon as the title begins so."""

    def has_it(shown: str) -> bool:
        lines = shown.split("\n")
        return len(lines) > BODY and lines[BODY - 1].strip().startswith(text)

    return screen.wait_until(has_it, f"the title {text!r}")


def chosen_line(screen: Terminal) -> int | None:
    """Which line below the title is the bar of the chosen row; 0 is the first one."""
    is_reversed = False
    lines = screen.tmux("capture-pane", "-p", "-e").split("\n")
    for number, line in enumerate(lines):
        begins_reversed, rest = is_reversed, line
        # What is switched on at the end of a line still holds for the next.
        while (found := _STYLE.match(rest)) is not None:
            begins_reversed = _is_reversed(found[1], begins_reversed)
            rest = rest[found.end() :]
        if number >= BODY and begins_reversed and rest:
            return number - BODY
        for style in _STYLE.findall(line):
            is_reversed = _is_reversed(style, is_reversed)
    return None


def _is_reversed(style: str, before: bool) -> bool:
    for number in style.split(";"):
        if number in {"", "0", "27"}:
            before = False
        elif number == "7":
            before = True
    return before


def wait_for_chosen(screen: Terminal, line: int) -> None:
    """Return when the bar is on this line below the title."""
    screen.wait_until(lambda _: chosen_line(screen) == line, f"the chosen row in line {line}")
