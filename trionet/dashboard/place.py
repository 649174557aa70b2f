"""Where one is in a view: sorted by what, filtered by what, on which row; pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from .view import Column, Line, Table, View

if TYPE_CHECKING:
    from .model import Model


class Place:
    """A view, and what the user has done to it.

    Args:
        view: what is looked at.

    Attributes:
        table: what the view gave last, if it is a table.
        rows: those that the filter lets through, in their order.
        lines: what a view without a table gave last.
        summary: what the view gave last for the top.
        cursor: the index of the chosen row; of a view of lines, of the first on the screen.
        top: the index of the first row on the screen.
        height: how many rows the screen has.
        sort: the column that was chosen; None for the table's own choice.
        filter: words that a row must have, or must not with ``!`` in front.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self.table: Table[Any] | None = None
        self.rows: list[Any] = []
        self.lines: list[Line] | None = None
        self.summary: list[Line] | None = None
        self.cursor = 0
        self.top = 0
        self.height = 1
        self.sort: str | None = None
        self.filter = ""
        self._descending: bool | None = None
        self._all: list[Any] = []
        self._all_of: object = None
        self._rows_of: object = None
        # The row that the cursor follows; None while it stays on top, whatever row that is.
        self._key: Hashable = None

    @property
    def sorted_by(self) -> str | None:
        """The name of the column that the rows are sorted by; None for the model's order."""
        return self.sort or (self.table.sort if self.table is not None else None)

    @property
    def descending(self) -> bool:
        """Whether the largest is first."""
        if self._descending is not None:
            return self._descending
        return self.table is not None and self.sort is None and self.table.descending

    @property
    def chosen(self) -> Any:
        """The row below the cursor; None if there is none."""
        return self.rows[self.cursor] if self.table is not None and self.rows else None

    def look(self, model: Model, *, is_paused: bool) -> None:
        """Take what the model knows now, unless what was seen is to stay."""
        if self.table is None or not is_paused:
            self.table = self.view.table(model)
            if self.table is None:
                return
            version = self.table.version
            if version is None or version != self._all_of:
                self._all = list(self.table.rows)
                self._all_of, self._rows_of = version, None
        wanted = (self.sorted_by, self.descending, self.filter)
        if self._rows_of == wanted:
            return
        self._rows_of = wanted
        self.rows = ordered(self._all, self.table, *wanted)
        self._follow()

    def _follow(self) -> None:
        assert self.table is not None
        if self._key is not None:
            key = self.table.key
            chosen = self._key
            # Most often it is where it was.
            if not (self.cursor < len(self.rows) and key(self.rows[self.cursor]) == chosen):
                found = next((n for n, row in enumerate(self.rows) if key(row) == chosen), None)
                self.cursor = self.cursor if found is None else found
        self.move_to(self.cursor)

    def move(self, step: int) -> None:
        """Have another row chosen, so many further down."""
        self.move_to(self.cursor + step)

    def move_to(self, index: int) -> None:
        """Have a row chosen; the nearest, if there is none so far down."""
        if self.table is None:
            last = max(0, len(self.lines or ()) - self.height)
            self.cursor = self.top = max(0, min(index, last))
            return
        self.cursor = max(0, min(index, len(self.rows) - 1))
        self._key = self.table.key(self.rows[self.cursor]) if self.cursor else None
        self.scroll()

    def scroll(self) -> None:
        """Have the chosen row on the screen, and no empty lines that could show rows."""
        if self.table is None:
            return
        self.top = max(self.top, self.cursor - self.height + 1)
        self.top = max(0, min(self.top, self.cursor, len(self.rows) - self.height))

    def sort_by(self, name: str, *, descending: bool | None = None) -> None:
        """Sort by a column; numbers, which stand at the right, begin with the largest."""
        assert self.table is not None
        self.sort = name
        if descending is None:
            column = self.table.column(name)
            descending = column is not None and column.right
        self._descending = descending

    def sort_by_next(self) -> None:
        """Sort by the column after the one that it is sorted by."""
        if self.table is not None:
            names = self.table.sortable()
            now = self.sorted_by
            self.sort_by(names[(names.index(now) + 1) % len(names) if now in names else 0])

    def sort_by_click(self, name: str) -> None:
        """Sort by a column, or turn its order around if it is the one already."""
        if name == self.sorted_by:
            self.reverse()
        elif self.table is not None and name in self.table.sortable():
            self.sort_by(name)

    def reverse(self) -> None:
        """Turn the order around."""
        if self.table is not None and self.sorted_by is not None:
            self._descending = not self.descending


def ordered(
    rows: Sequence[Any], table: Table[Any], sort: str | None, descending: bool, filter: str
) -> list[Any]:
    """The rows that have all words of the filter, sorted.

    Args:
        rows: of the table.
        table: its columns say what is searched and compared.
        sort: the name of a column; None keeps the order.
        descending: whether the largest is first.
        filter: words; each must be in one of the searched columns, upper and lower case alike, or
            in none of them if it begins with ``!``.
    """
    found = list(rows) if not filter.split() else _filtered(rows, table, filter)
    column = None if sort is None else table.column(sort)
    value = None if column is None else column.value
    if value is None:
        return found
    known = [row for row in found if value(row) is not None]
    unknown = [row for row in found if value(row) is None] if len(known) < len(found) else []
    known.sort(key=value, reverse=descending)  # type: ignore[arg-type] # of one type
    return known + unknown


def _filtered(rows: Sequence[Any], table: Table[Any], filter: str) -> list[Any]:
    words = filter.lower().split()
    wanted = [word for word in words if not word.startswith("!")]
    unwanted = [word[1:] for word in words if len(word) > 1 and word.startswith("!")]
    getters = [_searched_text(column) for column in table.columns if _is_searched(column, rows)]

    def has_them(row: Any) -> bool:
        text = "\n".join([text for get in getters if (text := get(row))]).lower()
        for word in wanted:
            if word not in text:
                return False
        return not (unwanted and any(word in text for word in unwanted))

    return [row for row in rows if has_them(row)]


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
