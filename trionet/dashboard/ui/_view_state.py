"""The state of one view: rows, sort order, filter and cursor.

Rows are filtered in steps, so that keys do not have to wait: a filter takes one or two microseconds
per row, which exceeds the time of a frame for thousands of rows. Sorting is a single call and takes
a fifth of that time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..drawing._cells import Line, Pen
from ..drawing._table import Column, Table, empty_columns
from ._view import View

if TYPE_CHECKING:
    from ..model._model import Model


#: The number of rows that a step filters, less than a millisecond of work.
ROWS_PER_STEP: Final = 400


@attrs.frozen
class Order:
    """The filter and the sort order of rows.

    Attributes:
        sort: the name of the sort column; None to keep the order.
        descending: whether the largest value is first.
        filter: case-insensitive words, each of which a row must contain in a searched column, or
            must not contain if the word starts with ``!``.
    """

    sort: str | None = None
    descending: bool = False
    filter: str = ""


class Ordering:
    """A filter and sort in progress.

    Args:
        rows: all rows of the table, which must not change until this is done.
        table: the table, whose columns define the values to search and compare.
        order: the filter and the sort order.

    Attributes:
        order: the filter and the sort order.
        rows: the matching rows, sorted if ``is_done``.
        is_done: whether all rows were filtered and sorted.
    """

    def __init__(self, rows: Sequence[Any], table: Table[Any], order: Order) -> None:
        self.order = order
        self.rows: list[Any] = []
        self.is_done = False
        self._all = rows
        self._next = 0
        self._table = table
        words = order.filter.lower().split()
        self._required = [word for word in words if not word.startswith("!")]
        self._excluded = [word[1:] for word in words if len(word) > 1 and word.startswith("!")]

    def step(self) -> None:
        """Filter the next rows, and sort all matching rows after the last one."""
        if not self._required and not self._excluded:
            self.rows, self._next = list(self._all), len(self._all)
        else:
            part = self._all[self._next : self._next + ROWS_PER_STEP]
            self.rows += self._matching(part)
            self._next += len(part)
        if self._next >= len(self._all):
            self.rows = self._sorted()
            self.is_done = True

    def _matching(self, rows: Sequence[Any]) -> Iterable[Any]:
        columns = [column for column in self._table.columns if _is_searched(column, rows)]
        getters = [_searched_text(column) for column in columns]
        required, excluded = self._required, self._excluded

        def matches(row: Any) -> bool:
            text = "\n".join([text for get in getters if (text := get(row))]).lower()
            for word in required:
                if word not in text:
                    return False
            return not (excluded and any(word in text for word in excluded))

        return [row for row in rows if matches(row)]

    def _sorted(self) -> list[Any]:
        order, found = self.order, self.rows
        column = None if order.sort is None else self._table.column(order.sort)
        value = None if column is None else column.value
        if value is None:
            return found
        known = [row for row in found if value(row) is not None]
        unknown = [row for row in found if value(row) is None] if len(known) < len(found) else []
        known.sort(key=value, reverse=order.descending)  # type: ignore[arg-type] # of one type
        return known + unknown


def _searched_text(column: Column[Any]) -> Callable[[Any], Any]:
    """Return a function that formats the text of a cell, to be used for thousands of rows."""
    if column.text is str and column.value is not None and column.is_searched is None:
        return column.value  # its values are text
    return column.shown


def _is_searched(column: Column[Any], rows: Sequence[Any]) -> bool:
    if column.is_searched is not None:
        return column.is_searched
    return column.width > 0 and isinstance(_first_value(column, rows), str)


def _first_value(column: Column[Any], rows: Sequence[Any]) -> object:
    """Return the first value that is not None; all values have its type."""
    if column.value is None:
        return None
    return next((value for row in rows if (value := column.value(row)) is not None), None)


class ViewState:
    """A view with the user's cursor, sort order and filter.

    Args:
        view: the view.

    Attributes:
        table: the last table of the view; None for a view of lines.
        rows: the rows that match the filter, sorted.
        lines: the last lines of a view without a table.
        summary: the last lines above the table.
        longest: the width of the longest text of each column, see :func:`.layout`.
        details: the last details, after the row and the pen that they were drawn of and with.
        cursor: the index of the selected row, or of the first visible line in a view of lines.
        top: the index of the first row on the screen.
        height: the number of rows that fit on the screen.
        is_frozen: whether the screen is frozen, which requires that the view has data to show.
        sort: the sort column chosen by the user; None for the default of the table.
        filter: the filter; see :class:`.Order`.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self.table: Table[Any] | None = None
        self.rows: list[Any] = []
        self.lines: list[Line] | None = None
        self.summary: list[Line] | None = None
        self.longest: dict[str, int] = {}
        self.details: tuple[Any, Pen, list[Line]] | None = None
        self.cursor = 0
        self.top = 0
        self.height = 1
        self.is_frozen = False
        self.sort: str | None = None
        self.filter = ""
        self._descending: bool | None = None
        self._is_waiting = True
        # All rows, the version of the table that they belong to, whether `rows` is out of date with
        # them, the columns that none of them needs, the order of `rows`, and the update in progress
        # that will replace it.
        self._all: list[Any] = []
        self._all_of: Hashable = None
        self._is_old = True
        self._empty: frozenset[str] = frozenset()
        self._order = Order()
        self._pending: Ordering | None = None
        # The key of the row that the cursor follows; None at the top, where the cursor stays.
        self._key: Hashable = None

    @property
    def sorted_by(self) -> str | None:
        """The sort column, or None for the order of the model."""
        return self.sort or (self.table.sort if self.table is not None else None)

    @property
    def descending(self) -> bool:
        """Whether the largest value comes first."""
        if self._descending is not None:
            return self._descending
        return self.table is not None and self.sort is None and self.table.descending

    @property
    def selected(self) -> Any:
        """The row under the cursor, or None if there is none."""
        return self.rows[self.cursor] if self.table is not None and self.rows else None

    @property
    def is_updating(self) -> bool:
        """Whether new rows are being filtered and sorted."""
        return self._pending is not None

    def update(self, model: Model, *, is_paused: bool) -> None:
        """Update the table from the model, unless the screen is paused.

        Rows are filtered in steps (:meth:`step`). The previous rows stay until the last step.
        """
        self.is_frozen = is_paused and not self._is_waiting
        if not self.is_frozen:
            self._take(model)
        if self.table is None:
            self._pending = None
            return
        order = Order(self.sorted_by, self.descending, self.filter)
        if self._pending is not None and self._pending.order != order:
            self._pending, self._is_old = None, True  # the user chose another order meanwhile
        if self._pending is None and (self._is_old or self._order != order):
            # An update in progress is finished first, even if newer rows arrive: restarting for
            # each would never finish a long list.
            self._pending, self._is_old = Ordering(self._all, self.table, order), False
        self.step()

    def _take(self, model: Model) -> None:
        self.table = table = self.view.table(model)
        if table is None:
            self._is_waiting = self.view.is_waiting(model)
            return
        self._is_waiting = table.missing is not None
        if table.version is None or table.version != self._all_of:
            self._all, self._all_of, self._is_old = list(table.rows), table.version, True
            self._empty = empty_columns(table.columns, self._all)
        if self._empty:
            columns = [
                attrs.evolve(each, width=0) if each.name in self._empty else each
                for each in table.columns
            ]
            self.table = attrs.evolve(table, columns=columns)

    def update_fully(self, model: Model) -> None:
        """Update the table and filter all rows without a pause."""
        self.update(model, is_paused=False)
        while self.is_updating:
            self.step()

    def step(self) -> None:
        """Run the next step of the update in progress."""
        pending = self._pending
        if pending is None:
            return
        pending.step()
        if pending.is_done:
            self.rows, self._order, self._pending = pending.rows, pending.order, None
            self._follow()

    def _follow(self) -> None:
        assert self.table is not None
        if self._key is not None:
            key = self.table.key
            selected = self._key
            # It is usually where it was.
            if not (self.cursor < len(self.rows) and key(self.rows[self.cursor]) == selected):
                found = next((n for n, row in enumerate(self.rows) if key(row) == selected), None)
                self.cursor = self.cursor if found is None else found
        self.move_to(self.cursor)

    def move(self, step: int) -> None:
        """Move the cursor down by ``step`` rows, or up if ``step`` is negative."""
        self.move_to(self.cursor + step)

    def move_to(self, index: int) -> None:
        """Move the cursor to the row with this index, or to the nearest existing row."""
        if self.table is None:
            last = max(0, len(self.lines or ()) - self.height)
            self.cursor = self.top = max(0, min(index, last))
            return
        self.cursor = max(0, min(index, len(self.rows) - 1))
        self._key = self.table.key(self.rows[self.cursor]) if self.cursor else None
        self.scroll()

    def scroll(self) -> None:
        """Scroll so that the cursor is visible and the screen is as full as possible."""
        if self.table is None:
            return
        self.top = max(self.top, self.cursor - self.height + 1)
        self.top = max(0, min(self.top, self.cursor, len(self.rows) - self.height))

    def sort_by(self, name: str, *, descending: bool | None = None) -> None:
        """Sort by a column. By default, numbers (right-aligned columns) start with the largest."""
        assert self.table is not None
        self.sort = name
        if descending is None:
            column = self.table.column(name)
            descending = column is not None and column.right
        self._descending = descending

    def sort_by_next(self) -> None:
        """Sort by the next sortable column."""
        if self.table is not None:
            names = self.table.sortable()
            now = self.sorted_by
            self.sort_by(names[(names.index(now) + 1) % len(names) if now in names else 0])

    def sort_by_click(self, name: str) -> None:
        """Sort by a column, or reverse the order if it is already the sort column."""
        if name == self.sorted_by:
            self.reverse()
        elif self.table is not None and name in self.table.sortable():
            self.sort_by(name)

    def reverse(self) -> None:
        """Reverse the sort order."""
        if self.table is not None and self.sorted_by is not None:
            self._descending = not self.descending
