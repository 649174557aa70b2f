"""A histogram of durations, with eight buckets per power of two.

Recording a value takes one index computation and one addition; a quantile is accurate to within an
eighth.
"""

# Compiled by mypyc.

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

_SPLIT_BITS = 3
_SPLIT = 1 << _SPLIT_BITS
# Enough for any number below 2 to the 64.
BUCKETS = 64 * _SPLIT


class Histogram:
    """A histogram of non-negative integers, such as microseconds."""

    __slots__ = ("_buckets", "count", "maximum")

    def __init__(self) -> None:
        self._buckets = [0] * BUCKETS
        self.count = 0
        self.maximum = 0

    def record(self, value: int) -> None:
        self._buckets[bucket_of(value)] += 1
        self.count += 1
        self.maximum = max(self.maximum, value)

    def add(self, value: int, count: int) -> None:
        """Record a value ``count`` times."""
        if count:
            self._buckets[bucket_of(value)] += count
            self.count += count
            self.maximum = max(self.maximum, value)

    def counts(self) -> list[int]:
        """Return the count of each bucket; see :func:`upper_of` for the bounds of a bucket."""
        return list(self._buckets)

    def quantile(self, fraction: float) -> int:
        """Return a quantile, accurate to within an eighth; 0 if there are no values.

        Args:
            fraction: the fraction of all values that do not exceed the quantile, from 0 to 1.
        """
        [upper] = quantiles_of(self._buckets, [fraction])
        return min(upper, self.maximum)

    def clear(self) -> None:
        self._buckets = [0] * len(self._buckets)
        self.count = 0
        self.maximum = 0


def bucket_of(value: int) -> int:
    """Return the index of a value's bucket; every value up to 15 has a bucket of its own."""
    shift = value.bit_length() - _SPLIT_BITS - 1
    if shift <= 0:
        return value
    return (shift << _SPLIT_BITS) + (value >> shift)


def upper_of(bucket: int) -> int:
    """Return the upper bound of a bucket, which belongs to it."""
    shift = (bucket >> _SPLIT_BITS) - 1
    if shift <= 0:
        return bucket
    return (((bucket & (_SPLIT - 1)) + _SPLIT + 1) << shift) - 1


def quantiles_of(counts: Sequence[int], fractions: Iterable[float]) -> Iterator[int]:
    """Yield the quantile for each fraction: the value that this fraction of values do not exceed.

    Quantiles are accurate to within an eighth.

    Args:
        counts: the count of each bucket; if all are 0, so are all quantiles.
        fractions: numbers from 0 to 1.
    """
    sums = list(accumulate(counts))
    total = sums[-1]
    for fraction in fractions:
        yield upper_of(bisect_left(sums, max(1, fraction * total))) if total else 0
