"""The memory for buffered records, and the tasks that wait for it (Kafka: BufferPool).

The pool only counts the bytes of ``buffer.memory``. Waiting tasks are served in order of arrival.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar, final

import trio

from ....errors import ConfigError

T = TypeVar("T")


class BufferPool:
    """Accounts for the memory taken from ``buffer.memory``.

    Args:
        bytes_max: ``buffer.memory``.

    Attributes:
        bytes_max: the size of the pool.
        available: the number of free bytes.
        on_freed: called after bytes have been given back; None for no callback.
        is_exhausted: whether a request was denied, and no bytes have been given back since.
        is_promised: whether free memory is reserved for a waiting task.

    Raises:
        ConfigError: ``bytes_max`` is below 1.
    """

    __slots__ = ("available", "bytes_max", "is_exhausted", "is_promised", "on_freed")

    def __init__(self, bytes_max: int) -> None:
        if bytes_max < 1:
            raise ConfigError(f"buffer.memory = {bytes_max} must be at least 1")
        self.bytes_max: int = bytes_max
        self.available: int = bytes_max
        self.is_exhausted: bool = False
        self.is_promised: bool = False
        self.on_freed: Callable[[], None] | None = None

    def take(self, size: int) -> bool:
        """Take bytes from the pool if they are free and not promised to a waiting task.

        Returns:
            Whether the bytes were taken.

        Raises:
            ValueError: the size exceeds ``buffer.memory``.
        """
        if size > self.bytes_max:
            raise ValueError(f"{size} bytes exceed buffer.memory ({self.bytes_max})")
        if size > self.available or self.is_promised:
            self.is_exhausted = True
            return False
        self.available -= size
        return True

    def give_back(self, size: int) -> None:
        """Return bytes to the pool."""
        assert self.available + size <= self.bytes_max
        self.available += size
        self.is_exhausted = False
        if self.on_freed is not None:
            self.on_freed()


class BufferPoolWaiters:
    """The queue of tasks waiting for memory.

    Only the task at the head of the queue may take memory. If other tasks could take small amounts,
    the first task might never find enough memory for a large record.

    Args:
        pool: the buffer pool.

    Attributes:
        exhausted: the number of waits that ended without memory (``buffer-exhausted-total``).
    """

    def __init__(self, pool: BufferPool) -> None:
        self.exhausted = 0
        self._waited_seconds = 0.0
        self._queue: deque[Waiter] = deque()
        self._pool = pool
        pool.on_freed = self._wake_first

    @property
    def waiting(self) -> int:
        """The number of waiting tasks (``waiting-threads``)."""
        return len(self._queue)

    def waited_seconds(self, now: float) -> float:
        """Return the total time that all tasks have waited, in seconds."""
        return self._waited_seconds + sum(now - waiter.since for waiter in self._queue)

    def join(self) -> Waiter:
        """Return a context manager that keeps the calling task in the queue until it exits."""
        return Waiter(self)

    def enter(self, waiter: Waiter) -> None:
        """Add a task to the queue; see :meth:`join`."""
        self._queue.append(waiter)
        self._pool.is_promised = True
        self._wake_first()

    def leave(self, waiter: Waiter) -> None:
        """Remove a task from the queue; see :meth:`join`."""
        self._queue.remove(waiter)
        self._pool.is_promised = bool(self._queue)
        self._waited_seconds += trio.current_time() - waiter.since
        self._wake_first()

    def try_first(self, take: Callable[[], T]) -> T:
        """Call ``take`` for the task at the head of the queue, and return the result."""
        self._pool.is_promised = False
        try:
            return take()
        finally:
            self._pool.is_promised = True  # until it leaves the queue

    def wake_all(self) -> None:
        """Wake all tasks, since the producer has been closed (KAFKA-9449)."""
        for waiter in self._queue:
            waiter.wake()

    def _wake_first(self) -> None:
        if self._queue:
            self._queue[0].wake()


@final
class Waiter:
    """A context manager that keeps a task in the queue until it exits.

    Args:
        waiters: the queue.

    Attributes:
        since: when the wait began, on the event loop's clock, in seconds.
    """

    __slots__ = ("_event", "_waiters", "since")

    def __init__(self, waiters: BufferPoolWaiters) -> None:
        self._waiters = waiters
        self.since = trio.current_time()
        self._event = trio.Event()

    def __enter__(self) -> Waiter:
        self._waiters.enter(self)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._waiters.leave(self)

    def wake(self) -> None:
        """Wake the task, because memory may be free or the producer has been closed."""
        self._event.set()

    async def turn(self) -> None:
        """Wait until it is this task's turn and memory may be free."""
        await self._event.wait()
        self._event = trio.Event()
