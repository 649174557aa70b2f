"""Draws the details of the selected row where a screen has room beside or below the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from ..drawing import _palette as palette
from ..drawing._cells import CHARS_MAX, Line, Pen, fit, wrapped
from ..drawing._graphs import graph, samples, time_axis
from ..drawing._table import Column, Table, exactly
from ._view_state import ViewState

if TYPE_CHECKING:
    from ..model._figures import History
    from ..model._model import Model

#: The minimum width of the screen for details at the right, and their share of it.
BESIDE_MIN: Final = 160
BESIDE_SHARE: Final = 0.32
#: The minimum size of the screen for details below the rows.
BELOW_COLUMNS_MIN: Final = 100
BELOW_LINES_MIN: Final = 20
#: The share of the height that details below many rows take.
BELOW_SHARE: Final = 0.4
#: The width of a field, and the minimum and the maximum width of its name.
FIELD_CELLS: Final = 40
NAME_CELLS: Final = (18, 25)
#: The maximum number of lines of a value that is wider than a field.
LONG_LINES_MAX: Final = 3
#: The number of cells of a heading beside its text.
RULE_CELLS: Final = 4
#: The height of the graph of a row's history.
GRAPH_LINES: Final = 4


class Split:
    """How the room of a table is divided.

    Args:
        table: the size of the table.
        details: the size of the details.
        is_beside: whether the details are at the right, and not below the rows.
    """

    def __init__(self, table: Pen, details: Pen, *, is_beside: bool) -> None:
        self.table = table
        self.details = details
        self.is_beside = is_beside


def split(pen: Pen, room: int, rows: int) -> Split | None:
    """Divide the room of a table, or return None if it is too small for details.

    Args:
        pen: the pen for drawing on the whole width.
        room: the number of lines.
        rows: the number of rows of the table.
    """
    if pen.width >= BESIDE_MIN:
        width = round(pen.width * BESIDE_SHARE)
        table = attrs.evolve(pen, width=pen.width - width - 2, height=room)
        return Split(table, attrs.evolve(pen, width=width - 1, height=room), is_beside=True)
    if pen.width < BELOW_COLUMNS_MIN or room < BELOW_LINES_MIN:
        return None
    lines = max(room - rows - 1, round(room * BELOW_SHARE))
    table = attrs.evolve(pen, height=room - lines)
    return Split(table, attrs.evolve(pen, height=lines), is_beside=False)


def fitted(at: Split, lines: int, rows: int) -> Split:
    """Give the table what details below it leave of their room.

    Args:
        at: how the room is divided.
        lines: the number of lines of the details.
        rows: the number of rows of the table.
    """
    spare = min(at.details.height - lines, rows + 1 - at.table.height)
    if at.is_beside or spare <= 0:
        return at
    return Split(
        attrs.evolve(at.table, height=at.table.height + spare),
        attrs.evolve(at.details, height=at.details.height - spare),
        is_beside=False,
    )


def joined(table: Sequence[Line], details: Sequence[Line], at: Split) -> list[Line]:
    """Return the lines of a table with details, each block cut to its room."""
    if not at.is_beside:
        blank: Line = []
        rows = [*table[: at.table.height], *[blank] * (at.table.height - len(table))]
        return [*rows, *details[: at.details.height]]
    wall = Segment(f" {at.table.glyphs.wall}", palette.RULE)
    found: list[Line] = []
    for index in range(at.table.height):
        row = table[index] if index < len(table) else []
        detail = details[index] if index < len(details) else []
        found.append([*exactly(row, at.table.width), wall, *detail])
    return found


def details(state: ViewState, model: Model, pen: Pen) -> list[Line]:
    """Return the details of the selected row, which do not change while the view is frozen."""
    row, kept = state.selected, state.details
    if state.is_frozen and kept is not None and kept[0] is row and kept[1] == pen:
        return kept[2]
    lines = _details(state, row, model, pen)
    state.details = row, pen, lines
    return lines


def _details(state: ViewState, row: Any, model: Model, pen: Pen) -> list[Line]:
    """Return all fields of a row, a graph of its history, and what the view adds."""
    table = state.table
    assert table is not None
    fields = [each for each in table.columns if each.value is not None and each.is_detail]
    title = fields[0].shown(row)
    if cell_len(pen.text(title).text) <= pen.width - RULE_CELLS:
        del fields[0]  # otherwise its end is only there
    names = _name_cells(fields)
    lines = [pen.rule(title), *_fields(fields, row, names, pen)]
    of = _charted(table)
    if of is not None and row.history and len(lines) + GRAPH_LINES + 2 < pen.height:
        lines += [[], *_graph(row.history, of, names, pen)]
    rest = attrs.evolve(pen, height=pen.height - len(lines) - 1)
    if rest.height > 0:
        lines += [[], *state.view.details(row, model, rest)]
    mark = pen.glyphs.ellipsis
    return [exactly(line, pen.width, mark=mark) for line in lines[: pen.height]]


def _charted(table: Table[Any]) -> Column[Any] | None:
    """Return the column of whose recent values rows have a history, if there is one."""
    names = (each.trend_of for each in table.columns if each.trend_of is not None)
    return next((table.column(name) for name in names), None)


def _graph(history: History, of: Column[Any], names: int, pen: Pen) -> Iterator[Line]:
    """Draw the recent values of a column below its name, with the largest one and a time axis."""
    # From the left, until the history is as wide as the room.
    room = pen.width - names - 2
    values = history.values(samples(room, pen))
    width = min(room, -(-len(values) // samples(1, pen)))
    most = max((each for each in values if each is not None), default=None)
    labels = [f"trend of {of.title}", "" if most is None else f"up to {of.text(most)}"]
    for index, line in enumerate(graph(values, width, GRAPH_LINES, pen)):
        label = f" {labels[index]}" if index < len(labels) else ""
        yield [pen.label(label, names + 1, palette.DIM), *line]
    axis = time_axis(history.seconds(len(values)), len(values), width, pen)
    yield [Segment(" " * (names + 1)), axis]


def _name_cells(columns: Sequence[Column[Any]]) -> int:
    """Return the width of the names of all fields, with a blank at the end."""
    least, most = NAME_CELLS
    return min(most, max([least, *(1 + len(_name(each, columns)) for each in columns)]))


def _fields(columns: Sequence[Column[Any]], row: Any, names: int, pen: Pen) -> Iterator[Line]:
    """Yield the fields of the row that have a value, in as many columns as fit.

    Those that do not fit into a column follow, each with the whole width, on several lines if need
    be: a reason or an id is worth more than its beginning.
    """
    across = max(1, pen.width // FIELD_CELLS)
    width = pen.width // across
    short: list[Line] = []
    long: list[Line] = []
    for column in columns:
        text = column.shown(row)
        if not text:
            continue
        style = (None if column.style is None else column.style(row)) or palette.PLAIN
        name = [pen.label(f" {_name(column, columns)}", names + 1, palette.DIM)]
        value = pen.text(text, style)
        if cell_len(value.text) <= width - names - 2:
            short.append(exactly([*name, value], width))
        else:
            long += _long(name, text, style, names, pen)
    down = -(-len(short) // across)
    for at in range(down):
        yield [segment for field in short[at::down] for segment in field]
    yield from long


def _long(name: Line, text: str, style: Style, names: int, pen: Pen) -> Iterator[Line]:
    """Yield a field with the whole width, at most :data:`LONG_LINES_MAX` lines."""
    width = pen.width - names - 2
    lines = wrapped(text[:CHARS_MAX], width, pen.glyphs)
    if len(lines) > LONG_LINES_MAX:
        lines[LONG_LINES_MAX - 1 :] = [
            fit(" ".join(lines[LONG_LINES_MAX - 1 :]), width, glyphs=pen.glyphs)
        ]
    for line in lines:
        yield [*name, Segment(line, style)]
        name = [Segment(" " * (names + 1))]


def _name(column: Column[Any], columns: Sequence[Column[Any]]) -> str:
    name = column.name.removeprefix("is_").removesuffix("_ms").removesuffix("_us")
    name = name.replace("_seconds_ago", "_ago").replace("_per_s", "_rate")
    if name.endswith("_seconds"):
        name = name.removesuffix("_seconds")
        if any(each.name == name for each in columns):  # such as a state, and how long it lasts
            name += " for"
    return name.replace("_", " ")
