"""A consumer's side of its group (Kafka: ConsumerCoordinator).

Two sides work together. In the background :meth:`ConsumerCoordinator.go_on` sends heartbeats,
joins, looks for committed offsets and commits what the user's loop has finished with, whatever that
loop does meanwhile. In the user's task, when it asks for a record,
:meth:`ConsumerCoordinator.poll` does what must not happen behind the user's back: gives up and
takes over partitions, and calls the user's callbacks.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, TypeAlias

import trio

from ...._util._raising import again
from ....errors import FencedInstanceIdError, TrionetError
from ..._offset_and_metadata import OffsetAndMetadata
from ..._topic_partition import TopicPartition
from ...network._kafka_client import KafkaClient
from ..assignors import RebalanceProtocol
from ..assignors._consumer_protocol import decode_assignment
from ..offsets._leaders import is_gone
from ..records._hooks import NO_HOOKS, ConsumerHooks
from ..state._partition_state import NO_EPOCH, FetchPosition, FetchState, PartitionState
from ..state._subscription_state import SubscriptionState
from ._classic_member import ClassicMember
from ._commits import Commits
from ._committed_offsets import CommittedOffsets
from ._coordinator_finder import CoordinatorFinder
from ._group_assignment import GroupAssignment
from ._group_leader import GroupLeader
from ._group_metadata import GroupMetadata
from ._group_settings import GroupSettings
from ._heartbeat import PollInterval
from ._loop_watchdog import watching_loop
from ._membership import Membership
from ._offset_prefetch import OffsetsAhead
from ._rebalance_callbacks import RebalanceCallbacks
from ._rebalance_listener_invoker import RebalanceNotices

_CLOSED: Final = "the consumer is closed"

LOGGER: Final = logging.getLogger(__name__)

Step: TypeAlias = Callable[[], Awaitable[None]]


class ConsumerCoordinator:
    """See the module.

    Args:
        client: somebody polls it.
        settings: of the group.
        subscription: of the consumer; what the group assigns is put into it.
        chance: what blurs waits.
        on_news: called when :attr:`needs_poll` has become true.
        hooks: see what was committed.
    """

    def __init__(
        self,
        client: KafkaClient,
        settings: GroupSettings,
        subscription: SubscriptionState,
        chance: random.Random,
        *,
        on_news: Callable[[], object],
        hooks: ConsumerHooks = NO_HOOKS,
    ) -> None:
        self._client = client
        self._settings = settings
        self._subscription = subscription
        self._member = ClassicMember(settings)
        self._assignment = GroupAssignment(settings.assignors, settings.rack_id)
        self._finder = CoordinatorFinder(client, settings, chance)
        self._offsets = CommittedOffsets(self._finder, self._member, settings, chance, hooks)
        self._ahead = OffsetsAhead(self._offsets, self._member, subscription, self.look_for_offsets)
        self._commits = Commits(
            self._offsets,
            subscription,
            self._member,
            settings,
            lambda partition: is_gone(client.metadata.cluster, partition),
        )
        self._notices = RebalanceNotices(subscription)
        self._leader = GroupLeader(client, subscription, self._member, self._assignment, settings)
        self._membership = Membership(
            self._finder,
            self._member,
            self._leader,
            settings,
            chance,
            protocols=self._protocols,
            on_leading=self._ahead.expect,
            on_news=on_news,
        )
        self._on_news = on_news
        self._joined_topics: frozenset[str] | None = None
        self._steps: deque[Step] = deque()
        self._failure: Exception | None = None
        self._is_leaving = False
        self._wanted_offsets = trio.Event()

    # What the consumer tells of its user.

    @property
    def callbacks(self) -> RebalanceCallbacks:
        """What the user wants to be told."""
        return self._notices.callbacks

    @callbacks.setter
    def callbacks(self, callbacks: RebalanceCallbacks) -> None:
        self._notices.callbacks = callbacks

    @property
    def poll_interval(self) -> PollInterval:
        """The consumer notes in it when its user asks for records."""
        return self._membership.poll_interval

    async def wait(self, news: trio.lowlevel.ParkingLot) -> None:
        """Park the user's task, who is not slow meanwhile."""
        interval = self._membership.poll_interval
        interval.is_waiting = True
        try:
            await news.park()
        finally:
            interval.stop_waiting(trio.current_time())

    @property
    def needs_poll(self) -> bool:
        """Whether :meth:`poll` is to be called before the user gets another record."""
        membership = self._membership
        if self._failure or membership.failure:
            return True
        if self._is_leaving:
            return False
        if self._steps:
            return True
        if not self._subscription.is_group_managed:
            return False
        return membership.joined is not None or (not membership.is_joining and self._must_join)

    @property
    def _must_join(self) -> bool:
        if self._joined_topics not in {None, self._subscription.topics}:
            return True
        return self._member.rejoin_reason is not None

    @property
    def group_metadata(self) -> GroupMetadata:
        """Who this consumer is to its group at present."""
        generation, member_id, _ = self._member.generation
        settings = self._settings
        return GroupMetadata(settings.group_id, generation, member_id, settings.instance_id)

    def rejoin(self, reason: str) -> None:
        """Have the group divide its partitions anew (Kafka: enforceRebalance, KIP-568)."""
        self._member.request_rejoin(reason)
        self._on_news()

    # The user's side.

    async def poll(self) -> None:
        """Do what the group wants of the user's side, callbacks included.

        To be called by the task that asks for records while :attr:`needs_poll` is true; never
        waits for other members.

        Raises:
            FencedInstanceIdError: another has this member's instance id; raised by every call from
                now on, and nothing is done for the group any more.
            ApiError, AuthenticationError: what ended the membership; the next call joins anew.
            Exception: what a callback raised; the rebalance goes on with the next call.

        Cancellation: the next call goes on, with the callback that was cancelled.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        while self.needs_poll:
            self._raise_failure()
            if not self._steps:
                self._steps.extend(self._next_steps())
            if self._steps:  # none for an assignment that came too late
                await self._take_step()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise again(self._failure)
        failure, self._membership.failure = self._membership.failure, None
        if failure is not None:
            raise again(failure)

    async def _take_step(self) -> None:
        step = self._steps[0]
        try:
            await step()
        except Exception:
            self._step_is_over(step)
            raise
        self._step_is_over(step)

    def _step_is_over(self, step: Step) -> None:
        # A member that leaves meanwhile has no steps any more.
        if self._steps and self._steps[0] is step:
            self._steps.popleft()

    def _next_steps(self) -> list[Step]:
        if self._membership.joined is not None:
            return self._steps_to_complete()
        return self._steps_to_prepare()

    def _steps_to_prepare(self) -> list[Step]:
        """Before joining (Kafka: onJoinPrepare)."""
        assigned = self._subscription.assigned
        steps: list[Step] = []
        if self._member.has_lost_generation:
            if assigned:
                self._say("partitions are lost to others", logging.WARNING)
                steps += [
                    lambda: self._notices.given_up(assigned, are_lost=True),
                    self._assign_step(()),
                ]
        else:
            self._say("joining anew", logging.INFO)
            given_up = assigned
            if self._assignment.protocol is RebalanceProtocol.COOPERATIVE:
                topics = self._subscription.topics
                given_up = frozenset(each for each in assigned if each.topic not in topics)
            steps += [self._commits.commit_finished, *self._steps_to_give_up(given_up)]
        return [*steps, self._join]

    def _say(self, what: str, level: int) -> None:
        reason = self._member.rejoin_reason or "the subscription has changed"
        LOGGER.log(level, "group %s: %s: %s", self._settings.group_id, what, reason)

    def _steps_to_give_up(self, given_up: frozenset[TopicPartition]) -> list[Step]:
        if not given_up:
            return []
        self._subscription.mark_revocation_pending(given_up)
        return [
            lambda: self._notices.given_up(given_up, are_lost=False),
            self._assign_step(self._subscription.assigned - given_up),
        ]

    async def _join(self) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        self._membership.join()

    def _protocols(self) -> list[tuple[str, bytes]]:
        self._joined_topics = self._subscription.topics
        return self._assignment.protocols(self._joined_topics, self._subscription.assigned)

    def _steps_to_complete(self) -> list[Step]:
        """After joining (Kafka: onJoinComplete)."""
        joined, self._membership.joined = self._membership.joined, None
        if joined is None or joined != self._member.generation:
            self._member.request_rejoin("the member was thrown out before it began")
            return []
        given = decode_assignment(self._member.assignment)
        if not self._subscription.fits_subscription(given):
            self._member.request_rejoin("the subscription has changed during the rebalance")
            return []
        before = self._subscription.assigned
        given_up = before - frozenset(given)
        added = frozenset(given) - before
        steps: list[Step] = []
        if given_up:
            steps += [self._commits.commit_finished, *self._steps_to_give_up(given_up)]
        steps += [
            self._assign_step(given),
            lambda: self._notices.assigned(added),
        ]
        self._assignment.assigned(given, joined.id)
        if given_up and self._assignment.protocol is RebalanceProtocol.COOPERATIVE:
            # Others get them in the next generation, when nobody has them (KIP-429).
            self._member.request_rejoin("partitions were given up for other members")
        return steps

    def _assign_step(self, partitions: Iterable[TopicPartition]) -> Step:
        async def assign() -> None:
            await trio.lowlevel.checkpoint_if_cancelled()
            self._subscription.assign_from_group(partitions)
            self.look_for_offsets()

        return assign

    # The background.

    async def go_on(self) -> None:
        """Do what goes on behind the user's back, until cancelled.

        Errors are raised by :meth:`poll`.
        """
        await trio.lowlevel.checkpoint()
        try:
            with watching_loop(self._settings.blocked_seconds):
                await self._run()
        except* Exception as group:  # boundary: the user is told at each further request
            self._failure = group.exceptions[0]
            self._subscription.mark_revocation_pending(self._subscription.assigned)
            self._on_news()

    async def _run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._membership.run)
            nursery.start_soon(self._find_offsets)
            if self._settings.auto_commit_seconds is not None:
                nursery.start_soon(
                    self._commits.commit_regularly, self._settings.auto_commit_seconds
                )

    def look_for_offsets(self) -> None:
        """Partitions may have been assigned whose committed offsets nobody has asked for."""
        self._wanted_offsets.set()

    async def _find_offsets(self) -> None:
        """Look for the committed offsets of partitions that were assigned."""
        while True:
            await self._wanted_offsets.wait()
            self._wanted_offsets = trio.Event()
            self._connect_to_leaders(self._ahead.expected)
            await self._ahead.look()
            if wanted := self._subscription.initializing():
                self._connect_to_leaders(wanted)
                try:
                    states = {each: self._subscription.partitions[each] for each in wanted}
                    self._begin_at(states, await self._ahead.fetch(wanted))
                except TrionetError as error:
                    self._membership.failure = error
                    self._wanted_offsets.set()
                    self._on_news()
                    await trio.sleep(self._settings.retry.seconds_max)

    def _connect_to_leaders(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin to connect to who is to be asked for records as soon as offsets are known."""
        cluster = self._client.metadata.cluster
        for node in {cluster.leader(*each) for each in partitions}:
            if node is not None:
                self._client.ready(node)

    def _begin_at(
        self,
        asked: Mapping[TopicPartition, PartitionState],
        offsets: Mapping[TopicPartition, OffsetAndMetadata | None],
    ) -> None:
        for partition, committed in offsets.items():
            state = self._subscription.state(partition)
            if state is not asked[partition] or state.state is not FetchState.INITIALIZING:
                continue  # it was given up meanwhile, or the user has sought another position
            if committed is None:
                self._subscription.request_reset(partition)
                continue
            epoch = NO_EPOCH if committed.leader_epoch is None else committed.leader_epoch
            position = FetchPosition(committed.offset, epoch)
            self._subscription.seek(partition, position, is_valid=epoch == NO_EPOCH)
            self._commits.begin_at(partition)

    # Offsets.

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None
    ) -> None:
        """Commit offsets, or those behind all that was handed out.

        See :meth:`.CommittedOffsets.commit`.
        """
        if isinstance(self._failure, FencedInstanceIdError):
            raise again(self._failure)
        self._ahead.forget()
        await self._commits.commit(offsets)

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed last; see :meth:`.CommittedOffsets.fetch`."""
        return await self._offsets.fetch(partitions)

    # The end.

    async def close(self, *, is_normal: bool) -> None:
        """Commit what is finished, tell the user that partitions are given up, and leave the group.

        Args:
            is_normal: the user's block has come to its end, and with it the record in hand; not
                so after an error or a cancellation, when that record is not finished.

        Bounded by ``close_seconds_max``, or ``cancelled_close_seconds_max`` if the end is not
        normal or the caller is cancelled meanwhile.
        """
        self._is_leaving = True
        if is_normal:
            for state in self._subscription.partitions.values():
                state.finish()
            try:
                with trio.move_on_after(self._settings.close_seconds_max) as limit:
                    await self._give_up_and_leave(_CLOSED, limit)
                return
            except trio.Cancelled:
                # Once more, with the callback that was cancelled.
                with trio.move_on_after(
                    self._settings.cancelled_close_seconds_max, shield=True
                ) as limit:
                    await self._give_up_and_leave(_CLOSED, limit)
                raise
        with trio.move_on_after(self._settings.cancelled_close_seconds_max, shield=True) as limit:
            await self._give_up_and_leave(_CLOSED, limit)

    async def leave(self, reason: str) -> None:
        """Commit what is finished, give up everything, and be no member until the next join.

        Args:
            reason: for the broker's log.

        Raises:
            Exception: what a callback raised; the member has left all the same.

        Cancellation: it may still be a member; who was cancelled in a callback is none.
        """
        self._is_leaving = True
        try:
            await self._give_up_and_leave(reason, None)
        finally:
            self._is_leaving = False
            self._on_news()

    async def _give_up_and_leave(self, reason: str, limit: trio.CancelScope | None) -> None:
        with trio.move_on_after(self._settings.api_seconds_max):
            await self._commits.commit_finished()
        if not self._subscription.is_group_managed:
            return
        assigned = self._subscription.assigned
        self._subscription.mark_revocation_pending(assigned)
        is_over = True
        try:
            await self._give_up_all(assigned)
        except trio.Cancelled:
            # A callback may hang, and the others wait for what this member has.
            is_over = limit is None or limit.cancel_called
            raise
        finally:
            if is_over:
                with trio.move_on_after(self._settings.cancelled_close_seconds_max, shield=True):
                    await self._membership.leave(reason)
                self._steps.clear()
                self._joined_topics = None

    async def _give_up_all(self, assigned: frozenset[TopicPartition]) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        if not assigned:
            return
        are_lost = self._member.has_lost_generation or self._membership.is_joining
        await self._notices.given_up(assigned, are_lost=are_lost)
        if self._subscription.is_group_managed:  # else another task has unsubscribed meanwhile
            self._subscription.assign_from_group(())
