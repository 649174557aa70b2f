"""The order in which idle connections expire and delayed closes are due.

:class:`IdleExpiry` finds connections that have been idle for too long, and the least recently used
one (Kafka: Selector.IdleExpiryManager). Kafka keeps a linked hash map in the order of last use, and
moves an entry to its end on every read and write. In Python, that would cost 0.1 µs twice per
request. Here, a read or write only stores ``connection.last_used_at = now``, and the heap keeps an
earlier time for the connection. When the connection reaches the top of the heap, it is moved to its
actual time. So the heap changes once per connection and idle period, not per request. The price is
that a search for the least recently used connection visits every connection used since the previous
search. Reconsider this if that search is ever needed per request.

:class:`DelayedCloses` keeps connections that are closed after a delay because their address
connects too often (KIP-612) or because they failed to authenticate (KIP-306), because an immediate
close would invite the next attempt. Kafka's heap of throttled sockets is in reverse order, so that
the earliest close waits for the latest; here, the earliest close comes first.

Both use :class:`TimeHeap`. A removed entry stays in the heap until it reaches the top, or until
more than half of all entries are removed ones. So adding and removing take amortized logarithmic
time, and the heap has at most twice as many entries as items.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush, heapreplace
from typing import Generic, Protocol, TypeVar

from ..errors import LocalProtocolError

# The number of entries up to which a heap keeps removed ones.
_ENTRIES_SMALL = 64

T = TypeVar("T")


class TimeHeap(Generic[T]):
    """A heap of items ordered by time; ties are in insertion order."""

    __slots__ = ("_entries", "_items", "_next_number", "_numbers")

    def __init__(self) -> None:
        # If _items lacks the number of an entry, its item was removed. The top entry is never one.
        self._entries: list[tuple[float, int]] = []
        self._items: dict[int, T] = {}
        self._numbers: dict[T, int] = {}
        self._next_number = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, item: T, time: float) -> None:
        """Add an item with its time.

        Raises:
            LocalProtocolError: the item is already in the heap.
        """
        if item in self._numbers:
            raise LocalProtocolError(f"{item!r} is already in the heap")
        number = self._next_number
        self._next_number += 1
        self._numbers[item] = number
        self._items[number] = item
        heappush(self._entries, (time, number))

    def discard(self, item: T) -> None:
        """Remove an item; does nothing if it is not in the heap."""
        number = self._numbers.pop(item, None)
        if number is None:
            return
        del self._items[number]
        if len(self._entries) > max(_ENTRIES_SMALL, 2 * len(self._numbers)):
            self._entries = [entry for entry in self._entries if entry[1] in self._items]
            heapify(self._entries)
        self._uncover_top()

    def first(self) -> tuple[float, T] | None:
        """Return the earliest time and the item with that time; None if the heap is empty."""
        if not self._entries:
            return None
        time, number = self._entries[0]
        return time, self._items[number]

    def pop(self) -> T:
        """Remove and return the first item.

        Raises:
            IndexError: the heap is empty.
        """
        item = self._items[self._entries[0][1]]
        self.discard(item)
        return item

    def move_first(self, time: float) -> None:
        """Change the time of the first item.

        Raises:
            IndexError: the heap is empty.
        """
        heapreplace(self._entries, (time, self._entries[0][1]))
        self._uncover_top()

    def _uncover_top(self) -> None:
        while self._entries and self._entries[0][1] not in self._items:
            heappop(self._entries)


# The maximum number of connections that one poll moves to their true time; the next poll continues.
# When thousands of connections were opened at the same moment, this takes a fraction of a
# millisecond.
CORRECTIONS_PER_POLL_MAX = 256


class Connection(Protocol):
    """A hashable object that records when it was last used.

    Attributes:
        last_used_at: when data was last read, written or returned, in seconds on the loop's clock;
            set by the connection's owner, and never decreased.
    """

    last_used_at: float


C = TypeVar("C", bound=Connection)


class IdleExpiry(Generic[C]):
    """The connections of one Selector, ordered by the time of their last use.

    Args:
        idle_seconds_max: ``connections.max.idle.ms`` in seconds; ``math.inf`` (Kafka: -1) for no
            limit.
    """

    __slots__ = ("_known", "idle_seconds_max")

    def __init__(self, idle_seconds_max: float) -> None:
        if not idle_seconds_max >= 0:
            raise ValueError(f"idle_seconds_max = {idle_seconds_max}; allowed: 0 or more")
        self.idle_seconds_max: float = idle_seconds_max
        self._known: TimeHeap[C] = TimeHeap()

    def add(self, connection: C) -> None:
        """Add a connection with ``last_used_at`` set; it expires even if never used (KAFKA-7453).

        Raises:
            LocalProtocolError: the connection was already added.
        """
        self._known.add(connection, connection.last_used_at)

    def remove(self, connection: C) -> None:
        """Remove a connection; does nothing if it was not added."""
        self._known.discard(connection)

    def poll(self, now: float) -> C | None:
        """Return an idle connection to close, without removing it; None if no connection is idle.

        A connection is idle if its last use was more than ``idle_seconds_max`` ago; a connection
        used exactly that long ago is not idle, as in Kafka.

        Args:
            now: the current time, in seconds on the loop's clock.
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
        """The time of the next :meth:`poll`, in seconds on the loop's clock; may be ``math.inf``.

        At that time, a connection that has not been used in the meantime is idle, so a loop that
        waits until then does not spin.
        """
        first = self._known.first()
        if first is None:
            return math.inf
        return math.nextafter(first[0] + self.idle_seconds_max, math.inf)

    def least_recently_used(self) -> C | None:
        """Return the least recently used connection; None if there are no connections.

        (Kafka: Selector.lowestPriorityChannel.)
        """
        while (first := self._known.first()) is not None:
            known_at, connection = first
            if connection.last_used_at <= known_at:
                return connection
            self._known.move_first(connection.last_used_at)
        return None


