"""The demo in a terminal."""

from __future__ import annotations

import re
from typing import Final

from support.flights_demo import COMMAND
from support.process_list import children_of, commands_with
from support.terminal import Terminal

ENDED: Final = "Verdict: consumed == produced, record by record, for all"


def start(screen: Terminal, *options: str, variables: tuple[str, ...] = ()) -> str:
    """Start the demo and wait for its page; the broker's address.

    Args:
        screen: with a shell that waits for a command.
        options: of the demo.
        variables: ``NAME=TEXT``, for its environment.
    """
    screen.run(["env", *variables, *COMMAND, *options])
    text = screen.wait_until(lambda text: "Replay" in text and "consumer-2" in text, "the group")
    found = re.search(r"127\.0\.0\.1:\d+", text)
    assert found is not None
    return found[0]


def process_of(screen: Terminal) -> int:
    """The process of the demo itself."""
    shell = int(screen.tmux("display-message", "-p", "#{pane_pid}"))
    [pid] = [pid for pid, command in children_of(shell).items() if "-m demo.flights" in command]
    return pid


def assert_ended(screen: Terminal, modes: str, address: str) -> str:
    """It has ended well, and nothing is left of it; what is on the screen."""
    text = screen.wait_for(ENDED)
    screen.wait_for_prompt()
    screen.type("echo status=$?")
    screen.press("Enter")
    screen.wait_for("status=0")
    assert "Replayed the flights up to 2013-" in text
    assert modes == screen.modes()
    assert not screen.has_alternate_screen()
    assert screen.shows_cursor()
    assert [] == commands_with(address)
    return text
