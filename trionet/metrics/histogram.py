"""A histogram of durations with buckets that grow by powers of two, split in eight.

Recording is one index computation and one addition; a quantile is right to within an eighth.
"""

from __future__ import annotations

_SPLIT_BITS = 3
_SPLIT = 1 << _SPLIT_BITS


class Histogram:
    """Counts of non-negative whole numbers, such as microseconds."""

    __slots__ = ("_buckets", "count", "maximum")

    def __init__(self) -> None:
        self._buckets = [0] * (64 * _SPLIT)
        self.count = 0
        self.maximum = 0

    def record(self, value: int) -> None:
        self._buckets[_bucket(value)] += 1
        self.count += 1
        self.maximum = max(self.maximum, value)

    def quantile(self, fraction: float) -> int:
        """The value that ``fraction`` of all recorded ones do not exceed; 0 if there are none."""
        wanted = fraction * self.count
        seen = 0
        for index, count in enumerate(self._buckets):
            seen += count
            if count and seen >= wanted:
                return min(_upper(index), self.maximum)
        return self.maximum

    def clear(self) -> None:
        self._buckets = [0] * len(self._buckets)
        self.count = 0
        self.maximum = 0


def _bucket(value: int) -> int:
    shift = value.bit_length() - _SPLIT_BITS - 1
    if shift <= 0:
        return value
    return (shift << _SPLIT_BITS) + (value >> shift)


def _upper(index: int) -> int:
    shift = (index >> _SPLIT_BITS) - 1
    if shift <= 0:
        return index
    return (((index & (_SPLIT - 1)) + _SPLIT + 1) << shift) - 1
