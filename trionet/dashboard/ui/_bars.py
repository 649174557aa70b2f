"""Draws the tabs at the top and the hints at the bottom, whose labels shrink but are never cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.segment import Segment

from ..drawing import _palette as palette
from ..drawing._cells import Line, Pen
from ._ui import Mode, Ui

#: The key and the label of the list of all views.
MENU: Final = (".", "views")
#: The line of the tabs.
TABS_ROW: Final = 1
Hint = tuple[str, str]


def tabs(ui: Ui, pen: Pen) -> Line:
    """Draw the tabs, and register them for the mouse.

    Names become short names where the screen is narrow. If these are too wide, too, the last tabs
    are left out, and the key of the list of all views stands beside their number.
    """
    shown = _fitting(ui, pen.width)
    # Not where tabs are left out, or the others would move whenever one of these is shown.
    has_all = shown[-1][0] != MENU[0]
    gap = " " if has_all and _cells(shown) + len(shown) <= pen.width else ""
    line: Line = []
    column = 0
    for key, label, is_shown in shown:
        text = f" {key} {label}"
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


def _fitting(ui: Ui, width: int) -> list[Tab]:
    """Return the tabs that fit, in the longest form.

    The label of a view is the same whether it is shown or not, and so are the tabs to its left:
    users find a tab by where it was.
    """
    found = [(view.key, view.name, view.name == ui.root) for view in ui.views]
    if _cells(found) <= width:
        return found
    found = [(view.key, view.short or view.name, view.name == ui.root) for view in ui.views]
    if _cells(found) <= width:
        return found
    menu = _menu(ui, found)
    while _cells([*found, menu]) > width and len(found) > 1:
        del found[max(index for index, tab in enumerate(found) if not tab[2])]
        menu = _menu(ui, found)
    return [*found, menu]


def _menu(ui: Ui, found: Sequence[Tab]) -> Tab:
    return MENU[0], f"{len(ui.views) - len(found)} more", False


def _cells(tabs: Iterable[Tab]) -> int:
    return sum(2 + len(key) + len(label) + 2 * is_shown for key, label, is_shown in tabs)


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
