"""The page behind ``?``: what the view shows, and what the keys do; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.segment import Segment

from ..drawing import _palette as palette
from ..drawing._wrapping import wrapped
from ._view import Line, Pen, View

KEYS: Final = (
    ("j k, arrows", "move"),
    ("PgUp PgDn, ctrl-u ctrl-d", "move by pages"),
    ("g G, Home End", "to the first, to the last"),
    ("enter", "what is inside of the chosen row"),
    ("esc, backspace", "take the filter away, or go back"),
    ("tab, shift-tab", "next view, previous view"),
    ("`", "the view before"),
    ("/", "filter: all words must be there; with ! in front, must not"),
    ("s, r", "sort by the next column; turn the order around"),
    ("p, space", "pause: what is seen stays, data goes on coming"),
    ("+ -", "look more often, less often"),
    ("x", "export what is seen: .svg, .html, .txt, .json, .csv"),
    ("m", "let the mouse choose; off at first, so that it marks text"),
    (":", "a command: a view, an action, sort, filter, export, refresh, quit; tab completes"),
    ("ctrl-l", "draw the screen anew"),
    ("q, ctrl-c", "quit"),
)
_KEY_CELLS: Final = 26


def help_lines(
    view: View, views: Sequence[View], alarms: Sequence[str], pen: Pen
) -> Iterator[Line]:
    """The lines of the help: what is wrong, then the view's own."""
    if alarms:
        yield pen.rule("What is wrong")
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
    yield [Segment(" esc leaves this page", palette.DIM)]


def _row(key: str, meaning: str, pen: Pen) -> Iterator[Line]:
    first, *others = wrapped(meaning, pen.width - _KEY_CELLS - 2, pen.glyphs)
    yield [Segment(" "), pen.cell(key, _KEY_CELLS, palette.KEY), Segment(first)]
    for line in others:
        yield [Segment(" " * (_KEY_CELLS + 1)), Segment(line)]
