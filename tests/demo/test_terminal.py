"""The demo in a terminal, as a user sees it there: the dashboard, and the verdict below it."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator

import pytest

from demo.dataset import data_file
from support.process_list import children_of, commands_with
from support.processes import SAME_TRIONET
from support.terminal import Terminal, needs_tmux, terminal

try:
    data_file()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)

pytestmark = [needs_tmux, pytest.mark.slow, pytest.mark.interop]

COMMAND = [sys.executable, "-m", "demo.flights", "--no-spark"]
ENDED = "Verdict: consumed == produced, record by record, for all"


@pytest.fixture
def screen() -> Iterator[Terminal]:
    with terminal(120, 40, SAME_TRIONET) as found:
        yield found


def start(screen: Terminal, *options: str, variables: tuple[str, ...] = ()) -> str:
    """Start the demo and wait for its page; the broker's address."""
    screen.run(["env", *variables, *COMMAND, *options])
    text = screen.wait_until(lambda text: "Replay" in text and "consumer-2" in text, "the group")
    found = re.search(r"127\.0\.0\.1:\d+", text)
    assert found is not None
    return found[0]


def assert_ended(screen: Terminal, modes: str, address: str) -> None:
    """It has ended well, and nothing is left of it."""
    text = screen.wait_for(ENDED)
    screen.wait_for_prompt()
    screen.type("echo status=$?")
    screen.press("Enter")
    screen.wait_for("status=0")
    assert "Replayed the flights up to 2013-01-" in text
    assert modes == screen.modes()
    assert not screen.has_alternate_screen()
    assert screen.shows_cursor()
    assert [] == commands_with(address)


def test_q_ends_it_cleanly_from_any_page(screen: Terminal) -> None:
    modes = screen.modes()
    address = start(screen)
    screen.press("6")
    screen.wait_for("flights-check")
    screen.press("2")
    screen.wait_for("flights-replay")
    screen.press("f")
    screen.wait_for("Replay", "generation")
    screen.press("q")

    assert_ended(screen, modes, address)


def test_ctrl_c_ends_it_as_well(screen: Terminal) -> None:
    modes = screen.modes()
    address = start(screen)
    screen.press("C-c")

    assert_ended(screen, modes, address)


def test_sigterm_ends_it_as_well(screen: Terminal) -> None:
    modes = screen.modes()
    address = start(screen)
    shell = int(screen.tmux("display-message", "-p", "#{pane_pid}"))
    [pid] = [pid for pid, command in children_of(shell).items() if "-m demo.flights" in command]
    os.kill(pid, signal.SIGTERM)

    assert_ended(screen, modes, address)


def test_it_ends_by_itself_when_its_time_is_over(screen: Terminal) -> None:
    modes = screen.modes()
    address = start(screen, "--for", "3")

    assert_ended(screen, modes, address)


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(screen: Terminal) -> None:
    screen.run(["env", "TERM=dumb", *COMMAND, "--for", "1.5"])
    text = screen.wait_for(ENDED)

    assert re.search(r"\d s  2013-01-0\d \d\d:\d\d  produced \d+", text)
    assert "Replay ─" not in text
