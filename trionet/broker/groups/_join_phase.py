"""How long a group waits for its members to join, before the next generation begins."""

from __future__ import annotations

import math


class JoinPhase:
    """The end of a group's PREPARING, and what may put it off.

    Args:
        delay: ``group.initial.rebalance.delay.ms``, in seconds.

    Attributes:
        ends_at: when whoever has joined by then goes on alone; infinite while nobody is waited for.
        is_initial: the group was empty, so that nobody knows who else will come.
    """

    def __init__(self, delay: float) -> None:
        self.ends_at = math.inf
        self.is_initial = False
        self._delay = delay
        self._remaining = 0.0
        self._more_came = False

    def begin(self, seconds: float, now: float) -> None:
        """Wait for members that are known, as long as the most patient of them lets us."""
        self.is_initial = False
        self.ends_at = now + seconds

    def begin_initial(self, seconds: float, now: float) -> None:
        """Wait for members that are not known yet: one delay, or more while they come (KIP-134)."""
        self.is_initial = True
        self.ends_at = now + self._delay
        self._remaining = max(seconds - self._delay, 0.0)
        self._more_came = False

    def note_new_member(self) -> None:
        self._more_came = True

    def extend(self, now: float) -> bool:
        """At the end: wait for another delay if members came in this one; False if it is over."""
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
