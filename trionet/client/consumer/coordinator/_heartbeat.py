"""The timers for heartbeats, the session and the poll interval (Kafka: Heartbeat).

Nothing here reads a clock: ``now`` is the current time on the event loop's clock, in seconds.
"""

from __future__ import annotations

import math


class Heartbeat:
    """A member's heartbeat and session timers.

    Args:
        seconds: the heartbeat interval.
        session_timeout_seconds: the time from the last response to the end of the session.
    """

    def __init__(self, seconds: float, session_timeout_seconds: float) -> None:
        self._seconds = seconds
        self._session_seconds = session_timeout_seconds
        self._due_at = self._heard_at = -math.inf

    def begin(self, now: float) -> None:
        """Start the session of a member that has joined the group."""
        self._heard_at = now
        self._due_at = now + self._seconds

    def sent(self, now: float) -> None:
        """Record that a heartbeat was sent."""
        self._due_at = now + self._seconds

    def heard(self, now: float) -> None:
        """Record a response from the coordinator."""
        self._heard_at = now

    def failed(self, now: float, wait_seconds: float) -> None:
        """Schedule a retry after a failed heartbeat."""
        self._due_at = now + wait_seconds

    def due_in(self, now: float) -> float:
        """Return the seconds until the next heartbeat is due."""
        return max(0.0, self._due_at - now)

    def session_left(self, now: float) -> float:
        """Return the seconds until the session ends unless the coordinator receives a heartbeat."""
        return max(0.0, self._heard_at + self._session_seconds - now)


class PollInterval:
    """The time since the user last requested a record (``max.poll.interval.ms``).

    Args:
        seconds_max: the time limit, after which the member leaves its group.

    Attributes:
        polled_at: the time at which the user last requested a record.
        is_waiting: whether the user is waiting for a record, and therefore cannot be late.
    """

    __slots__ = ("_seconds_max", "is_waiting", "polled_at")

    def __init__(self, seconds_max: float) -> None:
        self._seconds_max = seconds_max
        self.polled_at = math.inf
        self.is_waiting = False

    def polled(self, now: float) -> None:
        """Record that the user has requested the next record."""
        self.polled_at = now

    def left(self, now: float) -> float:
        """Return the seconds until the limit is exceeded; infinite while the user is waiting."""
        if self.is_waiting:
            return math.inf
        return max(0.0, self.polled_at + self._seconds_max - now)

    def next_check_in(self, now: float) -> float:
        """Return the seconds until the limit could be exceeded at the earliest."""
        return self._seconds_max if self.is_waiting else self.left(now)

    def stop_waiting(self, now: float) -> None:
        """Record that the user has received a record or stopped waiting for one."""
        self.is_waiting = False
        self.polled_at = now
