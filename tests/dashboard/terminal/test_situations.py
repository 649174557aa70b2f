"""Every view of a dashboard in whatever happens to its terminal, its broker and itself.

``python3 tests terminal`` runs them.
"""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from typing import Final

import attrs
import pytest

from support import failing_dashboard
from support.crowded_broker import crowded_broker
from support.dashboard_places import PLACES, TABS, Place, prepare
from support.processes import SAME_TRIONET
from support.pty_program import pty_program
from support.seen_dashboard import (
    DASHBOARD,
    FOOT,
    assert_restored,
    start,
    status,
)
from support.terminal import Terminal, needs_tmux, terminal
from trionet.dashboard.drawing._cells import ASCII, UNICODE, Glyphs

pytestmark = [needs_tmux, pytest.mark.slow, pytest.mark.terminal]

each_view = pytest.mark.parametrize("place", TABS, ids=lambda place: place.name)

#: What may be in a sequence where there are no colours: bold, dim, underlined, reversed, and their
#: ends.
COLOURLESS: Final = {0, 1, 2, 4, 7, 22, 24, 27, 39, 49}
ENDINGS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT)
#: Nobody else is needed where a broker is only there to be killed.
FEW: Final = 3
#: How wide a window becomes so that a view fails that must not be narrow.
NARROW: Final = (failing_dashboard.COLUMNS_MIN - 1, 30)


def show(screen: Terminal, server: list[str], place: Place) -> str:
    """Start a dashboard at a view; gives the settings of the line from before."""
    modes = start(screen, [*server, "--view", place.name, "--mouse"], place.text)
    place.wait(screen)
    return modes


def wait_for_size(screen: Terminal, columns: int, lines: int) -> None:
    """Return when a frame fills so many cells."""

    def fills(text: str) -> bool:
        shown = text.split("\n")
        return len(shown[0]) == columns - 1 and shown[lines - 1].endswith(FOOT)

    screen.wait_until(fills, f"a frame of {columns} x {lines}")


# Every page in every kind of terminal.


@attrs.frozen
class Kind:
    """A kind of terminal.

    Attributes:
        size: its columns and lines.
        env: what the dashboard is told of it.
        glyphs: the characters that it has.
    """

    size: tuple[int, int]
    env: dict[str, str] = attrs.Factory(dict)
    glyphs: Glyphs = UNICODE


KINDS: Final = {
    "small": Kind((60, 15)),
    "large": Kind((200, 60)),
    "without colours": Kind((120, 40), {"NO_COLOR": "1"}),
    "without Unicode": Kind((120, 40), {"LC_ALL": "C"}, ASCII),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_page_is_there_in_a_terminal(kind: Kind, server: list[str]) -> None:
    with terminal(*kind.size, {**SAME_TRIONET, **kind.env}) as screen:
        start(screen, server)
        wait_for_size(screen, *kind.size)
        prepare(screen)
        for place in PLACES:
            place.go(screen, kind.glyphs)
            text = place.wait(screen, kind.glyphs)
            if kind.glyphs.is_ascii:
                assert text.isascii()
                assert "?" not in text.replace("? help", "")  # what has no characters in ASCII
            if "NO_COLOR" in kind.env:
                assert {1, 7} <= attributes(screen) <= COLOURLESS
        screen.press("q")
        assert "0" == status(screen)


def attributes(screen: Terminal) -> set[int]:
    """The numbers in the sequences that switch colours and the like."""
    found = re.findall(r"\x1b\[([\d;]*)m", screen.tmux("capture-pane", "-p", "-e"))
    return {int(number) for each in found for number in each.split(";") if number}


# What happens to the terminal.


@each_view
def test_a_view_is_there_again_after_other_sizes_and_after_a_stop(
    screen: Terminal, server: list[str], place: Place
) -> None:
    modes = show(screen, server, place)

    for columns, lines in ((60, 15), (200, 60), (80, 24)):
        screen.resize(columns, lines)
        wait_for_size(screen, columns, lines)
        place.wait(screen)
    screen.resize(59, 15)
    screen.wait_for("This screen has 59 x 15 cells")
    screen.resize(120, 40)
    wait_for_size(screen, 120, 40)
    place.wait(screen)
    screen.press("C-z")
    screen.wait_for_prompt()
    assert_restored(screen, modes)
    screen.resize(100, 30)
    screen.run(["fg"])
    wait_for_size(screen, 100, 30)
    place.wait(screen)
    assert screen.has_alternate_screen()
    assert screen.reports_mouse()
    assert not screen.shows_cursor()

    screen.press("q")
    assert "0" == status(screen)
    assert_restored(screen, modes)


@each_view
def test_a_view_goes_on_when_its_terminal_is_read_again(server: list[str], place: Place) -> None:
    command = [*DASHBOARD, *server, "--view", place.name]
    with pty_program(command, SAME_TRIONET) as program:
        program.wait_for(place.text)
        assert not program.has_its_line_back()
        program.stall()
        program.press("?")
        mark = program.mark
        program.go_on()
        program.wait_for(f"── {place.title()} ──", mark)

        program.stall()
        program.press("?q")  # nobody sees what the keys do, but they are taken

        assert 0 == program.process.wait(30)
        assert program.has_its_line_back()


@each_view
def test_signals_that_end_a_view_give_the_terminal_back(
    screen: Terminal, server: list[str], place: Place
) -> None:
    for number in ENDINGS:
        modes = show(screen, server, place)

        screen.kill_program(number)

        assert str(128 + number) == status(screen)
        assert_restored(screen, modes)
    assert "Traceback" not in screen.history()


# What happens to the broker, and to the dashboard itself.


@each_view
def test_a_view_of_a_broker_that_was_killed_stays(
    screen: Terminal, tmp_path: Path, place: Place
) -> None:
    with crowded_broker(tmp_path, FEW) as (server, broker):
        modes = show(screen, server, place)

        broker.kill()

        header = re.compile(r"! not live for \d+")
        screen.wait_until(lambda text: header.search(text.split("\n")[0]), "that it is not live")
        place.wait(screen)
        screen.wait_until(lambda text: not re.search(r"\d/s", text), "no rates")
        screen.press("q")
        assert "0" == status(screen)
    assert_restored(screen, modes)
    assert "Traceback" not in screen.history()


@each_view
def test_faults_of_a_view_and_of_a_source_are_reported_when_the_terminal_is_given_back(
    screen: Terminal, server: list[str], place: Place
) -> None:
    modes = screen.modes()
    screen.run([sys.executable, failing_dashboard.__file__, *server, "--view", place.name])
    place.wait(screen)

    screen.resize(*NARROW)
    screen.wait_for(f"! The view {place.name} failed; see the log.")
    other = TABS[TABS.index(place) - 1]
    screen.press("BTab")
    other.wait(screen)
    screen.resize(120, 40)
    screen.press("Tab")
    place.wait(screen)
    screen.press("+")

    assert "1" == status(screen)
    assert_restored(screen, modes)
    told = screen.history()
    assert f"view {place.name} failed\n" in told
    assert f"ValueError: {place.name} cannot be so narrow\n" in told
    assert "ValueError: a source that fails\n" in told
    assert "ExceptionGroup" not in told
