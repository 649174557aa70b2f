"""The lists of the model, without their rows, which take longer to load than a first frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, ValuesView
from typing import Generic, TypeVar

K = TypeVar("K")
R = TypeVar("R")


class Section(Mapping[K, R], Generic[K, R]):
    """A mapping from keys to rows, in the order of the source.

    Attributes:
        missing: why the source does not have this list, as a sentence; None if it has the list.
        failure: why the last read failed, in which case the rows are from an earlier read; None if
            it succeeded.
        total: the number of rows in the source, some of which may not have been read yet.
        version: incremented with every change, so that rows need not be sorted for each frame.
        updated_at: the time of the last read, in seconds on the loop's clock; None before the first
            read.
        as_of: the time when the oldest values were read, if rows are read one after another.
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
        """Return the rows. Iterating over this view is much faster than over Mapping's."""
        return self._rows.values()

    @property
    def is_whole(self) -> bool:
        """Whether all rows of the source have been read."""
        return self.updated_at is not None and len(self._rows) >= self.total

    def replace(self, rows: dict[K, R], at: float, total: int | None = None) -> None:
        """Replace all rows.

        Args:
            rows: the rows by their keys; the section takes ownership of the dict.
            at: the time in seconds on the loop's clock.
            total: the number of rows in the source, if ``rows`` is incomplete.
        """
        self._rows = rows
        self.total = len(rows) if total is None else max(total, len(rows))
        self._changed(at)

    def update(self, rows: Mapping[K, R], at: float, total: int | None = None) -> None:
        """Add rows, replacing rows with the same keys."""
        self._rows.update(rows)
        self.total = max(self.total if total is None else total, len(self._rows))
        self._changed(at)

    def retain(self, keys: Mapping[K, object] | set[K], at: float) -> None:
        """Drop all rows whose key is not in ``keys``."""
        if any(key not in keys for key in self._rows):
            self._rows = {key: row for key, row in self._rows.items() if key in keys}
        self.total = len(self._rows)
        self._changed(at)

    def mark_missing(self, why: str) -> None:
        """Record why the source does not have this list, and drop the rows."""
        if self.missing != why or self._rows:
            self.missing, self._rows, self.total = why, {}, 0
            self.version += 1

    def mark_failed(self, why: str) -> None:
        """Record why a read failed, keeping the rows."""
        if self.failure != why:
            self.failure = why
            self.version += 1

    def amend(self, rows: Mapping[K, R]) -> None:
        """Replace rows without changing the time of the read, to remove values such as rates."""
        self._rows.update(rows)
        self.version += 1

    def clear_errors(self) -> None:
        """Clear the reasons for missing data and failed reads before a new read."""
        if self.missing is not None or self.failure is not None:
            self.missing = self.failure = None
            self.version += 1

    def _changed(self, at: float) -> None:
        self.missing = self.failure = None
        self.updated_at = at
        self.version += 1
