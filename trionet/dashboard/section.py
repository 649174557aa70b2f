"""A list of the model: rows by their key, how complete it is, and why it is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, ValuesView
from typing import Generic, TypeVar

K = TypeVar("K")
R = TypeVar("R")


class Section(Mapping[K, R], Generic[K, R]):
    """Rows by key, in the order in which the source tells them.

    Attributes:
        missing: a sentence that says why the source cannot give this list; None if it can.
        failure: a sentence about the last attempt, if that failed: the rows are older.
        total: how many rows there are at the source; more than are here while it is being read.
        version: grows with each change, so that who sorts the rows need not do so for each frame.
        updated_at: when the rows were read, in seconds of the loop's clock; None before the first.
        as_of: the same of the oldest values in them, where those are read one after the other.
    """

    def __init__(self, missing: str | None = None) -> None:
        self.missing = missing
        self.failure: str | None = None
        self.total = 0
        self.version = 0
        self.updated_at: float | None = None
        self.as_of: float | None = None
        self._rows: dict[K, R] = {}

    def __getitem__(self, key: K) -> R:
        return self._rows[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def values(self) -> ValuesView[R]:
        """The rows; of thousands, those of a dict are gone through much faster."""
        return self._rows.values()

    @property
    def is_whole(self) -> bool:
        """Whether every row of the source is here."""
        return self.updated_at is not None and len(self._rows) >= self.total

    def replace(self, rows: dict[K, R], at: float, total: int | None = None) -> None:
        """Have these rows in place of all others.

        Args:
            rows: by key; they are the section's from now on.
            at: the time, in seconds of the loop's clock.
            total: how many there are at the source, if these are not all.
        """
        self._rows = rows
        self.total = len(rows) if total is None else max(total, len(rows))
        self._changed(at)

    def update(self, rows: Mapping[K, R], at: float, total: int | None = None) -> None:
        """Add rows, or put them in the place of what their keys had before."""
        self._rows.update(rows)
        self.total = max(self.total if total is None else total, len(self._rows))
        self._changed(at)

    def retain(self, keys: Mapping[K, object] | set[K], at: float) -> None:
        """Forget the rows of all other keys."""
        if any(key not in keys for key in self._rows):
            self._rows = {key: row for key, row in self._rows.items() if key in keys}
        self.total = len(self._rows)
        self._changed(at)

    def mark_missing(self, why: str) -> None:
        """Say why the source has no such list."""
        if self.missing != why or self._rows:
            self.missing, self._rows, self.total = why, {}, 0
            self.version += 1

    def mark_failed(self, why: str) -> None:
        """Say why an attempt failed; the rows stay."""
        if self.failure != why:
            self.failure = why
            self.version += 1

    def amend(self, rows: Mapping[K, R]) -> None:
        """Have rows without what is not known any more, such as rates; they grow no younger."""
        self._rows.update(rows)
        self.version += 1

    def clear_errors(self) -> None:
        """Take back why there is no such list, or why an attempt failed: it will be read."""
        if self.missing is not None or self.failure is not None:
            self.missing = self.failure = None
            self.version += 1

    def _changed(self, at: float) -> None:
        self.missing = self.failure = None
        self.updated_at = at
        self.version += 1
