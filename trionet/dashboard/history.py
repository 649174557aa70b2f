"""What a number was of late: bounded, whatever feeds it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

#: How far back is remembered, in seconds.
SECONDS_MAX: Final = 300.0
#: How many values at most: two a second.
VALUES_MAX: Final = 600


class History:
    """The last values of one number, each with its time; the times never decrease.

    None stands for a look that failed, so that a chart has a gap there.

    Args:
        seconds_max: what is older than this, seen from the newest value, is forgotten.
        values_max: so many are remembered at most.
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
        """Remember a value; a second one of the same moment takes the place of the first.

        A time before the newest one means that another clock counts now, as that of a broker
        which has started anew: what was is forgotten.
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
        """Take that the value is not known now; of a number that never was, nothing changes."""
        if self._values:
            self._values.append((self._values[-1][0], None))

    @property
    def last(self) -> float | None:
        """The newest value; None before the first, and while it is not known."""
        return self._values[-1][1] if self._values else None

    def values(self, count_max: int | None = None) -> list[float | None]:
        """The newest values, the oldest of them first."""
        found = [value for _, value in self._values]
        return found if count_max is None else found[max(0, len(found) - count_max) :]


class Rate:
    """How fast a count grows, from one look to the next.

    A count that has become smaller began anew, as that of a broker which was started again: then
    the rate is not known until the next look.
    """

    __slots__ = ("_at", "_count")

    def __init__(self) -> None:
        self._at: float | None = None
        self._count = 0.0

    def update(self, at: float, count: float) -> float | None:
        """Take the count at a time in seconds; gives the growth per second, or None."""
        before, self._at = self._at, at
        grown, self._count = count - self._count, count
        if before is None or at <= before or grown < 0:
            return None
        return grown / (at - before)
