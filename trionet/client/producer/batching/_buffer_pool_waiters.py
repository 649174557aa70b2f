"""Tasks waiting for ``buffer.memory``, first come, first served (Kafka: BufferPool's waiters)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import trio

from ._buffer_pool import BufferPool

T = TypeVar("T")


class BufferPoolWaiters:
    """The queue of tasks that wait for memory of a pool.

    Only the first task may try: if later ones, or tasks that do not wait, could take small amounts,
    a large record at the head of the queue would never find enough at one time.

    Args:
        pool: the memory they wait for.

    Attributes:
        exhausted: how many waits ended without memory (``buffer-exhausted-total``).
    """

    def __init__(self, pool: BufferPool) -> None:
        self.exhausted = 0
        self._waited_seconds = 0.0
        self._queue: deque[Waiter] = deque()
        self._pool = pool
        pool.on_freed = self._wake_first

    @property
    def waiting(self) -> int:
        """The number of tasks that wait (``waiting-threads``)."""
        return len(self._queue)

    def waited_seconds(self, now: float) -> float:
        """The time that all tasks together have waited until now."""
        return self._waited_seconds + sum(now - waiter.since for waiter in self._queue)

    @contextmanager
    def join(self) -> Iterator[Waiter]:
        """Join the end of the queue for the length of the block."""
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
        """Call ``take``, which takes memory, for the task at the head of the queue."""
        self._pool.is_promised = False
        try:
            return take()
        finally:
            self._pool.is_promised = True  # until it leaves the queue

    def wake_all(self) -> None:
        """Wake all tasks: the producer is closed, and no memory will be handed out (KAFKA-9449)."""
        for waiter in self._queue:
            waiter.wake()

    def _wake_first(self) -> None:
        if self._queue:
            self._queue[0].wake()


class Waiter:
    """A task that waits.

    Args:
        since: when the wait began, on the loop's clock.
    """

    __slots__ = ("_event", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self._event = trio.Event()

    def wake(self) -> None:
        """Tell the task that it is at the head of the queue and memory may be free."""
        self._event.set()

    async def turn(self) -> None:
        """Wait until memory may be free that was not free the last time."""
        await self._event.wait()
        self._event = trio.Event()
