"""The steps of a rebalance that must run in the user's task, and the user's callbacks.

(Kafka: ConsumerCoordinator.onJoinPrepare, onJoinComplete; ConsumerRebalanceListener.)
"""

from __future__ import annotations

import inspect
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias

import attrs
import trio

from ...._util._logging import get_logger
from ....errors import WireFormatError
from ..._topic_partition import TopicPartition
from ..assignors import RebalanceProtocol
from ..assignors._consumer_protocol import decode_assignment
from ..state._partition_state import PartitionState
from ..state._subscription_state import SubscriptionState
from ._classic_member import ClassicMember, Generation, GroupSettings
from ._commits import Commits
from ._group_leader import GroupAssignment

LOGGER: Final = get_logger(__name__)

RebalanceCallback: TypeAlias = Callable[[list[TopicPartition]], Awaitable[None] | None]
"""A plain or async function that is called with a sorted list of partitions."""


@attrs.frozen(kw_only=True)
class RebalanceCallbacks:
    """The user's callbacks for rebalances, called in the task that reads records.

    Callbacks run when the task requests a record. An error in a callback is raised by that request,
    and the next request continues the rebalance. A cancelled callback is called again with the same
    partitions.

    Attributes:
        assigned: called with the partitions that were added.
        revoked: called with partitions that are about to be revoked; this member still owns them
            and may commit their offsets.
        lost: called with partitions that other members may already own, since this member was
            removed from the group; if omitted, ``revoked`` is called instead.
    """

    assigned: RebalanceCallback | None = None
    revoked: RebalanceCallback | None = None
    lost: RebalanceCallback | None = None


async def _call(callback: RebalanceCallback | None, partitions: Iterable[TopicPartition]) -> None:
    await trio.lowlevel.checkpoint_if_cancelled()
    if callback is None:
        return
    outcome = callback(sorted(partitions))
    if inspect.isawaitable(outcome):
        await outcome


#: The callbacks of all consumers that are running in this task; child tasks inherit this set.
_RUNNING: Final[ContextVar[frozenset[object]]] = ContextVar("_RUNNING", default=frozenset())


