"""Pacing: when the next records are due at a requested rate. Pure.

Records are due in groups, because a loop cannot schedule 100,000 records a second one by one. Time
that a group waits because earlier ones took too long counts as part of its latency: a server that
stalls for a second delays every record due in that second (coordinated omission).
"""

from __future__ import annotations

from typing import Final

#: Interval of groups, or that of single records if it is longer.
GROUP_SECONDS: Final = 0.001


class Pace:
    """Schedules groups of records.

    Args:
        rate: the number of records per second.
        began: when the first record is due, in seconds.
    """

    def __init__(self, rate: float, began: float) -> None:
        self._rate = rate
        self._began = began
        self._interval = max(GROUP_SECONDS, 1 / rate)
        self._number = 0

    @property
    def due_at(self) -> float:
        """The time at which the next group is due, in seconds."""
        return self._began + self._number * self._interval

    def take(self) -> int:
        """Advance to the next group. Returns the number of its records."""
        count = self._until(self._number + 1) - self._until(self._number)
        self._number += 1
        return count

    def _until(self, number: int) -> int:
        # Rounded, because products such as 3 * 0.001 * 1000 may be slightly below an integer.
        return int(round(number * self._interval * self._rate, 6))
