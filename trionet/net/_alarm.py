"""A timer that wakes a parked loop when a timeout is due, with a single sleeping task.

A cancel scope around every park would cost 4.6 µs, a tenth of what a request takes on an idle
server. With the alarm, a park costs one comparison, unless the next timeout is earlier than the
previous one.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
from collections.abc import Callable

import trio


class Alarm:
    """A timer that calls ``wake`` at a time that can be changed while the timer is running.

    Args:
        wake: called by :meth:`keep_time` when the time is reached, and not again until another time
            is set.
    """

    __slots__ = ("_armed_at", "_at", "_scope", "_wake")

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._at = math.inf
        self._armed_at = math.inf
        self._scope: trio.CancelScope | None = None

    def set(self, at: float) -> None:
        """Set the time at which to call ``wake``, replacing the previous time.

        Args:
            at: the time, in seconds on the loop's clock; ``math.inf`` for never.
        """
        self._at = at
        # A later time is applied only when the earlier one is reached: each request sets a later
        # time than the one before, and moving a deadline costs more than everything else here.
        if at < self._armed_at:
            self._arm(at)

    def _arm(self, at: float) -> None:
        self._armed_at = at
        if self._scope is not None:
            self._scope.deadline = at

    async def keep_time(self) -> None:
        """Run the alarm until cancelled."""
        while True:
            with trio.CancelScope(deadline=self._armed_at) as self._scope:
                await trio.sleep_forever()
            self._scope = None
            if trio.current_time() < self._at:
                self._arm(self._at)  # it was postponed meanwhile
            else:
                self._at = self._armed_at = math.inf
                self._wake()
