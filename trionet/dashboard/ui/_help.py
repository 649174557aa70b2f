"""Draws the help page and the list of all views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs
from rich.segment import Segment
from rich.style import Style

from ..drawing import _palette as palette
from ..drawing._cells import Line, Pen, wrapped
from ..drawing._figure_lines import beside
from ..drawing._table import exactly
from ._ui import Ui
from ._view import View

#: What keys do, in groups.
KEYS: Final = (
    (
        ("j k, arrows", "move the cursor"),
        ("PgUp PgDn", "move by pages, as ctrl-b and ctrl-f; by half a page: ctrl-u and ctrl-d"),
        ("g G, Home End", "first row, last row"),
        ("enter", "open the selected row"),
        ("esc, backspace", "clear the filter, or go back"),
    ),
    (
        ("tab, shift-tab", "next view, previous view"),
        ("`", "the view shown before"),
        (".", "all views, to choose one"),
    ),
    (
        ("/", "filter: rows with all of these words; !word excludes"),
        ("s, r", "sort by the next column; reverse the order"),
        ("w", "details of the selected row, on or off"),
        ("p, space", "pause: freeze the screen while data is still read"),
        ("+ -", "refresh more often, less often"),
        ("x", "export the view: .svg, .html, .txt, .json, .csv"),
        (":", "a command: a view, an action, sort, filter, export, refresh, theme, quit"),
        ("m", "mouse on or off"),
        ("ctrl-l", "redraw the screen"),
        ("q, ctrl-c", "quit"),
    ),
)
#: What the mouse does.
MOUSE: Final = (
    ("click", "a tab, a row (again: open it), a column's title, a key at the bottom"),
    ("wheel", "scroll"),
    ("shift and drag", "select text; without shift while the mouse is off"),
)
#: The widths of the names of keys and of titles of columns, and of single keys.
NAME_CELLS: Final = 16
KEY_CELLS: Final = 6
#: The minimum width of the page for two columns.
WIDE: Final = 110
_GAP: Final = 3


def help_lines(
    view: View, views: Sequence[View], alarms: Sequence[str], pen: Pen
) -> Iterator[Line]:
    """Return the lines of the help page: problems, the current view, the keys and all views."""
    if alarms:
        yield pen.rule("Problems")
        for alarm in alarms:
            yield from pen.sentences(f"! {alarm}", palette.ALARM)
        yield []
    if pen.width < WIDE:
        yield from _about(view, pen)
        yield []
        yield from _keys(pen)
        yield []
        yield from _views(views, pen)
        return
    half = attrs.evolve(pen, width=(pen.width - _GAP) // 2)
    left = [*_about(view, half), [], *_views(views, half)]
    yield from beside(left, list(_keys(half)), half.width, _GAP)


def _about(view: View, pen: Pen) -> Iterator[Line]:
    yield pen.rule(view.title)
    yield from pen.sentences(view.help)
    if view.terms:
        yield []
    for title, meaning in view.terms.items():
        yield from _row(title, meaning, pen, NAME_CELLS, palette.BOLD)
    if view.links or view.actions or view.opens:
        yield []
    if view.opens:
        yield from _row("enter", view.opens, pen)
    for link in view.links:
        yield from _row(link.key, f"{link.label} (:{link.name})", pen)
    for action in view.actions:
        yield from _row(action.key, f"{action.label} (:{action.name})", pen)


def _keys(pen: Pen) -> Iterator[Line]:
    yield pen.rule("Keys")
    for index, group in enumerate((*KEYS, MOUSE)):
        if index:
            yield []
        for key, meaning in group:
            yield from _row(key, meaning, pen, NAME_CELLS)


def _views(views: Sequence[View], pen: Pen) -> Iterator[Line]:
    yield pen.rule("Views")
    for each in views:
        yield from _row(each.key, f"{each.title} (:{each.name})", pen)


def _row(
    key: str, meaning: str, pen: Pen, cells: int = KEY_CELLS, style: Style = palette.KEY
) -> Iterator[Line]:
    first, *others = wrapped(meaning, pen.width - cells - 2, pen.glyphs)
    yield [Segment(" "), pen.cell(key, cells, style), Segment(first)]
    for line in others:
        yield [Segment(" " * (cells + 1)), Segment(line)]


#: The width of the titles in the list of views.
TITLE_CELLS: Final = 24


def menu(ui: Ui, pen: Pen, row: int, room: int) -> list[Line]:
    """Draw the list of all views with the chosen one, and register them for the mouse.

    Args:
        ui: the state.
        pen: the pen for drawing.
        row: the first line of the list on the screen.
        room: the number of lines.
    """
    lines: list[Line] = [pen.rule("Views")]
    shown = room - 1
    top = max(0, min(ui.menu_cursor - shown // 2, len(ui.views) - shown))
    for index, view in enumerate(ui.views[top : top + shown], top):
        ui.hits.add_key(row + len(lines), 0, pen.width, view.key)
        title, about = f"{view.title:<{TITLE_CELLS}}", view.help.partition(". ")[0]
        if index == ui.menu_cursor:
            text = Segment(f"  {view.key}  {title} {about}", palette.CURSOR)
            lines.append(exactly([text], pen.width, palette.CURSOR, mark=pen.glyphs.ellipsis))
        else:
            key = Segment(f"  {view.key}  ", palette.KEY)
            lines.append([key, pen.text(title), Segment(" "), pen.text(about, palette.DIM)])
    return lines
