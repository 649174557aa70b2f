"""Draws the tabs at the top and the hints at the bottom, whose labels shrink but are never cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.segment import Segment

from ..drawing import _palette as palette
from ..drawing._cells import Line, Pen
from ._ui import Mode, Ui
from ._view import View

#: The key and the label of the list of all views.
MENU: Final = (".", "more")
#: The line of the tabs.
TABS_ROW: Final = 1
Hint = tuple[str, str]


def tabs(ui: Ui, pen: Pen) -> Line:
    """Draw the tabs, and register them for the mouse.

    Names become short names where the screen is narrow. If these are too wide, too, the last tabs
    have only their keys, or are left out, and a tab for the list of all views is added.
    """
    shown, has_menu = _fitting(ui, pen.width)
    gap = " " if not has_menu and _cells(shown) + len(shown) <= pen.width else ""
    line: Line = []
    column = 0
    for key, label, is_shown in [*shown, *([(*MENU, False)] if has_menu else [])]:
        text = f" {key} {label}" if label else f" {key}"
        if is_shown:
            line += [Segment(" "), Segment(f"{text} ", palette.TAB), Segment(gap)]
            text = f" {text} "
        else:
            line += [Segment(f" {key}", palette.KEY), Segment(text[1 + len(key) :] + gap)]
        if ui.mode in {Mode.BROWSE, Mode.MENU}:
            ui.hits.add_key(TABS_ROW, column, column + len(text), key)
        column += len(text) + len(gap)
    return line


Tab = tuple[str, str, bool]
"""A key, a label, and whether the view is on the screen."""


def _fitting(ui: Ui, width: int) -> tuple[list[Tab], bool]:
    """Return the tabs in the longest form that fits, and whether some have no label."""
    views = ui.views
    names = [(view.key, view.name, view.name == ui.root) for view in views]
    if _cells(names) <= width:
        return names, False
    found = _tabs(ui, len(views))
    if _cells(found) <= width:
        return found, False
    width_left = width - _cells([(*MENU, False)])
    count = len(views)
    while _cells(found) > width_left and count:
        count -= 1
        found = _tabs(ui, count)
    while _cells(found) > width_left and len(found) > 1:
        del found[max(index for index, tab in enumerate(found) if not tab[2])]
    return found, True


def _tabs(ui: Ui, count: int) -> list[Tab]:
    """Return the tabs, of which the first ``count`` and the current one have a label."""
    return [
        (view.key, _label(view, view.name == ui.root, index < count), view.name == ui.root)
        for index, view in enumerate(ui.views)
    ]


def _label(view: View, is_shown: bool, has_room: bool) -> str:
    if is_shown:
        return view.name
    return (view.short or view.name) if has_room else ""


def _cells(tabs: Iterable[Tab]) -> int:
    return sum(
        1 + len(key) + (1 + len(label) if label else 0) + 2 * is_shown
        for key, label, is_shown in tabs
    )


# The hints.

#: The hints at the right, which are always there.
LAST: Final[Sequence[Hint]] = (("?", "help"), ("q", "quit"))


def hints(ui: Ui, pen: Pen, row: int) -> Line:
    """Draw what keys do, those of the view first, and register them for the mouse.

    Args:
        ui: the state.
        pen: the pen for drawing.
        row: the line of the hints.
    """
    width = pen.width - _hint_cells(LAST) - 1
    line: Line = [Segment(" ")]
    column = 1
    for hint in _fitting_hints(own_hints(ui), general_hints(ui), width - 1):
        column = _add(hint, line, column, row, ui)
    line.append(Segment(" " * (width - column)))
    column = width
    for hint in LAST:
        column = _add(hint, line, column, row, ui)
    return line


def _add(hint: Hint, line: Line, column: int, row: int, ui: Ui) -> int:
    """Add a hint at a column, and return the column of the next one."""
    key, label = hint
    line += [Segment(key, palette.KEY), Segment(f" {label}  " if label else "  ")]
    end = column + _hint_cells([hint])
    ui.hits.add_key(row, column, end - 2, key)
    return end


def own_hints(ui: Ui) -> list[Hint]:
    """Return the keys of the view on the screen, those that can do something now."""
    if ui.mode in {Mode.HELP, Mode.MENU}:
        return [("esc", "close")]
    view = ui.current.view
    has_row = ui.current.selected is not None
    found: list[Hint] = []
    if view.opens and has_row:
        found.append(("enter", view.opens))
    if ui.current.filter:
        found.append(("esc", "clear filter"))
    elif len(ui.trail) > 1:
        found.append(("esc", "back"))
    found += [(each.key, each.label) for each in view.links if has_row or not each.needs_row]
    found += [(each.key, each.label) for each in view.actions if has_row or not each.needs_row]
    return found


def general_hints(ui: Ui) -> list[Hint]:
    """Return the keys that do not depend on the view, the most useful first."""
    if ui.mode is Mode.HELP:
        return [("j", "down"), ("k", "up")]
    if ui.mode is Mode.MENU:
        return [("j", "down"), ("k", "up"), ("enter", "open")]
    if ui.current.table is None:
        return [("p", "pause"), (":", "command"), MENU]
    sort = [("s", "sort"), ("r", "reverse")]
    return [("/", "filter"), *sort, ("p", "pause"), ("w", "details"), (":", "command"), MENU]


def _fitting_hints(own: Sequence[Hint], general: Sequence[Hint], width: int) -> list[Hint]:
    """Return the hints that fit: the view's own, of which the last may lose words or the label."""
    found = list(own)
    for shorter in (_first_word, _no_label):
        for index in reversed(range(len(found))):
            if _hint_cells(found) <= width:
                break
            found[index] = shorter(found[index])
    while _hint_cells(found) > width:
        del found[-1]
    for hint in general:
        if _hint_cells([*found, hint]) > width:
            break
        found.append(hint)
    return found


def _first_word(hint: Hint) -> Hint:
    return hint[0], hint[1].split()[0]


def _no_label(hint: Hint) -> Hint:
    return hint[0], ""


def _hint_cells(hints: Sequence[Hint]) -> int:
    return sum(len(key) + (len(label) + 1 if label else 0) + 2 for key, label in hints)
