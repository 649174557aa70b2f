"""The timers of all groups of a node, in one heap and one task (Kafka: CoordinatorTimer)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import trio


class GroupTimers:
    """The timers of a node's groups, one per group.

    Attributes:
        heap: the times with their group ids; entries of cancelled and replaced timers stay in the
            heap until they are due.
        scheduled: the time of each timer on trio's clock, in seconds, by group id.
    """

    def __init__(self) -> None:
        self.heap: list[tuple[float, str]] = []
        self.scheduled: dict[str, float] = {}
        self._suspended: set[str] = set()
        self._sleep = trio.CancelScope()

    def schedule(self, group_id: str, at: float) -> None:
        """Set a group's timer, unless it is suspended or already set to that time or earlier."""
        if group_id not in self._suspended and at < self.scheduled.get(group_id, math.inf):
            self.scheduled[group_id] = at
            heapq.heappush(self.heap, (at, group_id))
            if self.heap[0] == (at, group_id):
                self._sleep.cancel(reason="a group has an earlier timeout")

    def cancel(self, group_id: str) -> None:
        """Remove a group's timer, if any, and end its suspension."""
        self.scheduled.pop(group_id, None)
        self._suspended.discard(group_id)

    def suspend(self, group_id: str) -> None:
        """Stop a group's timer, and ignore calls to :meth:`schedule` until :meth:`cancel`."""
        self.scheduled.pop(group_id, None)
        self._suspended.add(group_id)

    def is_suspended(self, group_id: str) -> bool:
        """Whether a group's timer is suspended."""
        return group_id in self._suspended

    async def run(self, expire: Callable[[str, float], None]) -> None:
        """Call ``expire(group_id, now)`` for each timer that is due, until cancelled."""
        heap, scheduled = self.heap, self.scheduled
        while True:
            now = trio.current_time()
            due = []
            while heap and heap[0][0] <= now:
                due.append(heapq.heappop(heap))
            for at, group_id in due:
                if scheduled.get(group_id) == at:
                    del scheduled[group_id]
                    expire(group_id, now)
            self._sleep = trio.CancelScope(deadline=heap[0][0] if heap else math.inf)
            with self._sleep:
                await trio.sleep_forever()
