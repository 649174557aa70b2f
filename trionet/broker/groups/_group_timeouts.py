"""The timeouts of a classic group."""

from __future__ import annotations

import math

from ._group_state import JoinPhase
from ._members import Member, Members


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
