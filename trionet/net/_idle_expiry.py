"""What ends when: idle connections, and those whose close is delayed.

:class:`IdleExpiry` finds connections that have been idle for too long, and the least recently used
one (Kafka: Selector.IdleExpiryManager). Kafka keeps a linked hash map in the order of last use, and
moves an entry to its end at every read and write. In Python that costs each request a tenth of a
microsecond, twice. So here a connection is touched by one store, ``connection.last_used_at = now``,
and the order is made when it is asked for: a heap knows a time of each connection that is never
later than the true one. A connection that comes to the top and was used meanwhile goes back with
its true time: once in an idle period, not once per request. What that costs: the first call for the
least recently used connection looks at every one that was used since it was last looked at.
Reconsider if that is ever called per request.

:class:`DelayedCloses` holds connections that stay open unserved for a while before they are closed:
those of an address that connects too often (KIP-612), and those that failed to authenticate
(KIP-306), since an instant close would invite the next attempt. Kafka keeps throttled sockets in a
heap in reverse order, so that the earliest waits for the latest; here the earliest is first.

Both rest on :class:`TimeHeap`, in which removed entries stay until they come to the top, or are
more than half of it. So adding and removing costs a logarithm, on average, and memory is at most
twice what is held. All of this is pure: ``now`` is a parameter.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush, heapreplace
from typing import Generic, Protocol, TypeVar

from ..errors import LocalProtocolError

# A heap this small is not worth cleaning.
_ENTRIES_SMALL = 64

T = TypeVar("T")


class TimeHeap(Generic[T]):
    """Items by time; of equal times, the item that was added first comes first."""

    __slots__ = ("_entries", "_items", "_next_number", "_numbers")

    def __init__(self) -> None:
        # An entry whose number is not known is that of a removed item. The top is never one.
        self._entries: list[tuple[float, int]] = []
        self._items: dict[int, T] = {}
        self._numbers: dict[T, int] = {}
        self._next_number = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, item: T) -> bool:
        return item in self._numbers

    def add(self, item: T, time: float) -> None:
        """Add an item.

        Raises:
            LocalProtocolError: it is there already.
        """
        if item in self._numbers:
            raise LocalProtocolError(f"{item!r} is in this heap already")
        number = self._next_number
        self._next_number += 1
        self._numbers[item] = number
        self._items[number] = item
        heappush(self._entries, (time, number))

    def discard(self, item: T) -> None:
        """Remove an item; one that is not there is ignored."""
        number = self._numbers.pop(item, None)
        if number is None:
            return
        del self._items[number]
        if len(self._entries) > max(_ENTRIES_SMALL, 2 * len(self._numbers)):
            self._entries = [entry for entry in self._entries if entry[1] in self._items]
            heapify(self._entries)
        self._uncover_top()

    def first(self) -> tuple[float, T] | None:
        """The earliest time and its item; None if the heap is empty."""
        if not self._entries:
            return None
        time, number = self._entries[0]
        return time, self._items[number]

    def pop(self) -> T:
        """Take the first item out.

        Raises:
            IndexError: the heap is empty.
        """
        item = self._items[self._entries[0][1]]
        self.discard(item)
        return item

    def move_first(self, time: float) -> None:
        """Give the first item another time.

        Raises:
            IndexError: the heap is empty.
        """
        heapreplace(self._entries, (time, self._entries[0][1]))
        self._uncover_top()

    def _uncover_top(self) -> None:
        while self._entries and self._entries[0][1] not in self._items:
            heappop(self._entries)


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


# The default maximum. Each entry holds a descriptor, and a storm must not exhaust them.
DELAYED_CLOSES_MAX = 1000


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
