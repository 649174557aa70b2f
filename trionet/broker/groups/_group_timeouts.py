"""The timeouts of a classic group, and the timers of all groups of a node."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Final

import trio

from ..._util._logging import get_logger
from ._members import Member, Members

logger = get_logger("trionet.broker")

TIMEOUTS_AT_ONCE: Final = 20
"""How many timeouts of groups are processed before other tasks run: about a millisecond of work."""


class JoinPhase:
    """The deadline of a group's PREPARING state, and its extensions.

    Args:
        delay: the value of ``group.initial.rebalance.delay.ms``, in seconds.

    Attributes:
        ends_at: the time at which the next generation starts without the members that have not
            joined; infinite outside PREPARING.
        is_initial: whether the group was empty, and so waits for members it does not know yet.
    """

    def __init__(self, delay: float) -> None:
        self.ends_at = math.inf
        self.is_initial = False
        self._delay = delay
        self._remaining = 0.0
        self._more_came = False

    def begin(self, seconds: float, now: float) -> None:
        """Start waiting for the known members, for at most ``seconds``."""
        self.is_initial = False
        self.ends_at = now + seconds

    def begin_initial(self, seconds: float, now: float) -> None:
        """Start waiting for members that are not known yet (KIP-134).

        The deadline is one delay away. As long as new members join, it can be extended, to at most
        ``seconds`` in total.
        """
        self.is_initial = True
        self.ends_at = now + self._delay
        self._remaining = max(seconds - self._delay, 0.0)
        self._more_came = False

    def note_new_member(self) -> None:
        self._more_came = True

    def extend(self, now: float) -> bool:
        """Extend an expired deadline if members have joined; return whether it was extended."""
        if not (self.is_initial and self._more_came and self._remaining):
            return False
        delay = min(self._delay, self._remaining)
        self._remaining -= delay
        self._more_came = False
        self.ends_at = now + delay
        return True

    def end(self) -> None:
        self.is_initial = False
        self.ends_at = math.inf


class GroupTimeouts:
    """The timeouts of one group.

    :attr:`wake_at` is a lower bound on all timeouts. It may be too early but never too late: a
    heartbeat only extends the session of its member, and :meth:`compute` updates the bound.

    Args:
        initial_delay: the value of ``group.initial.rebalance.delay.ms``, in seconds.

    Attributes:
        wake_at: the time by which the group must process its timeouts.
        joining: the deadline of the PREPARING state.
        sync_ends_at: the time at which members that have not synced in this generation are
            removed.
    """

    def __init__(self, initial_delay: float) -> None:
        self.wake_at: float = math.inf
        self.joining: JoinPhase = JoinPhase(initial_delay)
        self.sync_ends_at: float = math.inf

    def wake(self, at: float) -> None:
        """Lower :attr:`wake_at` to the given time, unless it is already earlier."""
        self.wake_at = min(self.wake_at, at)

    def extend_session(self, member: Member, now: float) -> None:
        """Restart the session timeout of a member."""
        member.expires_at = now + member.session_seconds
        self.wake(member.expires_at)

    def compute(self, members: Members) -> None:
        """Set :attr:`wake_at` to the earliest timeout."""
        self.wake_at = min(
            self.joining.ends_at,
            self.sync_ends_at,
            *members.pending.values(),
            *(each.expires_at for each in members if not each.is_waiting),
        )


class GroupTimers:
    """The timers of a node's groups, in one heap and one task (Kafka: CoordinatorTimer).

    Each group has one timer.

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
        """Call ``expire(group_id, now)`` for each timer that is due, until cancelled.

        An exception that it raises is logged, and does not affect other groups.
        """
        heap, scheduled = self.heap, self.scheduled
        while True:
            now = trio.current_time()
            # Clients choose when sessions end: those of 100,000 groups may end together.
            for _ in range(TIMEOUTS_AT_ONCE):
                if not heap or heap[0][0] > now:
                    break
                at, group_id = heapq.heappop(heap)
                if scheduled.get(group_id) == at:
                    del scheduled[group_id]
                    try:
                        expire(group_id, now)
                    except Exception:  # boundary: one group
                        logger.exception("cannot process the timeouts of group %r", group_id)
            self._sleep = trio.CancelScope(deadline=heap[0][0] if heap else math.inf)
            with self._sleep:
                await trio.sleep_forever()
