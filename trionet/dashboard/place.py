"""Where one is in a view: sorted by what, filtered by what, on which row; pure."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from .ordering import Order, Ordering
from .view import Line, Table, View

if TYPE_CHECKING:
    from .model import Model


class ViewState:
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
        is_frozen: whether what was seen stays; before something has come there is nothing to keep.
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
        self.is_frozen = False
        self.sort: str | None = None
        self.filter = ""
        self._descending: bool | None = None
        self._is_waiting = True
        # All rows, the version of the table that they are of, and whether there are newer ones
        # than the rows above were made of; in which order these are, and what comes in their place.
        self._all: list[Any] = []
        self._all_of: Hashable = None
        self._is_old = True
        self._order = Order()
        self._coming: Ordering | None = None
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
    def selected(self) -> Any:
        """The row below the cursor; None if there is none."""
        return self.rows[self.cursor] if self.table is not None and self.rows else None

    @property
    def is_updating(self) -> bool:
        """Whether there are newer rows, or the same in another order, before long."""
        return self._coming is not None

    def look(self, model: Model, *, is_paused: bool) -> None:
        """Take what the model knows now, unless what was seen is to stay.

        New rows are filtered some at a time (:meth:`step`): until they are all there, those that
        were seen stay.
        """
        self.is_frozen = is_paused and not self._is_waiting
        if not self.is_frozen:
            self._take(model)
        if self.table is None:
            self._coming = None
            return
        order = Order(self.sorted_by, self.descending, self.filter)
        if self._coming is not None and self._coming.order != order:
            self._coming, self._is_old = None, True  # something else is wanted by now
        if self._coming is None and (self._is_old or self._order != order):
            # Rows that come meanwhile are taken the next time, or a long list would never be done.
            self._coming, self._is_old = Ordering(self._all, self.table, order), False
        self.step()

    def _take(self, model: Model) -> None:
        self.table = table = self.view.table(model)
        if table is None:
            self._is_waiting = self.view.is_waiting(model)
            return
        self._is_waiting = table.missing is not None
        if table.version is None or table.version != self._all_of:
            self._all, self._all_of, self._is_old = list(table.rows), table.version, True

    def update_fully(self, model: Model) -> None:
        """Take what the model knows now, however long it takes."""
        self.look(model, is_paused=False)
        while self.is_updating:
            self.step()

    def step(self) -> None:
        """Filter and sort some more of the rows that are to come."""
        coming = self._coming
        if coming is None:
            return
        coming.step()
        if coming.is_done:
            self.rows, self._order, self._coming = coming.rows, coming.order, None
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
