"""The help page about the current view and the keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.segment import Segment

from ..drawing import _palette as palette
from ..drawing._cells import wrapped
from ..drawing._pen import Line, Pen
from ._view import View

KEYS: Final = (
    ("j k, arrows", "move the cursor"),
    ("PgUp PgDn, ctrl-u ctrl-d", "move by pages"),
    ("g G, Home End", "first row, last row"),
    ("enter", "open the selected row"),
    ("esc, backspace", "clear the filter, or go back"),
    ("tab, shift-tab", "next view, previous view"),
    ("`", "the view shown before"),
    ("/", "filter: rows with all of these words; !word excludes"),
    ("s, r", "sort by the next column; reverse the order"),
    ("p, space", "pause: freeze the screen while data is still read"),
    ("+ -", "refresh more often, less often"),
    ("x", "export the view: .svg, .html, .txt, .json, .csv"),
    ("m", "mouse on or off; while it is off, it selects text"),
    (":", "a command: a view, an action, sort, filter, export, refresh, quit; tab completes"),
    ("ctrl-l", "redraw the screen"),
    ("q, ctrl-c", "quit"),
)
_KEY_CELLS: Final = 26


def help_lines(
    view: View, views: Sequence[View], alarms: Sequence[str], pen: Pen
) -> Iterator[Line]:
    """Return the lines of the help page: problems, the current view, the keys and all views."""
    if alarms:
        yield pen.rule("Problems")
        for alarm in alarms:
            for line in wrapped(f"! {alarm}", pen.width - 2, pen.glyphs):
                yield [Segment(f" {line}", palette.ALARM)]
        yield []
    yield pen.rule(view.title)
    for line in wrapped(view.help, pen.width - 2, pen.glyphs):
        yield [Segment(f" {line}")]
    if view.actions:
        yield []
        for action in view.actions:
            yield from _row(action.key, f"{action.label} (:{action.name})", pen)
    for link in view.links:
        yield from _row(link.key, f"{link.label} (:{link.name})", pen)
    yield []
    yield pen.rule("Keys")
    for key, meaning in KEYS:
        yield from _row(key, meaning, pen)
    yield []
    yield pen.rule("Views")
    for each in views:
        yield from _row(each.key, f"{each.title} (:{each.name})", pen)
    yield []
    yield [Segment(" esc closes this page", palette.DIM)]


def _row(key: str, meaning: str, pen: Pen) -> Iterator[Line]:
    first, *others = wrapped(meaning, pen.width - _KEY_CELLS - 2, pen.glyphs)
    yield [Segment(" "), pen.cell(key, _KEY_CELLS, palette.KEY), Segment(first)]
    for line in others:
        yield [Segment(" " * (_KEY_CELLS + 1)), Segment(line)]