class RebalanceListenerInvoker:
    """Calls one consumer's rebalance callbacks, one at a time.

    Args:
        subscription: provides the states of partitions, which stay assigned while callbacks run.

    Attributes:
        callbacks: the user's callbacks.
    """

    def __init__(self, subscription: SubscriptionState) -> None:
        self._subscription = subscription
        self._turn = trio.Lock()
        self._running: object = None
        self._given_up: dict[TopicPartition, PartitionState] = {}
        self.callbacks = RebalanceCallbacks()

    @property
    def has_callbacks(self) -> bool:
        """Whether the user has a callback that is called before partitions are given up."""
        return self.callbacks.revoked is not None or self.callbacks.lost is not None

    async def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Report added partitions, after waiting for any callback running in another task.

        As in Kafka, the callback is also called without partitions, at the end of a rebalance.
        """
        async with self._calling():
            await _call(self.callbacks.assigned, partitions)

    async def given_up(self, partitions: frozenset[TopicPartition], *, are_lost: bool) -> None:
        """Report revoked or lost partitions that have not been reported yet.

        Cancellation: the next call reports the same partitions again.
        """
        async with self._calling():
            # A partition that is assigned again has a new state, and is reported again.
            states = self._subscription.assignment.states
            new = {
                each: states[each]
                for each in partitions
                if each in states and self._given_up.get(each) is not states[each]
            }
            if not new:
                await trio.lowlevel.checkpoint_if_cancelled()
                return
            self._given_up |= new
            callbacks = self.callbacks
            lost_or_revoked = (are_lost and callbacks.lost) or callbacks.revoked
            try:
                await _call(lost_or_revoked, new)
            except Exception:
                raise
            except BaseException:  # boundary: a cancelled callback, which is called again
                for each in new:
                    self._given_up.pop(each, None)
                raise

    @asynccontextmanager
    async def _calling(self) -> AsyncIterator[None]:
        """Wait for a running callback, unless called by that callback, which would deadlock."""
        if self._running in _RUNNING.get():
            yield
            return
        async with self._turn:
            self._running = object()
            before = _RUNNING.set(_RUNNING.get() | {self._running})
            try:
                yield
            finally:
                _RUNNING.reset(before)
                self._running = None


Step: TypeAlias = Callable[[], Awaitable[None]]


class RebalanceSteps:
    """A queue of the remaining steps of a rebalance in the user's task.

    Because of the queue, the next :meth:`take` repeats a cancelled step, and a failed step does not
    discard the remaining steps.

    Args:
        settings: the group settings.
        subscription: receives the assignment.
        member: the consumer's group membership.
        assignment: encodes the subscription and records the assigned partitions.
        commits: commits finished records before partitions are revoked.
        listeners: calls the user's callbacks.
        join: called when all steps before the join are done.
        on_assigned: called when partitions have been assigned.

    Attributes:
        queue: the remaining steps.
        generation: the generation that last assigned partitions to the user's task. It stays when
            the membership is lost, so that whatever is committed for records of that generation is
            rejected (Kafka: ConsumerCoordinator.groupMetadata, which is set by onJoinComplete).
    """

    def __init__(
        self,
        settings: GroupSettings,
        subscription: SubscriptionState,
        member: ClassicMember,
        assignment: GroupAssignment,
        commits: Commits,
        listeners: RebalanceListenerInvoker,
        *,
        join: Callable[[], object],
        on_assigned: Callable[[], object],
    ) -> None:
        self.queue: deque[Step] = deque()
        self.generation = Generation()
        self._settings = settings
        self._subscription = subscription
        self._member = member
        self._assignment = assignment
        self._commits = commits
        self._listeners = listeners
        self._join_group = join
        self._on_assigned = on_assigned
        self._joined_topics: frozenset[str] | None = None

    @property
    def must_join(self) -> bool:
        """Whether the member must join or rejoin."""
        if self._joined_topics not in {None, self._subscription.topics}:
            return True
        return self._member.rejoin_reason is not None

    def protocols(self) -> list[tuple[str, bytes]]:
        """Return the protocols for JoinGroup; see :meth:`.GroupAssignment.protocols`."""
        self._joined_topics = self._subscription.topics
        return self._assignment.protocols(
            self._joined_topics, self._subscription.assignment.partitions
        )

    async def take(self) -> None:
        """Run the first step.

        Raises:
            Exception: raised by a callback; the step counts as done.

        Cancellation: the next call runs the same step again.
        """
        step = self.queue[0]
        try:
            await step()
        except Exception:
            self._finish(step)
            raise
        self._finish(step)

    def _finish(self, step: Step) -> None:
        # The step may have been dropped while it ran: leaving the group clears the queue.
        if self.queue and self.queue[0] is step:
            self.queue.popleft()

    def clear(self) -> None:
        """Drop all steps, since the member has left the group."""
        self.queue.clear()
        self._joined_topics = None

    def prepare(self) -> None:
        """Queue the pre-join steps (Kafka: onJoinPrepare)."""
        assigned = self._subscription.assignment.partitions
        if self._member.has_lost_generation:
            if assigned:
                self._log_rejoin("partitions may have been lost to other members", logging.WARNING)
                self.queue.append(lambda: self._listeners.given_up(assigned, are_lost=True))
                self.queue.append(self._assign_step(()))
        else:
            self._log_rejoin("rejoining", logging.INFO)
            given_up = assigned
            if self._assignment.protocol is RebalanceProtocol.COOPERATIVE:
                topics = self._subscription.topics
                given_up = frozenset(each for each in assigned if each.topic not in topics)
            self.queue += [self._commits.commit_finished, *self._steps_to_give_up(given_up)]
        self.queue.append(self._join)

    def _log_rejoin(self, what: str, level: int) -> None:
        reason = self._member.rejoin_reason or "the subscription has changed"
        LOGGER.log(level, "group %s: %s: %s", self._settings.group_id, what, reason)

    async def _join(self) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._member.has_lost_generation and self._subscription.assignment.partitions:
            return  # lost since prepare(), which is called again, and reports the loss first
        self._join_group()

    def complete(self, joined: Generation) -> None:
        """Queue the post-join steps (Kafka: onJoinComplete), or nothing if the assignment is stale.

        Args:
            joined: the generation that the member has joined.

        Raises:
            WireFormatError: the leader's assignment is malformed; the member rejoins.
        """
        if joined != self._member.generation:
            self._member.request_rejoin("the member was removed before it received its assignment")
            return
        try:
            given = decode_assignment(self._member.assignment)
        except WireFormatError:
            self._member.request_rejoin("the leader has sent a malformed assignment")
            raise
        if not self._subscription.fits_subscription(given):
            self._member.request_rejoin("the subscription changed during the rebalance")
            return
        self.generation = joined
        before = self._subscription.assignment.partitions
        given_up = before - frozenset(given)
        added = frozenset(given) - before
        if given_up:
            self.queue += [self._commits.commit_finished, *self._steps_to_give_up(given_up)]
        self.queue.append(self._assign_step(given))
        self.queue.append(lambda: self._listeners.assigned(added))
        self._assignment.assigned(given, joined.id)
        if given_up and self._assignment.protocol is RebalanceProtocol.COOPERATIVE:
            # Other members get them in the next generation, when they are free (KIP-429).
            self._member.request_rejoin("partitions were revoked for other members")

    def _steps_to_give_up(self, given_up: frozenset[TopicPartition]) -> list[Step]:
        if not given_up:
            return []
        self._subscription.assignment.mark_revocation_pending(given_up)
        return [
            lambda: self._listeners.given_up(given_up, are_lost=False),
            self._assign_step(self._subscription.assignment.partitions - given_up),
        ]

    def _assign_step(self, partitions: Iterable[TopicPartition]) -> Step:
        async def assign() -> None:
            await trio.lowlevel.checkpoint_if_cancelled()
            self._subscription.assign_from_group(
                partitions, is_announced=self._listeners.has_callbacks
            )
            self._on_assigned()

        return assign
