"""Divides a time range into the bins of a chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

#: The maximum number of bins per chart.
BINS_MAX: Final = 120

MINUTE: Final = 60
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
#: Round durations, in seconds.
ROUND_TIMES: Final = (
    *(minutes * MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * DAY for days in (1, 2, 7, 14, 28, 91, 182, 364)),
)


@attrs.frozen
class Bins:
    """Adjacent time intervals of equal length, as in a timeline."""

    start: datetime
    seconds: int
    count: int

    @classmethod
    def over(cls, start: datetime, end: datetime) -> Bins:
        """Divide a time range into the shortest bins of round length that still fit in a chart."""
        whole = (end - start).total_seconds()
        candidates = (each for each in ROUND_TIMES if whole <= each * BINS_MAX)
        seconds = next(candidates, DAY * math.ceil(whole / BINS_MAX / DAY))
        return cls(start, seconds, max(1, math.ceil(whole / seconds)))

    @property
    def end(self) -> datetime:
        return self.time(self.count)

    def time(self, index: int) -> datetime:
        """Return the start time of a bin."""
        return self.start + timedelta(seconds=self.seconds * index)

    def place(self, time: datetime) -> float:
        """Return the position of a time, as a number of bins from the start."""
        return (time - self.start).total_seconds() / self.seconds

    def covered(self, end: datetime) -> Sequence[float]:
        """Return how many seconds of each bin precede ``end``, a time in the last bin."""
        ends = (min(end, self.time(index + 1)) for index in range(self.count))
        return [(each - self.time(index)).total_seconds() for index, each in enumerate(ends)]
