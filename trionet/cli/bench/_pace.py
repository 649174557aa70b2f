"""When the next records are due, at a rate that was asked for.

Records are due in groups, since no loop has a turn for each of 100,000 records a second. What a
group had to wait because those before it took too long counts as a part of its latency: a server
that stalls for a second has kept everybody waiting who would have come meanwhile. Pure.
"""

from __future__ import annotations

from typing import Final

#: Groups follow one another at this distance, or at that of single records if that is longer.
GROUP_SECONDS: Final = 0.001


class Pace:
    """Groups of records at planned times.

    Args:
        rate: records a second.
        began: when the first is due, in seconds.
    """

    def __init__(self, rate: float, began: float) -> None:
        self._rate = rate
        self._began = began
        self._interval = max(GROUP_SECONDS, 1 / rate)
        self._number = 0

    @property
    def due_at(self) -> float:
        """When the next group is due."""
        return self._began + self._number * self._interval

    def take(self) -> int:
        """How many records the next group has; it is taken."""
        count = self._until(self._number + 1) - self._until(self._number)
        self._number += 1
        return count

    def _until(self, number: int) -> int:
        # Rounded, since products such as 3 * 0.001 * 1000 are a little less than whole numbers.
        return int(round(number * self._interval * self._rate, 6))
