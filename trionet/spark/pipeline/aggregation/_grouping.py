"""Groups rows by the values of some columns, vectorized with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

_CODES_MAX: Final = 1 << 62
_SMALL: Final = 1 << 16


@attrs.frozen
class Groups:
    """A grouping of rows.

    Attributes:
        of_row: the group number of each row.
        first: the index of the first row of each group.
        order: the row indices, group by group.
        begins: the position in ``order`` at which each group begins.
    """

    of_row: Numbers
    first: Numbers
    order: Numbers
    begins: Numbers

    @classmethod
    def by(cls, columns: Sequence[Any]) -> Groups:
        """Group rows by equal values in all columns.

        Args:
            columns: NumPy arrays of integers or Arrow arrays of any type, of equal length.
        """
        codes = _codes(columns)
        order = np.argsort(codes, kind="stable")
        in_order = codes[order]
        begins_here = np.ones(len(codes), bool)
        np.not_equal(in_order[1:], in_order[:-1], out=begins_here[1:])
        begins = np.flatnonzero(begins_here)
        of_row = np.empty(len(codes), np.int64)
        of_row[order] = np.cumsum(begins_here) - 1
        return cls(of_row, order[begins], order, begins)

    def __len__(self) -> int:
        return len(self.first)

    def sums(self, numbers: Numbers) -> Numbers:
        """Return the sum of each column of a matrix, per group."""
        return _reduced(np.add, numbers, self)

    def maxima(self, numbers: Numbers) -> Numbers:
        """Return the maximum of each column of a matrix, per group."""
        return _reduced(np.maximum, numbers, self)


def _reduced(of_two: np.ufunc, numbers: Numbers, groups: Groups) -> Numbers:
    if not len(groups):
        return numbers[:0]
    reduced: Numbers = of_two.reduceat(numbers[groups.order], groups.begins, axis=0)
    return reduced


def _codes(columns: Sequence[Any]) -> NDArray[Any]:
    """Return a code for each row; equal rows have equal codes."""
    combined: Numbers | None = None
    size = 1
    for column in columns:
        codes, count = _numbered(column)
        if combined is None:
            combined, size = codes, count
            continue
        if size * count >= _CODES_MAX:
            found, combined = np.unique(combined, return_inverse=True)
            size = len(found)
        combined = combined * count + codes
        size *= count
    assert combined is not None, "there must be at least one column"
    # 16-bit numbers are radix-sorted, ten times as fast.
    return combined.astype(np.uint16) if size <= _SMALL else combined


def _numbered(column: Any) -> tuple[Numbers, int]:
    """Return a non-negative code for each value, and a number greater than every code."""
    if not isinstance(column, np.ndarray):
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        return column.indices.to_numpy().astype(np.int64), len(column.dictionary) + 1
    if not len(column):
        return column.astype(np.int64), 1
    numbers = column.astype(np.int64)
    low = int(numbers.min())
    span = int(numbers.max()) - low + 1
    if span < 1 << 31:
        return numbers - low, span
    found, codes = np.unique(numbers, return_inverse=True)
    return codes.astype(np.int64), len(found)
