"""The axes of charts: the positions of values and of tick marks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Final, Protocol

import attrs

from ..data._bins import DAY, ROUND_TIMES

#: The maximum number of ticks on an axis; round steps may yield about half as many.
_TICKS: Final = 6
_TIME_TICKS: Final = 9


class Scale(Protocol):
    """A mapping of values to positions on an axis, from 0 to 1."""

    def place(self, value: float) -> float: ...

    def ticks(self) -> list[float]: ...


@attrs.frozen
class Linear:
    """An axis from zero to a round number that no value exceeds."""

    top: float
    step: float

    @classmethod
    def over(cls, largest: float) -> Linear:
        step = _round_up((largest or 1.0) / _TICKS)
        return cls(step * math.ceil((largest or 1.0) / step - 1e-9), step)

    def place(self, value: float) -> float:
        return value / self.top

    def ticks(self) -> list[float]:
        return [self.step * n for n in range(round(self.top / self.step) + 1)]


@attrs.frozen
class Logarithmic:
    """A logarithmic axis between two powers of ten, at least 1, that enclose all values."""

    low: int
    high: int

    @classmethod
    def over(cls, smallest: float, largest: float) -> Logarithmic:
        low = math.floor(math.log10(max(1.0, smallest)) + 1e-9)
        high = math.ceil(math.log10(max(1.0, largest)) - 1e-9)
        return cls(low, max(high, low + 1))

    def place(self, value: float) -> float:
        exponent = math.log10(max(1.0, value))
        return max(0.0, (exponent - self.low) / (self.high - self.low))

    def ticks(self) -> list[float]:
        return [10.0**exponent for exponent in range(self.low, self.high + 1)]


def _round_up(value: float) -> float:
    """Round up to the next of 1, 2, 5, 10, 20, ..., or of 0.1, 0.2, 0.5, ..."""
    base = 10.0 ** math.floor(math.log10(value))
    return next(base * each for each in (1, 2, 5, 10) if base * each >= value * (1 - 1e-9))


def time_ticks(start: datetime, end: datetime) -> list[tuple[datetime, str]]:
    """Return the ticks for a range: round times, with their labels.

    The first label and the labels at midnight include the day, so that all labels are unambiguous.
    """
    seconds = (end - start).total_seconds()
    step = next((each for each in ROUND_TIMES if seconds / each <= _TIME_TICKS), ROUND_TIMES[-1])
    first = math.ceil(start.timestamp() / step) * step
    times = takewhile(lambda time: time <= end, _times(first, step))
    return [(time, _label(time, step, is_first=not n)) for n, time in enumerate(times)]


def _times(first: float, step: float) -> Iterator[datetime]:
    time = datetime.fromtimestamp(first, UTC)
    while True:
        yield time
        time += timedelta(seconds=step)


def _label(time: datetime, step: float, *, is_first: bool) -> str:
    if step >= DAY:
        return time.strftime("%Y-%m-%d" if is_first or time.timetuple().tm_yday == 1 else "%m-%d")
    is_midnight = time.hour == time.minute == 0
    return time.strftime("%m-%d %H:%M" if is_first or is_midnight else "%H:%M")
