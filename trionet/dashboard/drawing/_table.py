"""The tables of views: columns, rows from a section of the model, and both as lines.

A line has an exact width, and shows a row in the columns that fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter, is_not
from typing import Any, Final, Generic, TypeVar

import attrs
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style

from ..model._figures import History
from ..model._section import Section
from . import _palette as palette
from . import _units as units
from ._cells import Line, Pen, fit_sanitized, shares
from ._graphs import graph, samples, time_axis, trend

R = TypeVar("R")

Value = str | int | float | bool | None
"""The value that a cell is sorted by and exported as."""


def _attribute(column: Column[Any]) -> Callable[[Any], Value]:
    return attrgetter(column.name)


@attrs.frozen
class Column(Generic[R]):
    """A column of a table.

    Attributes:
        name: the name in JSON, CSV and ``:sort``, such as ``idle_seconds``.
        title: the heading, no wider than the column.
        width: the minimum width in cells; 0 to only export the column and sort by it.
        value: returns the value of a row for sorting and export, where None sorts last; by default
            the row's attribute with the name of the column. If None, the column supports neither.
        text: formats a value; ``str`` by default.
        text_of: formats the value of a row, if its unit depends on the row; None for ``text``.
        right: whether the column is right-aligned, as numbers are.
        priority: if space is short, columns with the highest priority are dropped first, from the
            right; columns with priority 0 are never dropped.
        grow: the share of spare width, relative to other columns.
        style: returns the style of a cell; None for plain.
        draw: returns segments in place of text, no wider than the given width.
        trend_of: the name of the column whose recent values, the row's history, ``draw`` shows.
        is_detail: whether the value is among the details of the selected row, where it is shown
            even if the table has no room for it.
        is_searched: whether a filter searches the column; by default if it is shown and has text
            values.
        is_optional: whether the column leaves its room to others while no row has a value, as where
            the source does not report it.
    """

    name: str
    title: str
    width: int
    value: Callable[[R], Value] | None = attrs.Factory(_attribute, takes_self=True)
    text: Callable[[Any], str] = str
    right: bool = False
    priority: int = 0
    grow: int = 0
    style: Callable[[R], Style | None] | None = None
    draw: Callable[[R, int, Pen], Line] | None = None
    trend_of: str | None = None
    is_detail: bool = True
    is_searched: bool | None = None
    is_optional: bool = False
    text_of: Callable[[R], str] | None = None

    def shown(self, row: R) -> str:
        """Return the text of a cell, which is empty if the value is None."""
        value = None if self.value is None else self.value(row)
        if value is None:
            return ""
        return self.text(value) if self.text_of is None else self.text_of(row)


@attrs.frozen
class Table(Generic[R]):
    """Rows that can be sorted, filtered and scrolled; only the visible ones are drawn.

    Attributes:
        columns: the columns from left to right.
        rows: the rows in the order of the model.
        key: returns the identity of a row across updates, so that the cursor can follow the row.
        missing: why there are no rows, as a sentence.
        sort: the default sort column; None to keep the order.
        descending: whether the default order starts with the largest value.
        total: the total number of rows, if the model does not have all rows.
        version: the version of the rows, which are sorted again when it changes; None to sort for
            each frame.
        as_of: when the oldest values in the rows were read, in seconds on the loop's clock; None if
            rows do not age.
        is_failing: whether the last attempt to read the rows failed.
        style: returns the style of a row; None for plain rows.
    """

    columns: Sequence[Column[R]]
    rows: Collection[R]
    key: Callable[[R], Hashable]
    missing: str | None = None
    sort: str | None = None
    descending: bool = False
    total: int | None = None
    version: Hashable = None
    as_of: float | None = None
    is_failing: bool = False
    style: Callable[[R], Style | None] | None = None

    def column(self, name: str) -> Column[R] | None:
        """Return the column with this name, or None if there is none."""
        return next((column for column in self.columns if column.name == name), None)

    def sortable(self) -> list[str]:
        """Return the names of the sortable columns."""
        return [column.name for column in self.columns if column.value is not None]


def empty_columns(columns: Sequence[Column[R]], rows: Collection[R]) -> frozenset[str]:
    """Return the names of the optional columns for which no row has a value."""
    return frozenset(
        column.name
        for column in columns
        # Without a step in Python for each row, of which there may be thousands.
        if column.is_optional
        and column.value is not None
        and not any(map(_IS_KNOWN, map(column.value, rows)))
    )


_IS_KNOWN: Final = partial(is_not, None)


#: The text shown for a list that has not been read yet.
UNREAD: Final = "Loading."


def table_of(
    section: Section[Any, R],
    columns: Sequence[Column[R]],
    *key: str,
    sort: str | None = None,
    descending: bool = False,
    ages: bool = True,
) -> Table[R]:
    """Return the table that shows a section of the model.

    Args:
        section: the section.
        columns: the columns from left to right.
        key: the names of the attributes that identify a row.
        sort: the default sort column; None to keep the order.
        descending: whether the default order starts with the largest value.
        ages: whether the rows have an age even if reading succeeds; False for rows that rarely
            arrive.
    """
    unread = None if section.updated_at is not None else section.failure or UNREAD
    is_failing = section.failure is not None
    as_of = section.updated_at if section.as_of is None else section.as_of
    return Table(
        columns,
        section.values(),
        attrgetter(*key),
        missing=section.missing or unread,
        sort=sort,
        descending=descending,
        total=section.total,
        # A section may be replaced by another, whose versions start again.
        version=(id(section), section.version),
        as_of=as_of if ages or is_failing else None,
        is_failing=is_failing,
    )


def alarm_if(name: str) -> Callable[[Any], Style | None]:
    """Return the style of a column that is an alarm if an attribute of the row is not zero."""
    value = attrgetter(name)
    return lambda row: palette.ALARM if value(row) else None


def trend_column(of: str, width: int, *, priority: int, grow: int = 0) -> Column[Any]:
    """Return a column with a sparkline of the recent values of another column.

    Args:
        of: the name of the other column, whose values are the history of the row.
        width: the minimum width in cells.
        priority: see :class:`Column`.
        grow: see :class:`Column`.
    """
    return Column(
        "trend",
        "TREND",
        width,
        None,
        priority=priority,
        grow=grow,
        draw=_draw_history,
        trend_of=of,
    )


def _draw_history(row: Any, width: int, pen: Pen) -> Line:
    values = [] if row.history is None else row.history.values(samples(width, pen))
    return trend(values, width, pen)


#: The number of cells before the first column, as before all text, and between two columns.
MARGIN: Final = 1
GAP: Final = 1
_MARGIN: Final = " " * MARGIN
_GAP: Final = " " * GAP


Placed = Sequence[tuple[Column[Any], int]]
"""Columns with their widths, in cells."""


def layout(
    columns: Sequence[Column[Any]],
    width: int,
    rows: Sequence[Any] = (),
    longest: dict[str, int] | None = None,
    sort: str | None = None,
) -> Placed:
    """Choose the columns that fit, and return each column with a width.

    The least important columns are dropped from the right, and columns that grow share spare width.
    If texts would be cut, columns that grow leave them what their own titles and texts do not need.

    If the columns that are never dropped are too wide, they are cut off on the right.

    Args:
        columns: the columns from left to right.
        width: the width of the screen in cells.
        rows: the rows that will be shown.
        longest: the width of the longest text that each column has had, by its name, which is
            updated: columns would move with each new row if only the texts of now counted.
        sort: the name of the sort column, whose title has a mark.
    """
    width -= MARGIN
    kept = [
        attrs.evolve(each, width=max(each.width, len(each.title) + 1))
        if each.name == sort
        else each
        for each in columns
        if each.width
    ]
    while _needed(kept) > width and any(column.priority for column in kept):
        least = max(column.priority for column in kept)
        last = max(index for index, column in enumerate(kept) if column.priority == least)
        del kept[last]
    longest = {} if longest is None else longest
    _measure(kept, rows, longest, width)
    found: list[tuple[Column[Any], int]] = []
    left = width
    for column, wanted in zip(kept, _widths(kept, width - _needed(kept), longest), strict=True):
        cells = min(wanted, left)
        if cells > 0:
            found.append((column, cells))
        left -= cells + GAP
    return found


def _measure(
    columns: Sequence[Column[Any]], rows: Sequence[Any], longest: dict[str, int], width: int
) -> None:
    """Update the widths of the longest texts of columns that grow.

    Of each text, only as many characters count as the screen is wide: measuring takes time.
    """
    end = max(0, width)
    for column in columns:
        if column.grow and column.draw is None:
            texts = (column.shown(row)[:end] for row in rows)
            cells = (len(text) if text.isascii() else cell_len(text) for text in texts)
            longest[column.name] = max(longest.get(column.name, 0), max(cells, default=0))


def _widths(
    columns: Sequence[Column[Any]], spare: int, longest: Mapping[str, int]
) -> Sequence[int]:
    """Return the widths of columns that share the spare cells; charts can use all of theirs."""
    grown = shares([float(column.grow) for column in columns], spare)
    widths = [column.width + more for column, more in zip(columns, grown, strict=True)]
    needs = [
        max(longest[column.name], len(column.title) + 1) if column.name in longest else cells
        for column, cells in zip(columns, widths, strict=True)
    ]
    short = [float(max(0, need - cells)) for need, cells in zip(needs, widths, strict=True)]
    over = [float(max(0, cells - need)) for need, cells in zip(needs, widths, strict=True)]
    moved = int(min(sum(short), sum(over)))
    taken, given = shares(over, moved), shares(short, moved)
    return [each - less + more for each, less, more in zip(widths, taken, given, strict=True)]


def _needed(columns: Sequence[Column[Any]]) -> int:
    return sum(column.width for column in columns) + GAP * max(0, len(columns) - 1)


def heading_line(
    columns: Placed,
    pen: Pen,
    sort: str | None,
    *,
    descending: bool,
    rows: Sequence[Any] = (),
) -> Line:
    """Draw the column titles, with a mark at the sort column, and the time that trends cover.

    Args:
        columns: the columns with their widths.
        pen: the pen for drawing.
        sort: the name of the sort column; None if there is none.
        descending: whether the largest value is first.
        rows: the rows below, if there are trends of them.
    """
    mark = pen.glyphs.falling if descending else pen.glyphs.rising
    line: Line = [Segment(_MARGIN, palette.HEADING)]
    for column, width in columns:
        title = column.title + mark if column.name == sort else column.title
        if column.trend_of is not None:
            title = _with_span(title, width, rows, pen)
        if len(title) > width:  # the mark is more important than the last letter
            title = title[: width - 1] + mark if column.name == sort else title[:width]
        shown = f"{title:>{width}}" if column.right else f"{title:<{width}}"
        line.append(Segment(shown, palette.SORTED if column.name == sort else palette.HEADING))
        line.append(Segment(" " * GAP, palette.HEADING))
    return exactly(line[:-1], pen.width, palette.HEADING)


def _with_span(title: str, width: int, rows: Sequence[Any], pen: Pen) -> str:
    """Return the title of a trend with the time that the longest one covers, if it fits."""
    histories = [row.history for row in rows if row.history is not None]
    seconds = max((each.seconds(samples(width, pen)) for each in histories), default=0.0)
    longer = f"{title} {units.duration(seconds)}"
    return longer if seconds and len(longer) <= width else title


def row_line(
    table: Table[Any],
    columns: Placed,
    row: Any,
    pen: Pen,
    *,
    is_selected: bool,
) -> Line:
    """Draw a row with the width of the columns, or the selected row as a bar of full width.

    Charts keep their colours in the bar. Texts have those that are legible on it, if any.
    """
    plain = palette.CURSOR if is_selected else palette.PLAIN
    base = plain if table.style is None else table.style(row) or plain
    line: Line = []
    # Adjacent plain cells are merged into one segment, since each segment costs. Text beyond ASCII
    # stays separate: after it the painter positions the cursor again.
    plain_cells = [_MARGIN]
    for column, width in columns:
        if column.draw is not None:
            _flush(line, plain_cells, plain)
            drawn = exactly(column.draw(row, width, pen), width)
            line += map(_on_bar, drawn) if is_selected else drawn
        else:
            style = base
            if column.style is not None:
                style = column.style(row) or base
            if is_selected:
                style = palette.TEXTS_ON_BAR.get(style, plain)
            text = fit_sanitized(column.shown(row), width, right=column.right, glyphs=pen.glyphs)
            if style is plain and text.isascii():
                plain_cells.append(text)
            else:
                _flush(line, plain_cells, plain)
                line.append(Segment(text, style))
        plain_cells.append(_GAP)
    del plain_cells[-1]
    _flush(line, plain_cells, plain)
    return exactly(line, pen.width, plain) if is_selected else line


def _flush(line: Line, plain_cells: list[str], plain: Style) -> None:
    """Move the plain cells to the line as one segment."""
    if plain_cells:
        line.append(Segment("".join(plain_cells), plain))
        plain_cells.clear()


def _on_bar(drawn: Segment) -> Segment:
    """Return a segment of a chart, or of text among its lines, as it is in the selected row."""
    style = drawn.style or palette.PLAIN
    if style in palette.LABELS:
        return drawn
    return Segment(drawn.text, palette.CHARTS_ON_BAR.get(style, palette.CURSOR))


def exactly(
    line: Iterable[Segment], width: int, style: Style | None = None, *, mark: str = ""
) -> Line:
    """Truncate or pad a line to an exact width.

    Args:
        line: the line to show.
        width: the width in cells.
        style: the style of the padding.
        mark: a text of one cell that replaces the last cell if anything but blanks is cut off.
    """
    found: Line = []
    left = width
    segments = iter(line)
    for segment in segments:
        text = segment.text
        length = len(text) if text.isascii() else cell_len(text)
        if length > left:
            kept = set_cell_size(text, left)
            is_cut = bool(text[len(kept.rstrip()) :].strip())
            segment, length = Segment(kept, segment.style), left
        else:
            is_cut = False
        if text:
            found.append(segment)
        left -= length
        if left <= 0:
            is_cut = is_cut or any(each.text.strip() for each in segments)
            return _marked(found, mark) if is_cut and mark else found
    if left:
        found.append(Segment(" " * left, style))
    return found


def _marked(line: Line, mark: str) -> Line:
    """Replace the last cell of a line with a mark."""
    last = line[-1]
    return [
        *line[:-1],
        Segment(set_cell_size(last.text, cell_len(last.text) - 1) + mark, last.style),
    ]


def chart_line(
    label: str, values: Sequence[float | None], text: str, pen: Pen, style: Style = palette.CHART
) -> Line:
    """Draw a name, a trend over the available width, and the newest value."""
    return chart_lines(label, values, text, pen, 1, style)[0]


def chart_lines(
    label: str,
    values: Sequence[float | None],
    text: str,
    pen: Pen,
    height: int,
    style: Style = palette.CHART,
) -> list[Line]:
    """Draw a name, a graph over the available width, and the newest value in the last line."""
    label_cells, number_cells = margins(pen)
    width = chart_cells(pen)
    *above, last = graph(values, width, height, pen, style)
    margin = Segment(" " * (label_cells + 1))
    return [
        *([margin, *line] for line in above),
        [
            pen.label(f" {label}", label_cells + 1),
            *last,
            Segment(" "),
            pen.cell(text, number_cells, palette.BOLD, right=True),
        ],
    ]


def axis_line(history: History, pen: Pen) -> Line:
    """Return the time axis below charts of figures that were read together, such as this one."""
    label_cells, _ = margins(pen)
    width = chart_cells(pen)
    count = min(len(history), samples(width, pen))
    return [Segment(" " * (label_cells + 1)), time_axis(history.seconds(count), count, width, pen)]


def margins(pen: Pen) -> tuple[int, int]:
    """Return the widths of the names and of the numbers beside charts."""
    return (LABEL_CELLS, NUMBER_CELLS) if pen.width >= NARROW_CELLS else NARROW_MARGINS


def chart_cells(pen: Pen) -> int:
    """Return the width of a chart between its name and its number."""
    return max(0, pen.width - sum(margins(pen)) - 2)


LABEL_CELLS: Final = 19
NUMBER_CELLS: Final = 12
#: Below this width, names and numbers have less room, so that charts have some.
NARROW_CELLS: Final = 50
NARROW_MARGINS: Final = (14, 10)
