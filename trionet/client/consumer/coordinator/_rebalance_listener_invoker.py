"""Calls the user's rebalance callbacks, one at a time, and only once for a revoked partition.

(Kafka: ConsumerRebalanceListenerInvoker.) Kafka's consumer belongs to one thread. Here one task may
read records while another unsubscribes or ends the block, and a callback may call the consumer. So
callbacks take turns, except inside a callback, which would wait for itself; and a partition that
was reported as given up is not reported again, unless its callback was cancelled.
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

#: The running callbacks, of all consumers, in this task; child tasks inherit them.
_RUNNING: Final[ContextVar[frozenset[object]]] = ContextVar("_RUNNING", default=frozenset())


class RebalanceListenerInvoker:
    """Calls the callbacks of one consumer.

    Args:
        subscription: partitions that are given up stay assigned until it is changed.

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
        """Report added partitions; waits for a callback that runs in another task."""
        async with self._calling():
            await self.callbacks.call_assigned(partitions)

    async def given_up(self, partitions: frozenset[TopicPartition], *, are_lost: bool) -> None:
        """Report partitions that are given up, except those already reported.

        Cancellation: the next call reports the partitions of a cancelled callback again.
        """
        async with self._calling():
            await self._call_given_up(partitions, are_lost)

    @asynccontextmanager
    async def _calling(self) -> AsyncIterator[None]:
        """Wait for a running callback, unless within it, where that would be a deadlock."""
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
        call = self.callbacks.call_lost if are_lost else self.callbacks.call_revoked
        try:
            await call(new)
        except Exception:
            raise
        except BaseException:  # boundary: a cancelled callback, which is called again
            for each in new:
                self._given_up.pop(each, None)
            raise
