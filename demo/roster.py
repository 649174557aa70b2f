"""Which consumers are in the group, one change after the other. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count, cycle

#: How many there are, over and over; never none, since someone has to read.
SIZES = (2, 3, 4, 3, 2, 1)


def rosters(sizes: Sequence[int] = SIZES) -> Iterator[list[str]]:
    """Yield the names of the members, without end: a joining one is new, the oldest one leaves."""
    present: deque[str] = deque()
    numbers = count(1)
    for size in cycle(sizes):
        while len(present) < size:
            present.append(f"consumer-{next(numbers)}")
        while len(present) > size:
            present.popleft()
        yield list(present)
