"""Filters and sorts table rows in steps, so that keys do not have to wait.

A filter takes one or two microseconds per row, which exceeds the time of a frame for thousands of
rows. Sorting is a single call and takes a fifth of that time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import attrs

from ..drawing._table import Column, Table

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
