"""The recent values of a number, bounded however often it is read."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

#: How far back values are kept, in seconds.
SECONDS_MAX: Final = 300.0
#: How many values are kept at most: two per second.
VALUES_MAX: Final = 600


class History:
    """The recent values of one number with their times, which never decrease.

    None marks a failed read, so that a chart has a gap there.

    Args:
        seconds_max: values older than this, relative to the newest, are dropped.
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
        """Add a value; a second one at the same time replaces the first.

        A time before the newest one means that the clock has changed, for example because the
        broker was restarted: older values are dropped.
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
        """Mark the value as unknown now; an empty history stays empty."""
        if self._values:
            self._values.append((self._values[-1][0], None))

    @property
    def last(self) -> float | None:
        """The newest value, or None if there is none, or while it is unknown."""
        return self._values[-1][1] if self._values else None

    def values(self, count_max: int | None = None) -> list[float | None]:
        """Return the newest values in the order of their times."""
        found = [value for _, value in self._values]
        return found if count_max is None else found[max(0, len(found) - count_max) :]


class Rate:
    """The growth rate of a counter between two reads.

    A counter that decreased was reset, for example because the broker was restarted: the rate is
    unknown until the next read.
    """

    __slots__ = ("_at", "_count")

    def __init__(self) -> None:
        self._at: float | None = None
        self._count = 0.0

    def update(self, at: float, count: float) -> float | None:
        """Add the counter at a time in seconds. Returns its growth per second, or None."""
        before, self._at = self._at, at
        grown, self._count = count - self._count, count
        if before is None or at <= before or grown < 0:
            return None
        return grown / (at - before)
