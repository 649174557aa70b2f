"""Waiting for ``buffer.memory``, first come, first served (Kafka: BufferPool's waiters)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import trio

from ._buffer_pool import BufferPool

T = TypeVar("T")


class Room:
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
        self._places: deque[Place] = deque()
        self._pool = pool
        pool.on_freed = self._wake_first

    @property
    def waiting(self) -> int:
        """How many wait (``waiting-threads``)."""
        return len(self._places)

    def waited_seconds(self, now: float) -> float:
        """How long all together have waited until now."""
        return self._waited_seconds + sum(now - place.since for place in self._places)

    @contextmanager
    def place(self) -> Iterator[Place]:
        """A place at the end of the queue; whoever leaves it, for whatever reason, is gone."""
        place = Place(trio.current_time())
        self._places.append(place)
        self._pool.is_promised = True
        self._wake_first()
        try:
            yield place
        finally:
            self._places.remove(place)
            self._pool.is_promised = bool(self._places)
            self._waited_seconds += trio.current_time() - place.since
            self._wake_first()

    def let_try(self, take: Callable[[], T]) -> T:
        """Call what takes memory; for the one whose turn it is."""
        self._pool.is_promised = False
        try:
            return take()
        finally:
            self._pool.is_promised = True  # until its place is left

    def wake_all(self) -> None:
        """There will be no room any more: the producer is closed (KAFKA-9449)."""
        for place in self._places:
            place.wake()

    def _wake_first(self) -> None:
        if self._places:
            self._places[0].wake()


class Place:
    """One who waits.

    Args:
        since: when that began, on the loop's clock.
    """

    __slots__ = ("_news", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self._news = trio.Event()

    def wake(self) -> None:
        """It is its turn, and there may be room."""
        self._news.set()

    async def turn(self) -> None:
        """Wait until there may be room that was not there the last time."""
        await self._news.wait()
        self._news = trio.Event()
