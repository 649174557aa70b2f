"""Histograms of many minutes added up, and what can be read from the sum. Pure.

A percentile of a longer time comes from the buckets of all its minutes. The percentiles of the
minutes cannot tell it: their average is nobody's.
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

#: Rows of a heatmap for each doubling of the time.
_BANDS: Final = 4


@attrs.frozen(eq=False)
class Buckets:
    """Numbers of buckets, each once and sorted, and how many requests each has counted."""

    numbers: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, numbers: NDArray[np.int64], counts: NDArray[np.int64]) -> Buckets:
        """The sum of histograms whose buckets come in any order, and more than once."""
        each, places = np.unique(numbers, return_inverse=True)
        sums = np.zeros(len(each), np.int64)
        np.add.at(sums, places, counts)
        return cls(each, sums)

    def percentiles(self, largest: int | None = None) -> Percentiles:
        """What ``SHARES`` of the requests do not exceed, and in no case more than ``largest``."""
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
    """The histogram of each phase, from cells, which number the buckets of all phases."""
    found = dict(grouped(cells // BUCKETS_MAX))
    nothing = np.empty(0, np.int64)
    return {
        phase: Buckets.of(cells[rows] % BUCKETS_MAX, counts[rows])
        for number, phase in enumerate(PHASES)
        for rows in [found.get(number, nothing)]
    }


def grouped(keys: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each key, and which rows have it."""
    order = np.argsort(keys, kind="stable")
    each, starts = np.unique(keys[order], return_index=True)
    # Without any row there is still one part, an empty one.
    yield from zip(each.tolist(), np.split(order, starts[1:]), strict=False)


def heat(index: int, buckets: Buckets) -> Iterator[Heat]:
    """A bin of a heatmap, whose rows are a quarter of a doubling high."""
    bands: dict[int, int] = {}
    times = middle(buckets.numbers).tolist()
    for time, count in zip(times, buckets.counts.tolist(), strict=True):
        band = math.floor(_BANDS * math.log2(max(1, time)))
        bands[band] = bands.get(band, 0) + count
    for band, count in sorted(bands.items()):
        yield Heat(index, 2 ** (band / _BANDS), 2 ** ((band + 1) / _BANDS), count)
