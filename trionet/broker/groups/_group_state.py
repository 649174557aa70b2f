"""The states of a classic group, the deadline of its join phase, and the settings of groups."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable

import attrs


class GroupState(enum.Enum):
    """The state of a group. The values are the names that Kafka's tools display."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@attrs.frozen
class GroupSettings:
    """A broker's settings for groups.

    Attributes:
        initial_delay: how long an empty group waits for more members before its first generation,
            in seconds (``group.initial.rebalance.delay.ms``).
        members_max: the maximum number of members (``group.max.size``).
        make_member_id: returns a new member id with the given prefix.
    """

    initial_delay: float
    members_max: int
    make_member_id: Callable[[str], str]


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
