"""Finds connections that have been idle for too long, and the least recently used one.

(Kafka: Selector.IdleExpiryManager.) Kafka keeps a linked hash map in the order of last use, and
moves an entry to its end at every read and write. In Python that costs each request a tenth of a
microsecond, twice. So here a connection is touched by one store, ``connection.last_used_at = now``,
and the order is made when it is asked for: a heap knows a time of each connection that is never
later than the true one. A connection that comes to the top and was used meanwhile goes back with
its true time: once in an idle period, not once per request.

What that costs: the first question for the least recently used connection looks at every one that
was used since it was last looked at. Reconsider if that is ever asked per request.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
from typing import Generic, Protocol, TypeVar

from ._time_heap import TimeHeap

# Connections whose time is put right in one poll; the next poll goes on. Bounds a turn of the loop
# to a fraction of a millisecond when thousands of connections were made in the same moment.
CORRECTIONS_PER_POLL_MAX = 256


class Connection(Protocol):
    """What is known here of a connection: it is hashable, and when it was last used.

    Attributes:
        last_used_at: when bytes were last read, written or handed out, in seconds of the loop's
            clock. Whoever does so stores it; it never decreases.
    """

    last_used_at: float


C = TypeVar("C", bound=Connection)


class IdleExpiry(Generic[C]):
    """The connections of one Selector in the order of their last use.

    Args:
        idle_seconds_max: ``connections.max.idle.ms`` in seconds; ``math.inf``, which is Kafka's
            -1, never expires anything.
    """

    __slots__ = ("_known", "idle_seconds_max")

    def __init__(self, idle_seconds_max: float) -> None:
        if not idle_seconds_max >= 0:
            raise ValueError(f"idle_seconds_max = {idle_seconds_max}; allowed: 0 or more")
        self.idle_seconds_max: float = idle_seconds_max
        self._known: TimeHeap[C] = TimeHeap()

    def __len__(self) -> int:
        return len(self._known)

    def add(self, connection: C) -> None:
        """Watch a connection from now on, also one that never becomes readable (KAFKA-7453).

        Its ``last_used_at`` must be set.

        Raises:
            LocalProtocolError: it is watched already.
        """
        self._known.add(connection, connection.last_used_at)

    def remove(self, connection: C) -> None:
        """Forget a connection; one that is not watched is ignored."""
        self._known.discard(connection)

    def poll(self, now: float) -> C | None:
        """The connection to close for idleness, if there is one; at most one per call.

        It stays watched until it is removed. Idle means that the last use is strictly more than
        ``idle_seconds_max`` ago, as in Kafka.

        Args:
            now: seconds of the loop's clock.
        """
        for _ in range(CORRECTIONS_PER_POLL_MAX):
            first = self._known.first()
            if first is None or first[0] + self.idle_seconds_max >= now:
                return None
            known_at, connection = first
            if connection.last_used_at <= known_at:
                return connection
            self._known.move_first(connection.last_used_at)
        return None

    @property
    def next_check_at(self) -> float:
        """From when on :meth:`poll` has something to do, in seconds of the loop's clock.

        ``math.inf`` if never. A loop that waits until then and polls does not spin: a connection
        that was not used meanwhile is idle at exactly this time.
        """
        first = self._known.first()
        if first is None:
            return math.inf
        return math.nextafter(first[0] + self.idle_seconds_max, math.inf)

    def least_recently_used(self) -> C | None:
        """The connection whose last use is the oldest (Kafka: Selector.lowestPriorityChannel).

        None without connections.
        """
        while (first := self._known.first()) is not None:
            known_at, connection = first
            if connection.last_used_at <= known_at:
                return connection
            self._known.move_first(connection.last_used_at)
        return None
