"""Tells the user of a rebalance, one callback at a time, and only once of what is given up.

(Kafka: ConsumerRebalanceListenerInvoker.) Kafka's consumer belongs to one thread. Here one task may
ask for records while another unsubscribes, or ends the block.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

import trio

from ..._topic_partition import TopicPartition
from ..state._partition_state import PartitionState
from ..state._subscription_state import SubscriptionState
from ._rebalance_callbacks import RebalanceCallbacks

#: The callbacks, of all consumers, that a task runs; those that it begins meanwhile have them, too.
_RUNNING: Final[ContextVar[frozenset[object]]] = ContextVar("_RUNNING", default=frozenset())


class RebalanceNotices:
    """See the module.

    Args:
        subscription: what is given up is assigned in it until it is taken out.

    Attributes:
        callbacks: what the user wants to be told.
    """

    def __init__(self, subscription: SubscriptionState) -> None:
        self._subscription = subscription
        self._turn = trio.Lock()
        self._running: object = None
        self._given_up: dict[TopicPartition, PartitionState] = {}
        self.callbacks = RebalanceCallbacks()

    async def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """Tell of partitions that were added; waits for a callback that runs in another task."""
        async with self._calling():
            await self.callbacks.tell_assigned(partitions)

    async def given_up(self, partitions: frozenset[TopicPartition], *, are_lost: bool) -> None:
        """Tell of partitions that are given up, except those that the user was told of.

        Cancellation: what was not told to the end is told again by the next call.
        """
        async with self._calling():
            await self._tell_given_up(partitions, are_lost)

    @asynccontextmanager
    async def _calling(self) -> AsyncIterator[None]:
        """Wait for a callback that runs, but not in what it does itself: it waits for that."""
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

    async def _tell_given_up(self, partitions: frozenset[TopicPartition], are_lost: bool) -> None:
        # A partition that comes back has another state.
        states = self._subscription.partitions
        new = {
            each: states[each]
            for each in partitions
            if each in states and self._given_up.get(each) is not states[each]
        }
        if not new:
            await trio.lowlevel.checkpoint_if_cancelled()
            return
        self._given_up |= new
        tell = self.callbacks.tell_lost if are_lost else self.callbacks.tell_revoked
        try:
            await tell(new)
        except Exception:
            raise
        except BaseException:  # boundary: a cancelled callback, which is called once more
            for each in new:
                self._given_up.pop(each, None)
            raise
