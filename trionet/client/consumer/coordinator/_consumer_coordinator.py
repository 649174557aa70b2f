"""A consumer's group membership and its committed offsets (Kafka: ConsumerCoordinator).

Group membership involves two kinds of work. Heartbeats, joins, fetches of committed offsets and
auto-commits must not depend on the user's loop, so they run in background tasks
(:meth:`ConsumerCoordinator.run`). Partitions must not be revoked or assigned while the user's loop
is processing their records, and callbacks belong in the user's task. These steps
(:class:`.RebalanceSteps`) therefore run when the user's task requests a record
(:meth:`ConsumerCoordinator.poll`).

Rejected: doing everything in the user's task, because a slow loop would delay heartbeats and joins.
Also rejected: callbacks in a background task, because they would race with the loop. Reconsider
with KIP-848, where the broker computes assignments.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import trio

from ...._util._logging import get_logger
from ...._util._raising import again
from ....errors import CommitFailedError, FencedInstanceIdError, TrionetError
from ..._topic_partition import OffsetAndMetadata, TopicPartition
from ...network._kafka_client import KafkaClient
from ..offsets._position_requests import is_gone
from ..records._hooks import NO_HOOKS, ConsumerHooks
from ..state._subscription_state import SubscriptionState, SubscriptionType
from ._classic_member import ClassicMember, Generation, GroupMetadata, GroupSettings
from ._commits import Commits
from ._committed_offsets import CommittedOffsets
from ._coordinator_finder import CoordinatorFinder
from ._group_leader import GroupAssignment, GroupLeader
from ._initial_positions import InitialPositions, OffsetPrefetch
from ._loop_watchdog import watching_loop
from ._membership import Membership
from ._rebalance_steps import RebalanceListenerInvoker, RebalanceSteps

LOGGER: Final = get_logger(__name__)

_CLOSED: Final = "the consumer is closed"
#: How long the last commit waits while no broker can be reached. A broker that restarts has a
#: chance, and a program that ends because its cluster is gone does not appear to hang.
UNREACHED_SECONDS: Final = 5.0


class ConsumerCoordinator:
    """One consumer's group membership, split between background tasks and the user's task.

    Args:
        client: polled by the network task.
        settings: the group settings.
        subscription: receives the assignment.
        rng: jitters backoffs.
        notify: called when :attr:`needs_poll` may have become true.
        hooks: notified of committed offsets.

    Attributes:
        listeners: calls the user's rebalance callbacks.
        positions: sets the initial positions of partitions that the group has assigned.
        poll_interval: tracks the time since the user last requested a record.
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
        self._finder = CoordinatorFinder(client, settings, rng)
        self._offsets = CommittedOffsets(self._finder, self._member, settings, rng, hooks)
        self._prefetch = OffsetPrefetch(self._offsets, self._member, subscription)
        self._commits = Commits(
            self._offsets,
            subscription,
            self._member,
            settings,
            lambda partition: is_gone(client.metadata.cluster, partition),
        )
        self.listeners = RebalanceListenerInvoker(subscription)
        self.positions = InitialPositions(
            client,
            subscription,
            self._prefetch,
            self._commits,
            settings.retry.seconds_max,
            self._offsets_failed,
        )
        assignment = GroupAssignment(settings.assignors, settings.rack_id)
        self._steps = RebalanceSteps(
            settings,
            subscription,
            self._member,
            assignment,
            self._commits,
            self.listeners,
            join=lambda: self._membership.join(),  # noqa: PLW0108 -- created below
            on_assigned=self.positions.find_soon,
        )
        self._leader = GroupLeader(client, subscription, self._member, assignment, settings)
        self._membership = Membership(
            self._finder,
            self._member,
            self._leader,
            settings,
            rng,
            protocols=self._steps.protocols,
            on_leading=self.positions.expect,
            notify=notify,
        )
        self.poll_interval = self._membership.poll_interval
        self._notify = notify
        self._failure: Exception | None = None
        self._is_leaving = False

    # The user's task.

    async def wait(self, parking_lot: trio.lowlevel.ParkingLot) -> None:
        """Park the user's task; the wait does not count towards ``max.poll.interval.ms``."""
        self.poll_interval.is_waiting = True
        try:
            await parking_lot.park()
        finally:
            self.poll_interval.stop_waiting(trio.current_time())

    @property
    def needs_poll(self) -> bool:
        """Whether :meth:`poll` must be called before the user receives another record."""
        membership = self._membership
        if self._failure or membership.failure:
            return True
        if self._is_leaving:
            return False
        if self._steps.queue:
            return True
        if not self._subscription.is_group_managed:
            return False
        return membership.joined is not None or (
            not membership.is_joining and self._steps.must_join
        )

    @property
    def commits_automatically(self) -> bool:
        """Whether offsets are committed at an interval and at the end (enable.auto.commit)."""
        return self._settings.auto_commit_seconds is not None

    @property
    def group_metadata(self) -> GroupMetadata:
        """The identity under which the group assigned this consumer's partitions."""
        is_member = self._subscription.type is not SubscriptionType.USER
        generation, member_id, _ = self._steps.generation if is_member else Generation()
        settings = self._settings
        return GroupMetadata(settings.group_id, generation, member_id, settings.instance_id)

    def offsets_to_send(
        self, since: int
    ) -> tuple[GroupMetadata, dict[TopicPartition, OffsetAndMetadata], Callable[[], object]]:
        """Return what a transaction commits: the positions, which include the current record.

        Args:
            since: the number of the event with which the transaction began; see :data:`.EVENTS`.

        Returns:
            The identity in the group, the positions, and what to call when they are committed.

        Raises:
            CommitFailedError: meanwhile, partitions were given up whose records are in the
                transaction; their offsets can no longer be part of it.
        """
        subscription = self._subscription
        lost_at, subscription.lost_at = subscription.lost_at, 0.0
        if lost_at > since:
            raise CommitFailedError(
                f"group {self._settings.group_id}: partitions were given up whose records had been"
                " returned and are not committed, so these records are read again. End a"
                " transaction in on_revoked, before partitions are given up"
            )
        offsets, finish = self._commits.take()
        return self.group_metadata, offsets, finish

    def pattern_changed(self) -> None:
        """Subscribe to the known topics that match a new pattern, and ask for the newest topics."""
        self._leader.match_pattern()
        self._client.metadata.request_update()

    def rejoin(self, reason: str) -> None:
        """Request a rejoin, which triggers a rebalance (Kafka: enforceRebalance, KIP-568)."""
        self._member.request_rejoin(reason)
        self._notify()

    # Rebalances, in the user's task.

    async def poll(self) -> None:
        """Run the steps of a rebalance that belong in the user's task, including callbacks.

        The task that reads records calls this while :attr:`needs_poll` is true. This
        method never waits for other members.

        Raises:
            FencedInstanceIdError: another consumer uses the same instance id; the background tasks
                have ended, and every later call raises this error too.
            TrionetError: joining, a heartbeat or fetching committed offsets failed; the next call
                continues.
            Exception: raised by a callback; the next call continues the rebalance.

        Cancellation: the next call repeats the cancelled step and continues from there.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        while self.needs_poll:
            self._raise_failure()
            if not self._steps.queue:
                joined, self._membership.joined = self._membership.joined, None
                if joined is None:
                    self._steps.prepare()
                else:
                    self._steps.complete(joined)
            if self._steps.queue:  # none for an outdated assignment
                await self._steps.take()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise again(self._failure)
        failure, self._membership.failure = self._membership.failure, None
        if failure is not None:
            raise again(failure)

    # Background tasks.

    async def run(self) -> None:
        """Run the background work (heartbeats, joins, offsets, auto-commit) until cancelled.

        Errors are not raised here, but by :meth:`poll`.
        """
        await trio.lowlevel.checkpoint()
        try:
            with watching_loop(self._settings.blocked_seconds):
                await self._run_tasks()
        except* Exception as group:  # boundary: raised by each further request for a record
            self._failure = group.exceptions[0]
            self._subscription.assignment.mark_revocation_pending(
                self._subscription.assignment.partitions
            )
            self._notify()

    async def _run_tasks(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._membership.run)
            nursery.start_soon(self.positions.run)
            if self._settings.auto_commit_seconds is not None:
                nursery.start_soon(
                    self._commits.commit_regularly, self._settings.auto_commit_seconds
                )

    def _offsets_failed(self, error: TrionetError) -> None:
        self._membership.failure = error
        self._notify()

    # Offsets.

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        *,
        omits_gone: bool = False,
    ) -> None:
        """Commit offsets, by default the positions after all records returned so far.

        See :meth:`.Commits.commit`.
        """
        if isinstance(self._failure, FencedInstanceIdError):
            raise again(self._failure)
        self._prefetch.forget()
        await self._commits.commit(offsets, omits_gone=omits_gone)

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's last committed offsets; see :meth:`.CommittedOffsets.fetch`."""
        return await self._offsets.fetch(partitions)

    # Closing.

    async def close(self, *, is_normal: bool) -> None:
        """Commit finished records, call ``on_revoked`` or ``on_lost``, and leave the group.

        That the block has ended says nothing about the current record, which may have been cut
        short inside of it; it is not committed.

        The time limit is ``close_timeout_seconds``, or ``cancelled_close_timeout_seconds`` if the
        block did not end normally or the caller is cancelled in the meantime. The commit may take
        half of it, and waits at most :data:`UNREACHED_SECONDS` for brokers none of which can be
        reached.

        Args:
            is_normal: whether the user's block ended normally.
        """
        seconds = self._settings.cancelled_close_timeout_seconds
        self._is_leaving = True
        if is_normal:
            try:
                with trio.move_on_after(self._settings.close_timeout_seconds) as limit:
                    await self._give_up_and_leave(_CLOSED, limit)
                return
            except trio.Cancelled:
                # Again, with the callback that was cancelled, but with less time.
                with trio.move_on_after(seconds, shield=True) as limit:
                    await self._give_up_and_leave(_CLOSED, limit)
                raise
        with trio.move_on_after(seconds, shield=True) as limit:
            await self._give_up_and_leave(_CLOSED, limit)

    async def leave(self, reason: str) -> None:
        """Commit finished records, revoke all partitions, and leave the group.

        Args:
            reason: why the member is leaving; logged by the broker.

        Raises:
            Exception: raised by a callback; the member has left nevertheless.

        Cancellation: if a callback was cancelled, the member has left nevertheless; otherwise it
        may still be in the group.
        """
        self._is_leaving = True
        try:
            await self._give_up_and_leave(reason, None)
        finally:
            self._is_leaving = False
            self._notify()

    async def _give_up_and_leave(self, reason: str, limit: trio.CancelScope | None) -> None:
        until = math.inf if limit is None else limit.deadline
        # A commit that hangs takes half of the time: other members wait for the partitions.
        half = (until - trio.current_time()) / 2
        with trio.move_on_after(min(self._settings.api_timeout_seconds, half)) as commit:
            await self._commit_last()
        if not self._subscription.is_group_managed:
            return
        assigned = self._subscription.assignment.partitions
        self._subscription.assignment.mark_revocation_pending(assigned)
        is_over = True
        try:
            await self._give_up_all(assigned)
        except trio.Cancelled:
            # If the time limit cancelled a callback that hangs, leave nevertheless. If the caller
            # was cancelled, close() calls this once more.
            is_over = limit is None or limit.cancel_called
            raise
        finally:
            if is_over:
                seconds = self._settings.cancelled_close_timeout_seconds
                left = until - trio.current_time()
                if commit.cancelled_caught and left > 0:  # nor may there be a response to this
                    seconds = min(seconds, left)
                with trio.move_on_after(seconds, shield=True):
                    await self._membership.leave(reason)
                self._steps.clear()

    async def _commit_last(self) -> None:
        with trio.move_on_after(UNREACHED_SECONDS) as patience:
            await self._commits.commit_finished()
        if not patience.cancelled_caught:
            return
        _, is_connected = self._client.least_loaded_node(trio.current_time())
        problem = self._client.connection_problem()
        if is_connected or not problem:
            await self._commits.commit_finished()
            return
        LOGGER.warning(
            "group %s: the offsets of the last records were not committed, so they will be read"
            " again: %s",
            self._settings.group_id,
            problem,
        )

    async def _give_up_all(self, assigned: frozenset[TopicPartition]) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        if not assigned:
            return
        are_lost = self._member.has_lost_generation or self._membership.is_joining
        await self.listeners.given_up(assigned, are_lost=are_lost)
        # Another task may have unsubscribed while the callback ran.
        if self._subscription.is_group_managed:
            self._subscription.assign_from_group((), is_announced=True)  # the program leaves
