"""Keeps a consumer in its group: joins when the user's side is ready for it, and sends heartbeats.

(Kafka: AbstractCoordinator and its HeartbeatThread.) One background task; what the user must take
part in, such as giving up partitions, is done by :mod:`._consumer_coordinator` in the user's task.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Final

import trio

from ....errors import DisconnectedError, FencedInstanceIdError, TrionetError
from ....protocol.messages.heartbeat import HeartbeatRequest
from ....protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ....protocol.messages.leave_group import LeaveGroupRequest
from ....protocol.messages.sync_group import SyncGroupRequest
from ._classic_member import ClassicMember, Generation, MemberState, Verdict
from ._coordinator_finder import CoordinatorFinder
from ._group_leader import GroupLeader
from ._group_settings import GroupSettings
from ._heartbeat import Heartbeat, PollInterval

LOGGER: Final = logging.getLogger(__name__)

JOIN_GROUP_LAPSE_SECONDS: Final = 5.0
"""More than a rebalance may take: how long the answer to a JoinGroup is waited for (KAFKA-7610)."""


class Membership:
    """See the module.

    Args:
        finder: knows the coordinator.
        member: what this consumer is to the group.
        leader: what it does if the group makes it the leader.
        settings: of the group.
        chance: what blurs waits.
        protocols: what to join with, when that is asked.
        on_leading: told what this member is about to give itself, as its group's leader.
        on_news: called when there is something for the user's side to do.

    Attributes:
        poll_interval: how long ago the user asked for a record.
        is_joining: a join is wanted, or under way.
        joined: the generation whose assignment waits for the user's side; None if none does.
        failure: what the user has to be told.
    """

    def __init__(
        self,
        finder: CoordinatorFinder,
        member: ClassicMember,
        leader: GroupLeader,
        settings: GroupSettings,
        chance: random.Random,
        *,
        protocols: Callable[[], list[tuple[str, bytes]]],
        on_leading: Callable[[bytes], object],
        on_news: Callable[[], object],
    ) -> None:
        self._finder = finder
        self._member = member
        self._leader = leader
        self._settings = settings
        self._chance = chance
        self._protocols = protocols
        self._on_leading = on_leading
        self._on_news = on_news
        self._heartbeat = Heartbeat(settings.heartbeat_seconds, settings.session_seconds)
        self._failures = 0
        self._changed = trio.Event()
        self._scope = trio.CancelScope()
        self.poll_interval = PollInterval(settings.poll_seconds_max)
        self.is_joining = False
        self.joined: Generation | None = None
        self.failure: TrionetError | None = None

    def join(self) -> None:
        """The user's side is ready: join the group."""
        self.is_joining = True
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    async def run(self) -> None:
        """Keep the membership until cancelled.

        Raises:
            FencedInstanceIdError: another one has this member's place for good; nothing that the
                background does for the group has any sense then.
        """
        try:
            while True:
                with trio.CancelScope() as self._scope:
                    await self._keep()
        except FencedInstanceIdError:
            self.is_joining = False
            self._member.reset("another member has this one's instance id")
            raise

    async def _keep(self) -> None:
        while True:
            if self.is_joining:
                await self._join()
            elif self._member.state is MemberState.STABLE:
                await self._stay()
            else:
                await self._changed.wait()

    # Joining.

    async def _join(self) -> None:
        """Join until it works, or cannot work."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self.joined = None
        try:
            if await self._join_as_what_it_was():
                self._heartbeat.begin(trio.current_time())
                self.joined = self._member.generation
        except FencedInstanceIdError:
            raise
        except TrionetError as error:
            self._member.state = MemberState.UNJOINED
            self.failure = error
        self.is_joining = False
        self._on_news()

    async def _join_as_what_it_was(self) -> bool:
        """Try until the member is in; False if the group has thrown it out meanwhile.

        Then the user's side has to give up as lost what a cooperative member keeps while it joins,
        before it may come in anew (Kafka: resetStateAndRejoin).
        """
        had_generation = not self._member.has_lost_generation
        failures = 0
        while (verdict := await self._try_to_join()) is not Verdict.DONE:
            if had_generation and self._member.has_lost_generation:
                return False
            if verdict is Verdict.ELSEWHERE:
                self._finder.forget(self._finder.node, "it does not coordinate the group")
            if verdict is not Verdict.AGAIN:
                failures += 1
                await trio.sleep(self._settings.retry.seconds(failures, self._chance))
        return True

    async def _try_to_join(self) -> Verdict:
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            verdict = await self._join_once()
        except DisconnectedError as error:
            LOGGER.info("group %s: joining failed: %s", self._settings.group_id, error)
            verdict = Verdict.LATER
        if verdict is not Verdict.DONE:
            self._member.state = MemberState.UNJOINED
        return verdict

    async def _join_once(self) -> Verdict:
        member, settings = self._member, self._settings
        rebalance_seconds = settings.poll_seconds_max + JOIN_GROUP_LAPSE_SECONDS
        await self._leader.until_topics_known()
        answer: JoinGroupResponse = await self._finder.ask(
            JoinGroupRequest,
            lambda _: member.join_request(self._protocols()),
            seconds_max=max(settings.request_seconds, rebalance_seconds),
        )
        verdict = member.joined(answer)
        if verdict is not Verdict.DONE:
            return verdict
        assignments = await self._leader.assignments(answer)
        if answer.member_id in assignments:
            self._on_leading(assignments[answer.member_id])
        synced = await self._finder.ask(
            SyncGroupRequest, lambda _: member.sync_request(assignments)
        )
        verdict = member.synced(synced)
        if verdict is Verdict.DONE:
            LOGGER.info(
                "group %s: joined generation %d as %s with assignor %s",
                settings.group_id,
                *member.generation,
            )
        return verdict

    # Staying.

    async def _stay(self) -> None:
        """Wait for what is due first, or do it."""
        now = trio.current_time()
        if self.poll_interval.left(now) <= 0:
            await self._leave_slow_user(now)
        elif seconds := min(self._heartbeat.due_in(now), self.poll_interval.look_again_in(now)):
            with trio.move_on_after(seconds):
                await self._changed.wait()
        else:
            await self._beat(now)

    async def _beat(self, now: float) -> None:
        await trio.lowlevel.checkpoint()
        member, settings = self._member, self._settings
        asked_as = member.generation
        self._heartbeat.sent(now)
        session_left = self._heartbeat.session_left(now) or settings.session_seconds
        try:
            answer = await self._finder.ask(
                HeartbeatRequest,
                lambda _: member.heartbeat_request(),
                seconds_max=min(settings.request_seconds, session_left),
            )
            verdict = member.heard(answer, asked_as)
        except DisconnectedError:
            verdict = Verdict.LATER
        except FencedInstanceIdError:
            raise
        except TrionetError as error:
            self.failure = error
            self._on_news()
            verdict = Verdict.LATER
        if verdict is Verdict.ELSEWHERE:
            self._finder.forget(self._finder.node, "it does not coordinate the group")
        now = trio.current_time()
        if verdict is Verdict.DONE:
            self._failures = 0
            self._heartbeat.heard(now)
        else:
            self._failures += 1
            wait = self._settings.retry.seconds(self._failures, self._chance)
            self._heartbeat.failed(now, wait)
        self._leader.look_at_metadata()
        if member.rejoin_reason is not None:
            self._on_news()

    async def _leave_slow_user(self, now: float) -> None:
        """Give up the partitions of a user who does not ask for records, as others might.

        A static member says nothing, and keeps them until its session ends (Kafka:
        handlePollTimeoutExpiry).
        """
        await trio.lowlevel.checkpoint()
        LOGGER.warning(
            "group %s: this consumer leaves, because %.1f s have passed since its last request for"
            " a record, and max.poll.interval.ms is %.0f. Raise that, or do less for each record",
            self._settings.group_id,
            now - self.poll_interval.asked_at,
            self._settings.poll_seconds_max * 1000,
        )
        if not self._member.is_static:
            with trio.move_on_after(self._settings.request_seconds):
                await self._say_farewell("max.poll.interval.ms was exceeded")
        self._member.reset("max.poll.interval.ms was exceeded")
        self._on_news()

    # Leaving.

    async def leave(self, reason: str) -> None:
        """Be in the group no more, until :meth:`join`; a static member says nothing (KIP-345).

        Nothing is looked for or tried again: if the coordinator cannot be told, it will notice.
        """
        await trio.lowlevel.checkpoint()
        was_joining = self.is_joining
        self._scope.cancel(reason="the consumer leaves its group")
        self.is_joining = False
        self.joined = None
        try:
            if not self._member.is_static:
                if was_joining:
                    # The broker answers one request of a connection after the other, and holds a
                    # JoinGroup for as long as a rebalance takes.
                    self._finder.drop_connection()
                await self._say_farewell(reason)
        finally:
            self._member.reset(reason)

    async def _say_farewell(self, reason: str) -> None:
        await trio.lowlevel.checkpoint()
        if self._finder.node is None or not self._member.generation.member_id:
            return
        try:
            await self._finder.ask(
                LeaveGroupRequest, lambda version: self._member.leave_request(reason, version)
            )
        except TrionetError as error:
            LOGGER.info("group %s: could not say farewell: %s", self._settings.group_id, error)
