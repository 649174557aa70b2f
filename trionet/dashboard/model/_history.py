"""Bounded histories of numbers, and growth rates of counters."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

#: The maximum age of values, in seconds.
SECONDS_MAX: Final = 300.0
#: The maximum number of values, two per second.
VALUES_MAX: Final = 600


class History:
    """The recent values of a number with the times at which they were read, in order.

    None marks a failed read, which a chart shows as a gap.

    Args:
        seconds_max: the maximum age of values relative to the newest, in seconds.
        values_max: the maximum number of values to keep.
    """

    __slots__ = ("_seconds_max", "_values")

    def __init__(self, seconds_max: float = SECONDS_MAX, values_max: int = VALUES_MAX) -> None:
        self._seconds_max = seconds_max
        self._values: deque[tuple[float, float | None]] = deque(maxlen=values_max)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[tuple[float, float | None]]:
        return iter(self._values)

    def add(self, at: float, value: float) -> None:
        """Add a value, replacing an earlier value with the same time.

        If the time is before the newest value, the clock has changed, for example because the
        broker was restarted. The older values are then dropped.
        """
        values = self._values
        if values and at <= values[-1][0]:
            if at == values[-1][0]:
                values.pop()
            else:
                values.clear()
        values.append((at, value))
        while values[0][0] < at - self._seconds_max:
            values.popleft()

    def mark_unknown(self) -> None:
        """Mark the current value as unknown, unless the history is empty."""
        if self._values:
            self._values.append((self._values[-1][0], None))

    @property
    def last(self) -> float | None:
        """The newest value, or None if there is none or the value is unknown."""
        return self._values[-1][1] if self._values else None

    def values(self, count_max: int | None = None) -> list[float | None]:
        """Return the newest values, at most ``count_max``, in chronological order."""
        found = [value for _, value in self._values]
        return found if count_max is None else found[max(0, len(found) - count_max) :]


class Rate:
    """The growth rate of a counter between two reads.

    A decrease means that the counter was reset, for example because the broker was restarted. The
    rate is then unknown until the next read.
    """

    __slots__ = ("_at", "_count")

    def __init__(self) -> None:
        self._at: float | None = None
        self._count = 0.0

    def update(self, at: float, count: float) -> float | None:
        """Record a count at a time in seconds, and return the growth per second, or None."""
        before, self._at = self._at, at
        grown, self._count = count - self._count, count
        if before is None or at <= before or grown < 0:
            return None
        return grown / (at - before)