# The default maximum. Each entry keeps a descriptor open, and a storm must not exhaust them.
DELAYED_CLOSES_MAX = 1000


class DelayedCloses(Generic[T]):
    """Items to close, such as channels or sockets, ordered by the time at which to close them.

    Args:
        count_max: the maximum number of items; adding one more displaces the earliest.
    """

    def __init__(self, count_max: int = DELAYED_CLOSES_MAX) -> None:
        self.count_max = count_max
        self._waiting: TimeHeap[T] = TimeHeap()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, item: T, ends_at: float) -> T | None:
        """Add an item to be closed after ``ends_at``.

        Args:
            item: the channel or socket.
            ends_at: the last moment at which the item is open, in seconds on the loop's clock.

        Returns:
            The item to close now if there are too many, which may be ``item`` itself; otherwise
            None.

        Raises:
            LocalProtocolError: the item was already added.
        """
        self._waiting.add(item, ends_at)
        return self._waiting.pop() if len(self._waiting) > self.count_max else None

    def discard(self, item: T) -> None:
        """Remove an item, for example because its peer disconnected; ignores unknown items."""
        self._waiting.discard(item)

    def pop_due(self, now: float) -> list[T]:
        """Remove and return the items whose ``ends_at`` is before ``now``, earliest first.

        An item whose ``ends_at`` is exactly ``now`` is not due yet, as in Kafka.

        Args:
            now: the current time, in seconds on the loop's clock.
        """
        due = []
        while (first := self._waiting.first()) is not None and first[0] < now:
            due.append(self._waiting.pop())
        return due

    def pop_all(self) -> list[T]:
        """Remove and return all items."""
        return self.pop_due(math.inf)

    @property
    def next_check_at(self) -> float:
        """The earliest time at which :meth:`pop_due` returns an item; ``math.inf`` if empty.

        It is just after the earliest ``ends_at``, so a loop that waits until then does not spin.
        """
        first = self._waiting.first()
        return math.inf if first is None else math.nextafter(first[0], math.inf)
