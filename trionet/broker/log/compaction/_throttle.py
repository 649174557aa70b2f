"""Limits the bytes that all cleanings read and write per second (Kafka: Throttler).

(``log.cleaner.io.max.bytes.per.second``.) A cleaning waits in its own thread or process, never in
the loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import trio

from ...._util._monotonic import perf_counter

# Shorter waits would cost more system calls than they spread (Kafka checks every 300 ms).
_WAIT_SECONDS_MIN = 0.05

# A longer wait is divided, since time.sleep() refuses what does not fit the system's types.
_WAIT_SECONDS_MAX = 86_400.0

# How often a thread that waits looks whether it was cancelled.
_CANCEL_CHECK_SECONDS = 0.1


def sleep_in_thread(seconds: float) -> None:
    """Wait in one of trio's threads; a :class:`Throttle` may do so for minutes.

    Raises:
        Cancelled: the task was cancelled for which the thread runs.
    """
    end = perf_counter() + seconds
    while (left := end - perf_counter()) > 0:
        trio.from_thread.check_cancelled()
        time.sleep(min(left, _CANCEL_CHECK_SECONDS))


class Throttle:
    """Waits until the bytes so far fit the rate.

    Time without transfers is not saved up for later.

    Args:
        bytes_per_second: the rate.
        clock: returns the time in seconds.
        sleep: waits for a number of seconds.
    """

    def __init__(
        self,
        bytes_per_second: float,
        clock: Callable[[], float] = perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = bytes_per_second
        self._clock = clock
        self._sleep = sleep
        self._free_at = clock()

    def note(self, count: int) -> None:
        """Count the bytes of a transfer, and wait until they fit the rate. Blocks."""
        now = self._clock()
        self._free_at = max(self._free_at, now) + count / self._rate
        while self._free_at - now >= _WAIT_SECONDS_MIN:
            self._sleep(min(self._free_at - now, _WAIT_SECONDS_MAX))
            now = self._clock()
