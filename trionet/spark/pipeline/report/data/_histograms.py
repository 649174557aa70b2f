"""Merges the histograms of many minutes, for percentiles and heatmaps.

A percentile over a longer period is computed from the buckets of all its minutes. It cannot be
computed from the percentiles of the individual minutes: their average is meaningless.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from ...aggregation._partials import PHASES
from ...histogram import BUCKETS_MAX, middle, percentile
from ._figures import SHARES, Heat, Percentiles

#: The number of rows in a heatmap per doubling of the duration.
_BANDS: Final = 4


@attrs.frozen(eq=False)
class Buckets:
    """A histogram: distinct, sorted bucket numbers, and the count of each bucket."""

    numbers: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, numbers: NDArray[np.int64], counts: NDArray[np.int64]) -> Buckets:
        """Merge buckets given in any order, adding up the counts of equal buckets."""
        each, places = np.unique(numbers, return_inverse=True)
        sums = np.zeros(len(each), np.int64)
        np.add.at(sums, places, counts)
        return cls(each, sums)

    def percentiles(self, largest: int | None = None) -> Percentiles:
        """Compute the percentiles of ``SHARES``, capped at ``largest``."""
        if not self.counts.sum():
            return dict.fromkeys(SHARES)
        values = {
            name: float(percentile(self.numbers, self.counts, share))
            for name, share in SHARES.items()
        }
        return {
            name: value if largest is None else min(value, largest)
            for name, value in values.items()
        }


def by_phase(cells: NDArray[np.int64], counts: NDArray[np.int64]) -> Mapping[str, Buckets]:
    """Split the cells of all phases into a histogram per phase."""
    found = dict(grouped(cells // BUCKETS_MAX))
    empty = np.empty(0, np.int64)
    return {
        phase: Buckets.of(cells[rows] % BUCKETS_MAX, counts[rows])
        for number, phase in enumerate(PHASES)
        for rows in [found.get(number, empty)]
    }


def grouped(keys: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each distinct key with the indices of its rows."""
    order = np.argsort(keys, kind="stable")
    each, starts = np.unique(keys[order], return_index=True)
    # Without rows np.split still returns one part, an empty one: hence not strict.
    yield from zip(each.tolist(), np.split(order, starts[1:]), strict=False)


def heat(index: int, buckets: Buckets) -> Iterator[Heat]:
    """Yield the cells of one bin of a heatmap; each cell covers a quarter of a doubling."""
    bands: dict[int, int] = {}
    times = middle(buckets.numbers).tolist()
    for time, count in zip(times, buckets.counts.tolist(), strict=True):
        band = math.floor(_BANDS * math.log2(max(1, time)))
        bands[band] = bands.get(band, 0) + count
    for band, count in sorted(bands.items()):
        yield Heat(index, 2 ** (band / _BANDS), 2 ** ((band + 1) / _BANDS), count)
