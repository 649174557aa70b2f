"""A consumer's side of its group (Kafka: ConsumerCoordinator).

A group needs things done at two different times. Heartbeats, joins, fetching committed offsets and
auto-commits have to happen whatever the user's loop does meanwhile: they run in background tasks
(:meth:`ConsumerCoordinator.run`). Partitions must not be given up or taken over while the user's
loop works on them, and the user's callbacks belong to the user's task: these run when that task
requests a record (:meth:`ConsumerCoordinator.poll`), as a queue of steps, so that a cancelled or
failed step does not lose the others.

Rejected: one task for everything, as Kafka's consumer without its heartbeat thread, where a slow
loop delays heartbeats and joins; and callbacks in the background, where they would race with the
loop. Reconsider with the protocol of KIP-848, where the broker computes assignments.
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
from ..._topic_partition import OffsetAndMetadata, TopicPartition
from ...network._kafka_client import KafkaClient
from ..assignors import RebalanceProtocol
from ..assignors._consumer_protocol import decode_assignment
from ..offsets._leader_requests import is_gone
from ..records._hooks import NO_HOOKS, ConsumerHooks
from ..state._partition_state import NO_EPOCH, FetchPosition, FetchState, PartitionState
from ..state._subscription_state import SubscriptionState
from ._classic_member import ClassicMember, GroupMetadata
from ._commits import Commits
from ._committed_offsets import CommittedOffsets
from ._coordinator_finder import CoordinatorFinder
from ._group_assignment import GroupAssignment
from ._group_leader import GroupLeader
from ._group_settings import GroupSettings
from ._heartbeat import PollInterval
from ._loop_watchdog import watching_loop
from ._membership import Membership
from ._offset_prefetch import OffsetPrefetch
from ._rebalance_callbacks import RebalanceCallbacks, RebalanceListenerInvoker

_CLOSED: Final = "the consumer is closed"

LOGGER: Final = logging.getLogger(__name__)

Step: TypeAlias = Callable[[], Awaitable[None]]


class ConsumerCoordinator:
    """Coordinates the background tasks of a group with the task that reads records.

    More than 25 methods: one state machine, whose steps are methods so that each can be named and
    tested.

    Args:
        client: polled by the network task.
        settings: of the group.
        subscription: receives the assignment.
        rng: jitters backoffs.
        notify: called when :attr:`needs_poll` has become true.
        hooks: called with committed offsets.
    """

    def __init__(
        self,
        client: KafkaClient,
        settings: GroupSettings,
        subscription: SubscriptionState,
        rng: random.Random,
        *,
        notify: Callable[[], object],
        hooks: ConsumerHooks = NO_HOOKS,
    ) -> None:
        self._client = client
        self._settings = settings
        self._subscription = subscription
        self._member = ClassicMember(settings)
        self._assignment = GroupAssignment(settings.assignors, settings.rack_id)
        self._finder = CoordinatorFinder(client, settings, rng)
        self._offsets = CommittedOffsets(self._finder, self._member, settings, rng, hooks)
        self._prefetch = OffsetPrefetch(
            self._offsets, self._member, subscription, self.find_offsets_soon
        )
        self._commits = Commits(
            self._offsets,
            subscription,
            self._member,
            settings,
            lambda partition: is_gone(client.metadata.cluster, partition),
        )
        self._listeners = RebalanceListenerInvoker(subscription)
        self._leader = GroupLeader(client, subscription, self._member, self._assignment, settings)
        self._membership = Membership(
            self._finder,
            self._member,
            self._leader,
            settings,
            rng,
            protocols=self._protocols,
            on_leading=self._prefetch.expect,
            notify=notify,
        )
        self._notify = notify
        self._joined_topics: frozenset[str] | None = None
        self._steps: deque[Step] = deque()
        self._failure: Exception | None = None
        self._is_leaving = False
        self._wanted_offsets = trio.Event()

    # The user's task.

    @property
    def callbacks(self) -> RebalanceCallbacks:
        """The user's rebalance callbacks."""
        return self._listeners.callbacks

    @callbacks.setter
    def callbacks(self, callbacks: RebalanceCallbacks) -> None:
        self._listeners.callbacks = callbacks

    @property
    def poll_interval(self) -> PollInterval:
        """Where the consumer records each request for records."""
        return self._membership.poll_interval

    async def wait(self, parking_lot: trio.lowlevel.ParkingLot) -> None:
        """Park the user's task; it does not count as slow meanwhile."""
        interval = self._membership.poll_interval
        interval.is_waiting = True
        try:
            await parking_lot.park()
        finally:
            interval.stop_waiting(trio.current_time())

    @property
    def needs_poll(self) -> bool:
        """Whether :meth:`poll` has to be called before the user gets another record."""
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
        """The current identity of this consumer in its group."""
        generation, member_id, _ = self._member.generation
        settings = self._settings
        return GroupMetadata(settings.group_id, generation, member_id, settings.instance_id)

    def rejoin(self, reason: str) -> None:
        """Make the group rebalance (Kafka: enforceRebalance, KIP-568)."""
        self._member.request_rejoin(reason)
        self._notify()

    # Rebalances, in the user's task.

    async def poll(self) -> None:
        """Do what a rebalance requires of the user's task, callbacks included.

        To be called by the task that reads records while :attr:`needs_poll` is true; never waits
        for other members.

        Raises:
            FencedInstanceIdError: another consumer uses this member's instance id; raised by every
                call from now on, and nothing is done for the group any more.
            ApiError, AuthenticationError: what ended the membership; the next call joins again.
            Exception: what a callback raised; the rebalance continues with the next call.

        Cancellation: the next call continues, with the callback that was cancelled.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        while self.needs_poll:
            self._raise_failure()
            if not self._steps:
                self._steps.extend(self._next_steps())
            if self._steps:  # none for an outdated assignment
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
            self._finish_step(step)
            raise
        self._finish_step(step)

    def _finish_step(self, step: Step) -> None:
        # The step may have been dropped while it ran: leaving the group clears the queue.
        if self._steps and self._steps[0] is step:
            self._steps.popleft()

    def _next_steps(self) -> list[Step]:
        if self._membership.joined is not None:
            return self._steps_to_complete()
        return self._steps_to_prepare()

    def _steps_to_prepare(self) -> list[Step]:
        """The steps before joining (Kafka: onJoinPrepare)."""
        assigned = self._subscription.assigned
        steps: list[Step] = []
        if self._member.has_lost_generation:
            if assigned:
                self._log_rejoin("partitions were lost to other members", logging.WARNING)
                steps += [
                    lambda: self._listeners.given_up(assigned, are_lost=True),
                    self._assign_step(()),
                ]
        else:
            self._log_rejoin("rejoining", logging.INFO)
            given_up = assigned
            if self._assignment.protocol is RebalanceProtocol.COOPERATIVE:
                topics = self._subscription.topics
                given_up = frozenset(each for each in assigned if each.topic not in topics)
            steps += [self._commits.commit_finished, *self._steps_to_give_up(given_up)]
        return [*steps, self._join]

    def _log_rejoin(self, what: str, level: int) -> None:
        reason = self._member.rejoin_reason or "the subscription has changed"
        LOGGER.log(level, "group %s: %s: %s", self._settings.group_id, what, reason)

    def _steps_to_give_up(self, given_up: frozenset[TopicPartition]) -> list[Step]:
        if not given_up:
            return []
        self._subscription.mark_revocation_pending(given_up)
        return [
            lambda: self._listeners.given_up(given_up, are_lost=False),
            self._assign_step(self._subscription.assigned - given_up),
        ]

    async def _join(self) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        self._membership.join()

    def _protocols(self) -> list[tuple[str, bytes]]:
        self._joined_topics = self._subscription.topics
        return self._assignment.protocols(self._joined_topics, self._subscription.assigned)

    def _steps_to_complete(self) -> list[Step]:
        """The steps after joining (Kafka: onJoinComplete)."""
        joined, self._membership.joined = self._membership.joined, None
        if joined is None or joined != self._member.generation:
            self._member.request_rejoin("the member was removed before it got its assignment")
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
            lambda: self._listeners.assigned(added),
        ]
        self._assignment.assigned(given, joined.id)
        if given_up and self._assignment.protocol is RebalanceProtocol.COOPERATIVE:
            # Other members get them in the next generation, when they are free (KIP-429).
            self._member.request_rejoin("partitions were given up for other members")
        return steps

    def _assign_step(self, partitions: Iterable[TopicPartition]) -> Step:
        async def assign() -> None:
            await trio.lowlevel.checkpoint_if_cancelled()
            self._subscription.assign_from_group(partitions)
            self.find_offsets_soon()

        return assign

    # Background tasks.

    async def run(self) -> None:
        """Run the background work (heartbeats, joins, offsets, auto-commit) until cancelled.

        Errors are raised by :meth:`poll`.
        """
        await trio.lowlevel.checkpoint()
        try:
            with watching_loop(self._settings.blocked_seconds):
                await self._run_tasks()
        except* Exception as group:  # boundary: raised by each further request for a record
            self._failure = group.exceptions[0]
            self._subscription.mark_revocation_pending(self._subscription.assigned)
            self._notify()

    async def _run_tasks(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._membership.run)
            nursery.start_soon(self._find_offsets)
            if self._settings.auto_commit_seconds is not None:
                nursery.start_soon(
                    self._commits.commit_regularly, self._settings.auto_commit_seconds
                )

    def find_offsets_soon(self) -> None:
        """Wake the task that fetches the committed offsets of new partitions."""
        self._wanted_offsets.set()

    async def _find_offsets(self) -> None:
        """Fetch the committed offsets of partitions that were assigned."""
        while True:
            await self._wanted_offsets.wait()
            self._wanted_offsets = trio.Event()
            self._connect_to_leaders(self._prefetch.expected)
            await self._prefetch.fetch_expected()
            if wanted := self._subscription.initializing():
                self._connect_to_leaders(wanted)
                try:
                    states = {each: self._subscription.partitions[each] for each in wanted}
                    self._begin_at(states, await self._prefetch.fetch(wanted))
                except TrionetError as error:
                    self._membership.failure = error
                    self._wanted_offsets.set()
                    self._notify()
                    await trio.sleep(self._settings.retry.seconds_max)

    def _connect_to_leaders(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin to connect to the nodes to fetch from, while the offsets are being fetched."""
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
                # It was given up while the request was in flight, or the user called seek().
                continue
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
        """Commit these offsets, or by default those after everything that was handed out.

        See :meth:`.CommittedOffsets.commit`.
        """
        if isinstance(self._failure, FencedInstanceIdError):
            raise again(self._failure)
        self._prefetch.forget()
        await self._commits.commit(offsets)

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The last committed offsets of the group; see :meth:`.CommittedOffsets.fetch`."""
        return await self._offsets.fetch(partitions)

    # Closing.

    async def close(self, *, is_normal: bool) -> None:
        """Commit finished records, call ``on_revoked``, and leave the group.

        Args:
            is_normal: whether the user's block has ended normally, which finishes the current
                record; after an error or a cancellation that record is not finished.

        Limited by ``close_timeout_seconds``, or by ``cancelled_close_timeout_seconds`` if the end
        is not normal or the caller is cancelled meanwhile.
        """
        self._is_leaving = True
        if is_normal:
            for state in self._subscription.partitions.values():
                state.finish()
            try:
                with trio.move_on_after(self._settings.close_timeout_seconds) as limit:
                    await self._give_up_and_leave(_CLOSED, limit)
                return
            except trio.Cancelled:
                # Again, with the callback that was cancelled, but with less time.
                with trio.move_on_after(
                    self._settings.cancelled_close_timeout_seconds, shield=True
                ) as limit:
                    await self._give_up_and_leave(_CLOSED, limit)
                raise
        with trio.move_on_after(
            self._settings.cancelled_close_timeout_seconds, shield=True
        ) as limit:
            await self._give_up_and_leave(_CLOSED, limit)

    async def leave(self, reason: str) -> None:
        """Commit finished records, give up all partitions, and leave the group until the next join.

        Args:
            reason: for the broker's log.

        Raises:
            Exception: what a callback raised; the member has left nevertheless.

        Cancellation: it may still be a member; if a callback was cancelled, it has left.
        """
        self._is_leaving = True
        try:
            await self._give_up_and_leave(reason, None)
        finally:
            self._is_leaving = False
            self._notify()

    async def _give_up_and_leave(self, reason: str, limit: trio.CancelScope | None) -> None:
        with trio.move_on_after(self._settings.api_timeout_seconds):
            await self._commits.commit_finished()
        if not self._subscription.is_group_managed:
            return
        assigned = self._subscription.assigned
        self._subscription.mark_revocation_pending(assigned)
        is_over = True
        try:
            await self._give_up_all(assigned)
        except trio.Cancelled:
            # If the time limit cancelled a callback that hangs, leave nevertheless: other members
            # wait for the partitions. If the caller was cancelled, close() calls this once more.
            is_over = limit is None or limit.cancel_called
            raise
        finally:
            if is_over:
                with trio.move_on_after(
                    self._settings.cancelled_close_timeout_seconds, shield=True
                ):
                    await self._membership.leave(reason)
                self._steps.clear()
                self._joined_topics = None

    async def _give_up_all(self, assigned: frozenset[TopicPartition]) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        if not assigned:
            return
        are_lost = self._member.has_lost_generation or self._membership.is_joining
        await self._listeners.given_up(assigned, are_lost=are_lost)
        # Another task may have unsubscribed while the callback ran.
        if self._subscription.is_group_managed:
            self._subscription.assign_from_group(())
