"""The background task that joins a group when the user's task is ready, and sends heartbeats.

(Kafka: AbstractCoordinator, its HeartbeatThread, and Heartbeat.) Steps that involve the user, such
as revoking partitions, run in the user's task; see :mod:`._consumer_coordinator`. The timers read
no clock: ``now`` is the current time on the event loop's clock, in seconds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Final

import trio

from ...._util._logging import get_logger
from ....errors import DisconnectedError, FencedInstanceIdError, TrionetError
from ....protocol.messages.heartbeat import HeartbeatRequest
from ....protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ....protocol.messages.leave_group import LeaveGroupRequest
from ....protocol.messages.sync_group import SyncGroupRequest
from ._classic_member import ClassicMember, Generation, GroupSettings, MemberState, Verdict
from ._coordinator_finder import CoordinatorFinder
from ._group_leader import GroupLeader

LOGGER: Final = get_logger(__name__)

JOIN_GROUP_LAPSE_SECONDS: Final = 5.0
"""How much longer than the rebalance timeout to wait for a JoinGroup response (KAFKA-7610)."""

_SLOW_USER: Final = "max.poll.interval.ms was exceeded"


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


class Membership:
    """The background task of a member, which joins the group and sends heartbeats.

    Args:
        finder: finds the coordinator and sends requests to it.
        member: the member's state.
        leader: computes the assignments if this member is the leader.
        settings: the group settings.
        rng: jitters backoffs.
        protocols: returns the protocols for JoinGroup.
        on_leading: called with the encoded assignment of this member if it is the leader.
        notify: called when there is work for the user's task.

    Attributes:
        poll_interval: tracks the time since the user last requested a record.
        is_joining: whether a join is due or in progress.
        joined: the generation whose assignment the user's task has yet to handle; None if there is
            none.
        failure: an error to raise in the user's task.
    """

    def __init__(
        self,
        finder: CoordinatorFinder,
        member: ClassicMember,
        leader: GroupLeader,
        settings: GroupSettings,
        rng: random.Random,
        *,
        protocols: Callable[[], list[tuple[str, bytes]]],
        on_leading: Callable[[bytes], object],
        notify: Callable[[], object],
    ) -> None:
        self._finder = finder
        self._member = member
        self._leader = leader
        self._settings = settings
        self._rng = rng
        self._protocols = protocols
        self._on_leading = on_leading
        self._notify = notify
        self._heartbeat = Heartbeat(settings.heartbeat_seconds, settings.session_timeout_seconds)
        self._failures = 0
        self._changed = trio.Event()
        self._scope = trio.CancelScope()
        self._joins_from_generation = False
        self.poll_interval = PollInterval(settings.max_poll_interval_seconds)
        self.is_joining = False
        self.joined: Generation | None = None
        self.failure: TrionetError | None = None

    def join(self) -> None:
        """Start joining the group, now that the user's task is ready."""
        self.is_joining = True
        self._joins_from_generation = not self._member.has_lost_generation
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    async def run(self) -> None:
        """Join when requested and send heartbeats, until cancelled.

        Raises:
            FencedInstanceIdError: another consumer uses the same instance id, so this member cannot
                rejoin.
        """
        try:
            while True:
                with trio.CancelScope() as self._scope:
                    await self._keep()
        except FencedInstanceIdError:
            self.is_joining = False
            self._member.reset("another consumer uses the same group.instance.id")
            raise

    async def _keep(self) -> None:
        while True:
            if self.is_joining:
                await self._join()
            elif self._member.state is MemberState.STABLE:
                await self._stay()
            else:
                self._notify()  # a commit may have found that the group has removed the member
                await self._changed.wait()

    # Joining.

    async def _join(self) -> None:
        """Join the group, retrying after transient errors."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self.joined = None
        try:
            if await self._join_keeping_state():
                self._heartbeat.begin(trio.current_time())
                self.joined = self._member.generation
        except FencedInstanceIdError:
            raise
        except TrionetError as error:
            self._member.state = MemberState.UNJOINED
            self.failure = error
        self.is_joining = False
        self._notify()

    async def _join_keeping_state(self) -> bool:
        """Try until the member has joined; return False if it has been removed since :meth:`join`.

        After a removal, the user's task must first report as lost the partitions that a cooperative
        member keeps while it joins (Kafka: resetStateAndRejoin). A heartbeat that was in flight may
        have found the removal before the first attempt.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        failures = 0
        while not (self._joins_from_generation and self._member.has_lost_generation):
            verdict = await self._try_to_join()
            if verdict is Verdict.DONE:
                return True
            if verdict is Verdict.FIND_COORDINATOR:
                self._finder.forget(self._finder.node, "the node is not the coordinator")
            if verdict is not Verdict.RETRY_NOW:
                failures += 1
                await trio.sleep(self._settings.retry.seconds(failures, self._rng))
        return False

    async def _try_to_join(self) -> Verdict:
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            verdict = await self._join_once()
        except DisconnectedError as error:
            LOGGER.info("group %s: joining failed: %s", self._settings.group_id, error)
            verdict = Verdict.RETRY_LATER
        if verdict is not Verdict.DONE:
            self._member.state = MemberState.UNJOINED
        return verdict

    async def _join_once(self) -> Verdict:
        member, settings = self._member, self._settings
        rebalance_seconds = settings.max_poll_interval_seconds + JOIN_GROUP_LAPSE_SECONDS
        await self._leader.until_topics_known()
        response: JoinGroupResponse = await self._finder.request(
            JoinGroupRequest,
            lambda _: member.join_request(self._protocols()),
            timeout_seconds=max(settings.request_timeout_seconds, rebalance_seconds),
        )
        verdict = member.handle_join(response)
        if verdict is not Verdict.DONE:
            return verdict
        assignments = await self._leader.assignments(response)
        if response.member_id in assignments:
            self._on_leading(assignments[response.member_id])
        synced = await self._finder.request(
            SyncGroupRequest, lambda _: member.sync_request(assignments)
        )
        verdict = member.handle_sync(synced)
        if verdict is Verdict.DONE:
            LOGGER.info(
                "group %s: joined generation %d as %s with assignor %s",
                settings.group_id,
                *member.generation,
            )
        return verdict

    # Staying.

    async def _stay(self) -> None:
        """Send a heartbeat if one is due, leave the group if the user is too slow, or wait."""
        now = trio.current_time()
        if self.poll_interval.left(now) <= 0:
            await self._leave_slow_user(now)
        elif seconds := min(self._heartbeat.due_in(now), self.poll_interval.next_check_in(now)):
            with trio.move_on_after(seconds):
                await self._changed.wait()
        else:
            await self._beat(now)

    async def _beat(self, now: float) -> None:
        await trio.lowlevel.checkpoint()
        member, settings = self._member, self._settings
        sent_as = member.generation
        self._heartbeat.sent(now)
        session_left = self._heartbeat.session_left(now) or settings.session_timeout_seconds
        try:
            response = await self._finder.request(
                HeartbeatRequest,
                lambda _: member.heartbeat_request(),
                timeout_seconds=min(settings.request_timeout_seconds, session_left),
            )
            verdict = member.handle_heartbeat(response, sent_as)
        except DisconnectedError:
            verdict = Verdict.RETRY_LATER
        except FencedInstanceIdError:
            raise
        except TrionetError as error:
            self.failure = error
            self._notify()
            verdict = Verdict.RETRY_LATER
        if verdict is Verdict.FIND_COORDINATOR:
            self._finder.forget(self._finder.node, "the node is not the coordinator")
        now = trio.current_time()
        if verdict is Verdict.DONE:
            self._failures = 0
            self._heartbeat.heard(now)
        else:
            self._failures += 1
            wait = self._settings.retry.seconds(self._failures, self._rng)
            self._heartbeat.failed(now, wait)
        self._leader.check_metadata()
        if member.rejoin_reason is not None:
            self._notify()

    async def _leave_slow_user(self, now: float) -> None:
        """Leave the group because the user has not requested a record in time.

        Other members then get the partitions, which the user's task therefore gives up from now on,
        not from the response on. A static member sends no LeaveGroup request and keeps its
        partitions until its session ends (Kafka: handlePollTimeoutExpiry, maybeLeaveGroup).
        """
        await trio.lowlevel.checkpoint()
        LOGGER.warning(
            "group %s: leaving, because %.1f s have passed since the last request for a record, and"
            " max.poll.interval.ms is %.0f. Raise that limit, or do less work per record",
            self._settings.group_id,
            now - self.poll_interval.polled_at,
            self._settings.max_poll_interval_seconds * 1000,
        )
        self._member.reset(_SLOW_USER, keeps_member_id=True)
        self._notify()
        if not self._member.is_static and self._finder.node is not None:
            with trio.move_on_after(self._settings.request_timeout_seconds):
                await self._send_leave(_SLOW_USER)
        self._member.reset(_SLOW_USER)

    # Leaving.

    async def leave(self, reason: str) -> None:
        """Leave the group until :meth:`join` is called. A static member sends no request (KIP-345).

        The request is not retried: if the coordinator cannot be reached, the session times out.
        """
        await trio.lowlevel.checkpoint()
        was_joining = self.is_joining
        self._scope.cancel(reason="the consumer leaves its group")
        self.is_joining = False
        self.joined = None
        try:
            if not self._member.is_static and self._finder.node is not None:
                if was_joining:
                    # A broker handles the requests of a connection one after the other, and a
                    # JoinGroup waits there for as long as a rebalance takes.
                    self._finder.replace_connection()
                await self._send_leave(reason)
        finally:
            self._member.reset(reason)

    async def _send_leave(self, reason: str) -> None:
        await trio.lowlevel.checkpoint()
        if not self._member.generation.member_id:
            return
        try:
            await self._finder.request(
                LeaveGroupRequest, lambda version: self._member.leave_request(reason, version)
            )
        except TrionetError as error:
            LOGGER.info("group %s: could not send LeaveGroup: %s", self._settings.group_id, error)
