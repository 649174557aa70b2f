"""Latency histograms with logarithmic buckets of whole microseconds, and their percentiles.

Each value up to 127 has its own bucket; larger values have 64 buckets per doubling. A bucket is
represented by its midpoint, so the relative error of a percentile is at most 1/128 (0.79 %).
Counts are integers, so histograms can be added in any order with the same result.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["bucket", "percentile"]

Numbers = NDArray[np.int64]

#: Buckets per doubling.
BUCKETS: Final = 64
#: Values below this have their own buckets.
EXACT_BELOW: Final = 2 * BUCKETS
#: The maximum relative error of a percentile.
ERROR_MAX: Final = 1 / EXACT_BELOW
#: A power of two greater than the number of buckets for 32-bit values.
BUCKETS_MAX: Final = 2048

_EXACT_BITS: Final = EXACT_BELOW.bit_length() - 1


def bucket(numbers: NDArray[Any]) -> Numbers:
    """Return the bucket of each number.

    Args:
        numbers: integers from 0 to 2**32 - 1.
    """
    # The exponent is the number of bits: doubles represent 32-bit integers exactly.
    bits = np.frexp(numbers.astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(bits - _EXACT_BITS, 0)
    found: Numbers = shift * BUCKETS + (numbers.astype(np.int64) >> shift)
    return found


def middle(buckets: Numbers) -> Numbers:
    """Return the midpoint of each bucket."""
    shift = np.maximum(buckets // BUCKETS - 1, 0)
    found: Numbers = ((buckets - shift * BUCKETS) << shift) + ((1 << shift) >> 1)
    return found


def percentile(buckets: Numbers, counts: Numbers, per_mille: int) -> int:
    """Return a percentile of a histogram by nearest rank; 0 if the histogram is empty.

    Args:
        buckets: the non-empty buckets, ascending.
        counts: the count of each bucket.
        per_mille: the percentile in thousandths: 500 is the median, 999 is p99.9.
    """
    bounds = np.array([0, len(buckets)])
    return int(percentiles(buckets, counts, bounds, per_mille)[0])


def percentiles(buckets: Numbers, counts: Numbers, bounds: Numbers, per_mille: int) -> Numbers:
    """Return a percentile of each of several concatenated histograms.

    Args:
        buckets: the non-empty buckets of all histograms, ascending in each histogram.
        counts: the count of each bucket.
        bounds: the index of the first bucket of each histogram, and the end of the last histogram.
        per_mille: the percentile in thousandths: 500 is the median, 999 is p99.9.
    """
    found = np.zeros(len(bounds) - 1, np.int64)
    below = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    before, until = below[bounds[:-1]], below[bounds[1:]]
    rank = -(-(until - before) * per_mille // 1000)
    filled = rank > 0
    at = np.searchsorted(below[1:], before[filled] + rank[filled], side="left")
    found[filled] = middle(buckets[at])
    return found
