"""The user's rebalance callbacks (Kafka: ConsumerRebalanceListener)."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias

import attrs
import trio

from ..._topic_partition import TopicPartition
from ..state._partition_state import PartitionState
from ..state._subscription_state import SubscriptionState

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

    async def call_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Call ``assigned`` at the end of a rebalance, even without partitions, as Kafka does."""
        await _call(self.assigned, partitions)

    async def call_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        """Call ``revoked``."""
        await _call(self.revoked, partitions)

    async def call_lost(self, partitions: Iterable[TopicPartition]) -> None:
        """Call ``lost``, or ``revoked`` if ``lost`` is not set."""
        await _call(self.lost or self.revoked, partitions)


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

    async def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Report added partitions, after waiting for any callback running in another task."""
        async with self._calling():
            await self.callbacks.call_assigned(partitions)

    async def given_up(self, partitions: frozenset[TopicPartition], *, are_lost: bool) -> None:
        """Report revoked or lost partitions that have not been reported yet.

        Cancellation: the next call reports the same partitions again.
        """
        async with self._calling():
            await self._call_given_up(partitions, are_lost)

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

    async def _call_given_up(self, partitions: frozenset[TopicPartition], are_lost: bool) -> None:
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
        call = self.callbacks.call_lost if are_lost else self.callbacks.call_revoked
        try:
            await call(new)
        except Exception:
            raise
        except BaseException:  # boundary: a cancelled callback, which is called again
            for each in new:
                self._given_up.pop(each, None)
            raise
