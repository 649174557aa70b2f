"""Delayed closes: connections that stay open unserved for a while before they are closed.

These are connections of an address that connects too often (KIP-612), and those that failed to
authenticate (KIP-306): an instant close would invite the next attempt. Kafka keeps throttled
sockets in a heap in reverse order, so that the earliest waits for the latest; here the earliest is
first.
"""

from __future__ import annotations

import math
from typing import Generic, TypeVar

from ._time_heap import TimeHeap

# The default maximum. Each entry holds a descriptor, and a storm must not exhaust them.
DELAYED_CLOSES_MAX = 1000

T = TypeVar("T")


class DelayedCloses(Generic[T]):
    """What to close, and when; closes nothing itself.

    Args:
        count_max: the maximum number of entries; one more displaces the one due first.
    """

    def __init__(self, count_max: int = DELAYED_CLOSES_MAX) -> None:
        self.count_max = count_max
        self._waiting: TimeHeap[T] = TimeHeap()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, item: T, ends_at: float) -> T | None:
        """Let something wait for its close.

        Args:
            item: what will be closed.
            ends_at: the last moment at which it is still open, in seconds of the loop's clock.

        Returns:
            What is to be closed at once to make room, which may be the item itself; None as long
            as there is room.

        Raises:
            LocalProtocolError: it waits already.
        """
        self._waiting.add(item, ends_at)
        return self._waiting.pop() if len(self._waiting) > self.count_max else None

    def discard(self, item: T) -> None:
        """Forget what was closed otherwise, such as by its peer; unknown items are ignored."""
        self._waiting.discard(item)

    def pop_due(self, now: float) -> list[T]:
        """What ended before ``now``, strictly as in Kafka, the earliest first.

        Args:
            now: seconds of the loop's clock.
        """
        due = []
        while (first := self._waiting.first()) is not None and first[0] < now:
            due.append(self._waiting.pop())
        return due

    def pop_all(self) -> list[T]:
        """Everything, for a server that stops; nothing waits afterwards."""
        return self.pop_due(math.inf)

    @property
    def next_check_at(self) -> float:
        """From when on :meth:`pop_due` returns something; ``math.inf`` if nothing waits.

        The first moment that is strictly later than the earliest end, so that a loop that waits
        until then does not spin.
        """
        first = self._waiting.first()
        return math.inf if first is None else math.nextafter(first[0], math.inf)
