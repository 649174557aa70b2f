"""The times at which a classic group must act although no call arrives."""

from __future__ import annotations

import math

from ._group_state import JoinPhase
from ._members import Member, Members


class GroupTimeouts:
    """The timeouts of one group.

    One number bounds all of them from below. It may be too early, never too late: a heartbeat only
    moves the expiry of its member, and :meth:`compute` recomputes the minimum.

    Args:
        initial_delay: ``group.initial.rebalance.delay.ms``, in seconds.

    Attributes:
        wake_at: when the group must process its timeouts at the latest, in seconds of its clock.
        joining: the deadline of the PREPARING state.
        sync_ends_at: when members that have not synced in this generation are removed.
    """

    def __init__(self, initial_delay: float) -> None:
        self.wake_at: float = math.inf
        self.joining: JoinPhase = JoinPhase(initial_delay)
        self.sync_ends_at: float = math.inf

    def wake(self, at: float) -> None:
        """Wake the group at the given time, or earlier."""
        self.wake_at = min(self.wake_at, at)

    def extend_session(self, member: Member, now: float) -> None:
        """Extend the session of a member until one session timeout from ``now``."""
        member.expires_at = now + member.session_seconds
        self.wake(member.expires_at)

    def compute(self, members: Members) -> None:
        """Recompute the earliest timeout."""
        self.wake_at = min(
            self.joining.ends_at,
            self.sync_ends_at,
            *members.pending.values(),
            *(each.expires_at for each in members if not each.is_waiting),
        )
