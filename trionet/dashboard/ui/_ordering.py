"""The rows of a table that a filter lets through, sorted; some at a time, so that keys do not wait.

A filter looks at a microsecond or two of text a row: with thousands of rows that is longer than a
frame may take. Sorting them is one call, and takes a fifth of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import attrs

from ._view import Column, Table

#: How many rows are looked at in one step: less than a millisecond of work.
ROWS_PER_STEP: Final = 400


@attrs.frozen
class Order:
    """What a user has asked for.

    Attributes:
        sort: the name of a column; None keeps the order.
        descending: whether the largest is first.
        filter: words; each must be in one of the searched columns, upper and lower case alike, or
            in none of them if it begins with ``!``.
    """

    sort: str | None = None
    descending: bool = False
    filter: str = ""


class Ordering:
    """Rows on their way into an order.

    Args:
        rows: of the table; they must not change meanwhile.
        table: its columns say what is searched and compared.
        order: which one.

    Attributes:
        order: as given.
        rows: those that were let through so far; in their order when it is done.
        is_done: whether all have been looked at.
    """

    def __init__(self, rows: Sequence[Any], table: Table[Any], order: Order) -> None:
        self.order = order
        self.rows: list[Any] = []
        self.is_done = False
        self._given = rows
        self._next = 0
        self._table = table
        words = order.filter.lower().split()
        self._wanted = [word for word in words if not word.startswith("!")]
        self._unwanted = [word[1:] for word in words if len(word) > 1 and word.startswith("!")]

    def step(self) -> None:
        """Look at some more rows."""
        if not self._wanted and not self._unwanted:
            self.rows, self._next = list(self._given), len(self._given)
        else:
            part = self._given[self._next : self._next + ROWS_PER_STEP]
            self.rows += self._let_through(part)
            self._next += len(part)
        if self._next >= len(self._given):
            self.rows = self._sorted()
            self.is_done = True

    def _let_through(self, rows: Sequence[Any]) -> Iterable[Any]:
        columns = [column for column in self._table.columns if _is_searched(column, rows)]
        getters = [_searched_text(column) for column in columns]
        wanted, unwanted = self._wanted, self._unwanted

        def has_them(row: Any) -> bool:
            text = "\n".join([text for get in getters if (text := get(row))]).lower()
            for word in wanted:
                if word not in text:
                    return False
            return not (unwanted and any(word in text for word in unwanted))

        return [row for row in rows if has_them(row)]

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
    """Gives the text of a row's cell; that of thousands of rows is wanted at once."""
    if column.text is str and column.value is not None and column.is_searched is None:
        return column.value  # its values are texts
    return column.shown


def _is_searched(column: Column[Any], rows: Sequence[Any]) -> bool:
    if column.is_searched is not None:
        return column.is_searched
    return column.width > 0 and isinstance(_first_value(column, rows), str)


def _first_value(column: Column[Any], rows: Sequence[Any]) -> object:
    """The first value that there is, which tells of which kind all are."""
    if column.value is None:
        return None
    return next((value for row in rows if (value := column.value(row)) is not None), None)
