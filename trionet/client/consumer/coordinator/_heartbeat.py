"""When a member's heartbeat is due, and whether its user still asks for records.

(Kafka: Heartbeat.) Pure: ``now`` is a parameter, in seconds of the loop's clock.
"""

from __future__ import annotations

import math


class Heartbeat:
    """When the next heartbeat is due.

    Args:
        seconds: between two of them.
        session_seconds: without an answer for so long, the coordinator takes us for dead.
    """

    def __init__(self, seconds: float, session_seconds: float) -> None:
        self._seconds = seconds
        self._session_seconds = session_seconds
        self._due_at = self._heard_at = -math.inf

    def begin(self, now: float) -> None:
        """The member is in the group."""
        self._heard_at = now
        self._due_at = now + self._seconds

    def sent(self, now: float) -> None:
        """A heartbeat is on its way."""
        self._due_at = now + self._seconds

    def heard(self, now: float) -> None:
        """The coordinator has answered."""
        self._heard_at = now

    def failed(self, now: float, wait_seconds: float) -> None:
        """It has not; the next one comes after this wait."""
        self._due_at = now + wait_seconds

    def due_in(self, now: float) -> float:
        """Seconds until the next one is due."""
        return max(0.0, self._due_at - now)

    def session_left(self, now: float) -> float:
        """Seconds until the coordinator takes us for dead, as far as we know."""
        return max(0.0, self._heard_at + self._session_seconds - now)


class PollInterval:
    """How long ago the user asked for the next record (``max.poll.interval.ms``).

    Args:
        seconds_max: who takes longer is out of the group.

    Attributes:
        asked_at: when the user asked last.
        is_waiting: the user waits for a record now: it is not the user who is slow.
    """

    __slots__ = ("_seconds_max", "asked_at", "is_waiting")

    def __init__(self, seconds_max: float) -> None:
        self._seconds_max = seconds_max
        self.asked_at = math.inf
        self.is_waiting = False

    def asked(self, now: float) -> None:
        """The user asks for the next record."""
        self.asked_at = now

    def left(self, now: float) -> float:
        """Seconds until the user is too late; infinite while it waits."""
        if self.is_waiting:
            return math.inf
        return max(0.0, self.asked_at + self._seconds_max - now)

    def look_again_in(self, now: float) -> float:
        """Seconds for which the user cannot become too late."""
        return self._seconds_max if self.is_waiting else self.left(now)

    def stop_waiting(self, now: float) -> None:
        """The user has its record, or waits no more."""
        self.is_waiting = False
        self.asked_at = now
