"""Waiting for ``buffer.memory``, first come, first served (Kafka: BufferPool's waiters)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import trio

from .buffer_pool import BufferPool

T = TypeVar("T")


class BufferPoolWaiters:
    """Who waits for memory of a pool.

    Only the first may try: the others, and those who do not wait, would take piece by piece what it
    needs, and it would never have enough at one time.

    Args:
        pool: what they wait for.

    Attributes:
        exhausted: how often somebody waited in vain (``buffer-exhausted-total``).
    """

    def __init__(self, pool: BufferPool) -> None:
        self.exhausted = 0
        self._waited_seconds = 0.0
        self._queue: deque[Waiter] = deque()
        self._pool = pool
        pool.on_freed = self._wake_first

    @property
    def waiting(self) -> int:
        """How many wait (``waiting-threads``)."""
        return len(self._queue)

    def waited_seconds(self, now: float) -> float:
        """How long all together have waited until now."""
        return self._waited_seconds + sum(now - waiter.since for waiter in self._queue)

    @contextmanager
    def join(self) -> Iterator[Waiter]:
        """A place at the end of the queue; whoever leaves it, for whatever reason, is gone."""
        waiter = Waiter(trio.current_time())
        self._queue.append(waiter)
        self._pool.is_promised = True
        self._wake_first()
        try:
            yield waiter
        finally:
            self._queue.remove(waiter)
            self._pool.is_promised = bool(self._queue)
            self._waited_seconds += trio.current_time() - waiter.since
            self._wake_first()

    def try_first(self, take: Callable[[], T]) -> T:
        """Call what takes memory; for the one whose turn it is."""
        self._pool.is_promised = False
        try:
            return take()
        finally:
            self._pool.is_promised = True  # until its place is left

    def wake_all(self) -> None:
        """There will be no room any more: the producer is closed (KAFKA-9449)."""
        for waiter in self._queue:
            waiter.wake()

    def _wake_first(self) -> None:
        if self._queue:
            self._queue[0].wake()


class Waiter:
    """One who waits.

    Args:
        since: when that began, on the loop's clock.
    """

    __slots__ = ("_event", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self._event = trio.Event()

    def wake(self) -> None:
        """It is its turn, and there may be room."""
        self._event.set()

    async def turn(self) -> None:
        """Wait until there may be room that was not there the last time."""
        await self._event.wait()
        self._event = trio.Event()
