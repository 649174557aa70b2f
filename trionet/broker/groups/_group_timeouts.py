"""When a classic group has to act although no call arrives."""

from __future__ import annotations

import math

from ._members import Member, Members


class GroupTimeouts:
    """The timeouts of one group.

    One number bounds all of them from below. It may be too early, never too late: a heartbeat only
    moves the expiry of its member, and :meth:`compute` determines the minimum again.

    Args:
        initial_delay: ``group.initial.rebalance.delay.ms``, in seconds.

    Attributes:
        wake_at: when the group has to process its timeouts at the latest, in seconds of its clock.
        joining: the deadline of the PREPARING state.
        sync_ends_at: when members that have not synced in this generation are removed.
    """

    def __init__(self, initial_delay: float) -> None:
        self.wake_at: float = math.inf
        self.joining: JoinPhase = JoinPhase(initial_delay)
        self.sync_ends_at: float = math.inf

    def wake(self, at: float) -> None:
        """Wake the group at a time, or earlier."""
        self.wake_at = min(self.wake_at, at)

    def extend_session(self, member: Member, now: float) -> None:
        """Let the session of a member expire a session timeout from now on."""
        member.expires_at = now + member.session_seconds
        self.wake(member.expires_at)

    def compute(self, members: Members) -> None:
        """Determine the earliest timeout again."""
        self.wake_at = min(
            self.joining.ends_at,
            self.sync_ends_at,
            *members.pending.values(),
            *(each.expires_at for each in members if not each.is_waiting),
        )


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
        """Wait for the known members, for the longest of their rebalance timeouts."""
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
        """At the deadline: extend it by another delay if members joined in this one, else False."""
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
