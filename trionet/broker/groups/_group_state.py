"""The states of a classic group, the deadline of its joins, and the settings of all groups."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable

import attrs


class GroupState(enum.Enum):
    """The state of a group; the values are the names that Kafka's tools show."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@attrs.frozen
class GroupSettings:
    """A broker's settings for groups.

    Attributes:
        initial_delay: seconds to wait for more members before the first generation of an empty
            group (``group.initial.rebalance.delay.ms``).
        members_max: ``group.max.size``.
        make_member_id: returns a new id with a prefix.
    """

    initial_delay: float
    members_max: int
    make_member_id: Callable[[str], str]


class JoinPhase:
    """The deadline of a group's PREPARING state, and its extensions.

    Args:
        delay: ``group.initial.rebalance.delay.ms``, in seconds.

    Attributes:
        ends_at: when the next generation starts without members that have not joined; infinite
            outside PREPARING.
        is_initial: the group was empty, so that its other members are unknown.
    """

    def __init__(self, delay: float) -> None:
        self.ends_at = math.inf
        self.is_initial = False
        self._delay = delay
        self._remaining = 0.0
        self._more_came = False

    def begin(self, seconds: float, now: float) -> None:
        """Wait for the known members, at most for the longest of their rebalance timeouts."""
        self.is_initial = False
        self.ends_at = now + seconds

    def begin_initial(self, seconds: float, now: float) -> None:
        """Wait for unknown members: for one delay, or more while new ones join (KIP-134)."""
        self.is_initial = True
        self.ends_at = now + self._delay
        self._remaining = max(seconds - self._delay, 0.0)
        self._more_came = False

    def note_new_member(self) -> None:
        self._more_came = True

    def extend(self, now: float) -> bool:
        """Extend an expired deadline if members have joined meanwhile; returns whether it did."""
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
