"""Cutting a range of time into bins that a chart has room for. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

#: How many a chart has at most.
BINS_MAX: Final = 120

MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
#: Lengths of time that people count in, in seconds.
ROUND_TIMES: Final = (
    *(minutes * MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * DAY for days in (1, 2, 7, 14, 28, 91, 182, 364)),
)


@attrs.frozen
class Bins:
    """Times of equal length that follow one another."""

    start: datetime
    seconds: int
    count: int

    @classmethod
    def over(cls, start: datetime, end: datetime) -> Bins:
        """The shortest that a chart has room for."""
        whole = (end - start).total_seconds()
        fitting = (each for each in ROUND_TIMES if whole <= each * BINS_MAX)
        seconds = next(fitting, DAY * math.ceil(whole / BINS_MAX / DAY))
        return cls(start, seconds, max(1, math.ceil(whole / seconds)))

    @property
    def end(self) -> datetime:
        return self.time(self.count)

    def time(self, index: int) -> datetime:
        """When a bin begins."""
        return self.start + timedelta(seconds=self.seconds * index)

    def place(self, time: datetime) -> float:
        """How many bins are before a time."""
        return (time - self.start).total_seconds() / self.seconds

    def covered(self, end: datetime) -> Sequence[float]:
        """How many seconds of each bin are before ``end``; the last one may reach beyond it."""
        ends = (min(end, self.time(index + 1)) for index in range(self.count))
        return [(each - self.time(index)).total_seconds() for index, each in enumerate(ends)]
