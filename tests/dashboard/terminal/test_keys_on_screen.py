"""Every key in every view of a dashboard in a terminal; ``python3 tests terminal`` runs them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from support.dashboard_places import PLACES, TABS, Place, prepare
from support.seen_dashboard import (
    BODY,
    chosen_line,
    start,
    title,
    wait_for_chosen,
    wait_for_title,
)
from support.terminal import Terminal, needs_tmux
from trionet.dashboard.views import VIEWS

pytestmark = [needs_tmux, pytest.mark.slow, pytest.mark.terminal]

LINES = 40
#: Keys that move forth and back, and by how many rows of a screen.
MOVES: dict[tuple[str, str], Callable[[int], int]] = {
    ("j", "k"): lambda height: 1,
    ("Down", "Up"): lambda height: 1,
    ("PageDown", "PageUp"): lambda height: height - 1,
    ("C-f", "C-b"): lambda height: height - 1,
    ("C-d", "C-u"): lambda height: (height - 1) // 2,
    ("G", "g"): lambda height: 1 << 30,
    ("End", "Home"): lambda height: 1 << 30,
}
#: The views whose tables have rows here, and how many of them at least.
ROWS = {
    "connections": 50,
    "apis": 5,
    "processors": 3,
    "topics": 60,
    "groups": 60,
    "quotas": 2,
    "closes": 50,
    "pipeline": 5,
    "log": 2,
    "brokers": 1,
    "sessions": 1,
    "transactions": 60,
}
NAMES = [view.name for view in VIEWS]


def shown_rows(screen: Terminal) -> int:
    """How many rows the title reports."""
    number = re.compile(r"  ([\d,]+)(?: of [\d,]+)?(?:  |$)")
    screen.wait_until(lambda _: number.search(title(screen)), "how many rows there are")
    found = number.search(title(screen))
    assert found is not None
    return int(found[1].replace(",", ""))


def test_every_key_in_every_view(screen: Terminal, server: list[str]) -> None:
    start(screen, server)
    screen.press("w")
    screen.wait_for("details off")  # rows have all lines
    for place in TABS:
        press_every_key(screen, place)


def press_every_key(screen: Terminal, place: Place) -> None:
    screen.wait_until(lambda _: place.text in place.go(screen), place.name)
    screen.press("p")
    screen.wait_for("PAUSED: p resumes")  # rows stay where they are
    if place.name in ROWS:
        rows = shown_rows(screen)
        assert ROWS[place.name] <= rows
        move(screen, rows)
        sort(screen)
        filter_rows(screen, place)
        go_in_and_out(screen, place)
    else:
        for keys in MOVES:
            screen.press(*keys)
    ask_for_help(screen, place)
    type_commands(screen, place)
    change_settings(screen)
    redraw(screen)
    screen.press("Space")
    screen.wait_until(lambda text: text.split("\n")[0].endswith(" live"), "live again")
    wait_for_title(screen, place.steps[0][1])


def move(screen: Terminal, rows: int) -> None:
    first = chosen_line(screen)
    assert first is not None
    height = LINES - 1 - BODY - first
    for (forth, back), count in MOVES.items():
        screen.press(forth)
        wait_for_chosen(screen, first + min(count(height), rows - 1, height - 1))
        screen.press(back)
        wait_for_chosen(screen, first)


def sort(screen: Terminal) -> None:
    before = title(screen)
    screen.press("s")
    screen.wait_until(lambda _: title(screen) != before and "  by " in title(screen), "sorted")
    sorted_by = title(screen).partition("  as of ")[0]  # the age of what is paused
    mark, other = ("▲", "▼") if "▲" in sorted_by else ("▼", "▲")
    screen.press("r")
    wait_for_title(screen, sorted_by.replace(mark, other))
    screen.press("r")
    wait_for_title(screen, sorted_by)
    screen.press("g")


def filter_rows(screen: Terminal, place: Place) -> None:
    screen.press("/")
    screen.type("no such row")
    screen.wait_for("/no such row", "No row matches 'no such row'.")
    screen.press("Enter")
    screen.wait_for("filter no such row", "q quit")
    screen.press("BSpace")
    screen.wait_until(lambda text: "filter no such row" not in text, "all rows")
    screen.press("/")
    screen.type("x")
    screen.wait_for("filter x")
    screen.press("Escape")
    screen.wait_until(lambda text: "filter x" not in text, "all rows again")
    wait_for_title(screen, place.steps[0][1])


def go_in_and_out(screen: Terminal, place: Place) -> None:
    has_inside = place.name not in {"processors", "quotas", "closes", "sessions"}
    for back in ("Escape", "BSpace"):
        screen.press("Enter")
        if has_inside:
            wait_for_title(screen, f"{place.steps[0][1]} → ")
            screen.press(back)
        screen.wait_until(lambda _: "→" not in title(screen), "the view again")
        wait_for_title(screen, place.steps[0][1])


def ask_for_help(screen: Terminal, place: Place) -> None:
    heading = f"── {place.steps[0][1]} ──"
    for key, leave in (("?", "?"), ("F1", "F1"), ("?", "BSpace"), ("?", "Enter"), ("?", "Escape")):
        screen.press(key)
        screen.wait_for(heading)
        screen.press("PageDown", "PageUp", "j", "k", "Down", "Up")
        screen.wait_for(heading)
        screen.press(leave)
        screen.wait_until(lambda text: heading not in text, "the view again")


def type_commands(screen: Terminal, place: Place) -> None:
    screen.press("x")
    screen.wait_for(f":export {place.name}.svg")
    screen.press("Escape")
    screen.wait_for("q quit")
    screen.press(":")
    screen.type("refre")
    screen.press("Tab")
    screen.type("12")
    screen.wait_for(":refresh 12")
    screen.press("BSpace", "BSpace", "Left", "Right", "Home", "End", "C-u")
    screen.wait_until(lambda text: text.rstrip("\n").split("\n")[-1].strip() == ":", "nothing")
    screen.press("BSpace")
    screen.wait_for("q quit")
    screen.press(":")
    screen.type(place.name)
    screen.press("Enter")
    wait_for_title(screen, place.steps[0][1])
    screen.press("Tab")
    names = [view.title for view in VIEWS]
    at = NAMES.index(place.name)
    wait_for_title(screen, names[(at + 1) % len(names)])
    screen.press("`")
    wait_for_title(screen, names[at])
    screen.press("BTab")
    wait_for_title(screen, names[at - 1])
    screen.press("`")
    wait_for_title(screen, names[at])


def change_settings(screen: Terminal) -> None:
    screen.press("+")
    screen.wait_for("refresh every 0.5 s")
    screen.press("-")
    screen.wait_for("refresh every 1 s")
    screen.press("=", "=")
    screen.wait_for("refresh every 0.2 s")
    screen.press("-", "-")
    screen.wait_for("refresh every 1 s")
    screen.press("m")
    screen.wait_for("mouse off")
    assert not screen.reports_mouse()
    screen.press("m")
    screen.wait_for("mouse on")
    assert screen.reports_mouse()


def redraw(screen: Terminal) -> None:
    """Something else has written across the screen."""
    tty = screen.tmux("display-message", "-p", "#{pane_tty}").strip()
    Path(tty).write_text("\x1b[20;1Hsomething else\x1b[1;1Hwrites")
    screen.wait_for("something else", "writes")
    screen.press("C-l")
    screen.wait_until(lambda text: "something else" not in text, "the frame again")
    assert screen.screen()[0].startswith(" trionet")


def test_every_page_that_another_opens(screen: Terminal, server: list[str]) -> None:
    start(screen, server)
    prepare(screen)
    for place in PLACES:
        text = place.go(screen)
        screen.wait_for(place.text)
        assert "The view " not in text
        screen.press("?")
        screen.wait_for("── Keys ──")
        screen.press("?")
        screen.wait_until(lambda text: "── Keys ──" not in text, "the page again")
        place.wait(screen)
        if len(place.steps) > 1:
            screen.press("Escape")
            wait_for_title(screen, place.steps[-2][1].replace(">", "→"))


def test_lines_that_do_not_fit_are_scrolled(screen: Terminal, server: list[str]) -> None:
    start(screen, server)
    screen.resize(60, 15)
    screen.wait_until(lambda text: text.split("\n")[14].endswith("q quit"), "15 lines")
    screen.press("p")
    screen.wait_for("PAUSED")
    top = screen.screen()[BODY:14]
    for forth, back in MOVES:
        screen.press(forth)
        screen.wait_until(lambda _: screen.screen()[BODY:14] != top, "another part")
        screen.press(back)
        screen.wait_until(lambda _: screen.screen()[BODY:14] == top, "the beginning")
