"""How often which time was taken, by buckets of whole microseconds: what percentiles come from.

Up to 127 each number has a bucket of its own; from there on every doubling has 64. A bucket is told
as its middle, so that what is told is at most 1/128 of the true number away from it (0.79 %).
Nothing but whole numbers goes in: buckets add up to the same in whatever order.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

#: Buckets of each doubling.
BUCKETS: Final = 64
#: Numbers below are exact.
EXACT_BELOW: Final = 2 * BUCKETS
#: By how much of the true number a percentile can be wrong.
ERROR_MAX: Final = 1 / EXACT_BELOW
#: More than there are buckets, for 32 bits; a power of two.
BUCKETS_MAX: Final = 2048

_EXACT_BITS: Final = EXACT_BELOW.bit_length() - 1


def bucket(numbers: NDArray[Any]) -> Numbers:
    """Which bucket each number is in.

    Args:
        numbers: from 0 to 2**32 - 1.
    """
    # The exponent is how many bits a number has; a double holds one of 32 bits as it is.
    bits = np.frexp(numbers.astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(bits - _EXACT_BITS, 0)
    found: Numbers = shift * BUCKETS + (numbers.astype(np.int64) >> shift)
    return found


def middle(buckets: Numbers) -> Numbers:
    """The number that is told for each bucket."""
    shift = np.maximum(buckets // BUCKETS - 1, 0)
    found: Numbers = ((buckets - shift * BUCKETS) << shift) + ((1 << shift) >> 1)
    return found


def percentile(buckets: Numbers, counts: Numbers, per_mille: int) -> int:
    """The number below or at which so many of a thousand are (nearest rank); 0 of none.

    Args:
        buckets: those that are not empty, ascending.
        counts: how many are in each.
        per_mille: 500 is the median, 999 the percentile 99.9.
    """
    bounds = np.array([0, len(buckets)])
    return int(percentiles(buckets, counts, bounds, per_mille)[0])


def percentiles(buckets: Numbers, counts: Numbers, bounds: Numbers, per_mille: int) -> Numbers:
    """The same for many histograms, one behind the other.

    Args:
        buckets: of all, ascending in each.
        counts: how many are in each bucket.
        bounds: where each histogram begins, and where the last one ends.
        per_mille: 500 is the median, 999 the percentile 99.9.
    """
    told = np.zeros(len(bounds) - 1, np.int64)
    below = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    before, until = below[bounds[:-1]], below[bounds[1:]]
    rank = -(-(until - before) * per_mille // 1000)
    filled = rank > 0
    at = np.searchsorted(below[1:], before[filled] + rank[filled], side="left")
    told[filled] = middle(buckets[at])
    return told
