"""Things with a time each, the earliest first; any of them can be taken out.

A heap in which removed entries stay until they come to the top, or are more than half of it. So
adding and removing costs a logarithm, on average, and memory is at most twice what is held. Pure:
times are numbers that are compared, nothing here knows what time it is.
"""

# Compiled by mypyc.

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import Generic, TypeVar

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
