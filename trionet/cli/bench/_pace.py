"""Schedules records at a requested rate; performs no I/O.

Records are scheduled in groups, because a loop cannot schedule 100,000 records a second one by one.
If a group waits because earlier groups took too long, the wait is part of its latency. Otherwise a
server that stalls for a second would delay a single group and every other record due in that second
would look fast (coordinated omission).
"""

from __future__ import annotations

from typing import Final

#: The interval between groups, unless the interval between records is longer.
GROUP_SECONDS: Final = 0.001


class Pace:
    """A schedule of groups of records.

    Args:
        rate: the number of records per second.
        began: the due time of the first record, in seconds.
    """

    def __init__(self, rate: float, began: float) -> None:
        self._rate = rate
        self._began = began
        self._interval = max(GROUP_SECONDS, 1 / rate)
        self._number = 0

    @property
    def due_at(self) -> float:
        """The due time of the next group, in seconds."""
        return self._began + self._number * self._interval

    def take(self) -> int:
        """Return the number of records in the next group, and advance past that group."""
        count = self._until(self._number + 1) - self._until(self._number)
        self._number += 1
        return count

    def _until(self, number: int) -> int:
        # Rounded, because products such as 3 * 0.001 * 1000 may be slightly below an integer.
        return int(round(number * self._interval * self._rate, 6))
