"""How many connections came in a second, over the last windows, and how long to wait for fewer.

(Kafka: Rate over SampledStat, and QuotaUtils.boundedThrottleTime; KIP-612.) Time is cut in windows
of ``quota.window.size.seconds``, of which the last ``quota.window.num`` count. A window begins with
the first connection after the end of the one before, so that silence makes no windows.

Pure: ``now`` is in seconds of the loop's clock everywhere.
"""

from __future__ import annotations

from collections import deque
from typing import Final

# `quota.window.num` and `quota.window.size.seconds`.
WINDOWS: Final = 11
WINDOW_SECONDS: Final = 1
# Kafka's unit of a delay; what is less than half of it is none.
_DELAYS_PER_SECOND: Final = 1000


class CreationRate:
    """Counts what was created, for one listener, one address or the whole server.

    Args:
        windows: how many windows count, the one in progress included.
        window_seconds: the length of one; also the longest delay.
    """

    __slots__ = ("_window_seconds", "_windows", "_windows_max")

    def __init__(self, windows: int = WINDOWS, window_seconds: float = WINDOW_SECONDS) -> None:
        self._windows_max = windows
        self._window_seconds = window_seconds
        self._windows: deque[list[float]] = deque()  # begin and count, the oldest first

    def record(self, now: float) -> None:
        """Count one."""
        self._add(1, now)

    def unrecord(self, now: float) -> None:
        """Take one back that was counted and then refused.

        The window in progress gets it, as in Kafka, also if the one was counted before it began.
        """
        self._add(-1, now)

    def per_second(self, now: float) -> float:
        """The rate; 0 when nothing was counted for all the windows."""
        self._drop_old(now)
        return sum(count for _, count in self._windows) / self.measured_seconds(now)

    def measured_seconds(self, now: float) -> float:
        """What the rate is measured over: the whole windows and what has passed of the last.

        Windows that were not there yet, or were silent, count as if they had been empty: else the
        first connection after a silence would be an infinite rate.
        """
        self._drop_old(now)
        elapsed = max(0.0, now - self._windows[0][0]) if self._windows else 0.0
        missing = self._windows_max - 1 - int(elapsed / self._window_seconds)
        # One millisecond, for a single window that begins now.
        return max(elapsed + max(0, missing) * self._window_seconds, 0.001)

    def delay(self, limit: float, now: float) -> float:
        """Seconds without another one that bring the rate down to ``limit`` a second.

        At most one window, and in whole milliseconds. 0 while the rate is at most the limit.
        """
        rate = self.per_second(now)
        if rate <= limit:
            return 0.0
        if limit <= 0:
            return self._window_seconds
        seconds = (rate - limit) / limit * self.measured_seconds(now)
        milliseconds = round(min(seconds, self._window_seconds) * _DELAYS_PER_SECOND)
        return milliseconds / _DELAYS_PER_SECOND

    def _add(self, count: int, now: float) -> None:
        windows = self._windows
        if not windows or now - windows[-1][0] >= self._window_seconds:
            windows.append([now, 0])
            if len(windows) > self._windows_max:
                windows.popleft()
        windows[-1][1] += count

    def _drop_old(self, now: float) -> None:
        oldest = now - self._windows_max * self._window_seconds
        while self._windows and self._windows[0][0] <= oldest:
            self._windows.popleft()
