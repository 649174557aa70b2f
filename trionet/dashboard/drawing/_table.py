"""The tables of views: columns, and rows from sections of the model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Final, Generic, TypedDict, TypeVar

import attrs
from rich.style import Style

from ..model._section import Section
from ._pen import Line, Pen

R = TypeVar("R")

Value = str | int | float | bool | None
"""The value that a cell is sorted by and exported as."""


@attrs.frozen
class Column(Generic[R]):
    """A column of a table.

    Attributes:
        name: the name in JSON, CSV and ``:sort``, such as ``idle_seconds``.
        title: the heading, no wider than the column.
        width: the minimum width in cells; 0 to only export the column and sort by it.
        value: returns the value of a row for sorting and export, where None sorts last; without
            it, the column supports neither.
        text: formats a value; ``str`` by default.
        right: whether the column is right-aligned, as numbers are.
        priority: if space is short, columns with the highest priority are dropped first, from the
            right; columns with priority 0 are never dropped.
        grow: the share of spare width, relative to other columns.
        style: returns the style of a cell; None for plain.
        draw: returns segments in place of text, no wider than the given width.
        is_searched: whether a filter searches the column; by default if it is shown and has text
            values.
    """

    name: str
    title: str
    width: int
    value: Callable[[R], Value] | None = None
    text: Callable[[Any], str] = str
    right: bool = False
    priority: int = 0
    grow: int = 0
    style: Callable[[R], Style | None] | None = None
    draw: Callable[[R, int, Pen], Line] | None = None
    is_searched: bool | None = None

    def shown(self, row: R) -> str:
        """Return the text of a cell, which is empty if the value is None."""
        value = None if self.value is None else self.value(row)
        return "" if value is None else self.text(value)


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


#: The text shown for a list that has not been read yet.
UNREAD: Final = "Loading."


class TableRows(TypedDict, Generic[R]):
    """The arguments of a :class:`Table` that come from a section of the model."""

    rows: Collection[R]
    missing: str | None
    total: int | None
    version: Hashable
    as_of: float | None
    is_failing: bool


def rows_of(section: Section[Any, R]) -> TableRows[R]:
    """Return the arguments of a :class:`Table` that shows a section."""
    unread = None if section.updated_at is not None else section.failure or UNREAD
    return {
        "rows": section.values(),
        "missing": section.missing or unread,
        "total": section.total,
        # A section may be replaced by another, whose versions start again.
        "version": (id(section), section.version),
        "as_of": section.updated_at if section.as_of is None else section.as_of,
        "is_failing": section.failure is not None,
    }


def without_age(rows: TableRows[R]) -> TableRows[R]:
    """Return the rows without an age unless reading fails, for rows that rarely arrive."""
    found = rows.copy()
    if not found["is_failing"]:
        found["as_of"] = None
    return found
