"""The demo in a terminal, as a user sees it there: the dashboard, and the verdict below it."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.demo_on_screen import ENDED, assert_ended, process_of, start
from support.flights_demo import COMMAND, files_left, own_folders, skip_without_flights
from support.process_list import children_of, commands_with
from support.processes import SAME_TRIONET, all_of_them_end
from support.terminal import Terminal, needs_tmux, terminal

skip_without_flights()
pytestmark = [needs_tmux, pytest.mark.slow, pytest.mark.interop]


@pytest.fixture
def screen() -> Iterator[Terminal]:
    with terminal(120, 40, SAME_TRIONET) as found:
        yield found


def test_q_ends_it_cleanly_from_any_page(screen: Terminal) -> None:
    modes = screen.modes()
    address = start(screen, "--no-spark")
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
    address = start(screen, "--no-spark")
    screen.press("C-c")

    assert_ended(screen, modes, address)


def test_sigterm_ends_it_as_well(screen: Terminal) -> None:
    modes = screen.modes()
    address = start(screen, "--no-spark")
    os.kill(process_of(screen), signal.SIGTERM)

    assert_ended(screen, modes, address)


@pytest.mark.terminal
def test_it_is_suspended_and_goes_on(screen: Terminal) -> None:
    modes = screen.modes()
    address = start(screen, "--no-spark")
    for _ in range(2):
        screen.press("C-z")
        screen.wait_for_prompt()
        assert modes == screen.modes()
        assert not screen.has_alternate_screen()
        screen.run(["fg"])
        screen.wait_for("Replay", "generation")
    screen.press("q")

    assert_ended(screen, modes, address)


@pytest.mark.terminal
def test_a_terminal_that_is_closed_ends_it_and_nothing_is_left(
    screen: Terminal, tmp_path: Path
) -> None:
    address = start(
        screen,
        "--no-spark",
        variables=tuple(f"{key}={text}" for key, text in own_folders(tmp_path).items()),
    )
    pid = process_of(screen)
    started = [pid, *children_of(pid)]
    with all_of_them_end(started):
        screen.tmux("kill-server")

    assert 3 == len(started)
    assert [] == commands_with(address)
    assert [] == files_left(tmp_path)


def test_it_ends_by_itself_when_its_time_is_over(screen: Terminal) -> None:
    modes = screen.modes()
    address = start(screen, "--no-spark", "--for", "3")

    assert_ended(screen, modes, address)


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(screen: Terminal) -> None:
    screen.run(["env", "TERM=dumb", *COMMAND, "--no-spark", "--for", "1.5"])
    text = screen.wait_for(ENDED)

    assert re.search(r"\d s  2013-01-0\d \d\d:\d\d  produced \d+", text)
    assert "Replay ─" not in text
