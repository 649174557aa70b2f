"""A share of the loop's time, for work that strangers can ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import perf_counter

import trio


class LoopShare:
    """Gives one turn after the other, and rests between them: all work together has its share.

    Args:
        share_max: of the loop's time, above 0 and at most 1.
    """

    def __init__(self, share_max: float) -> None:
        self._rest_per_second = 1 / share_max - 1
        self._lock = trio.StrictFIFOLock()
        self._free_at = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until nobody else has the turn and what was spent before is rested from.

        The block may let others run; only what it does in :meth:`spending` counts.
        """
        async with self._lock:
            await trio.sleep_until(self._free_at)
            yield

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Count the time of the block, in which nothing else may run."""
        began = perf_counter()
        try:
            yield
        finally:
            rest = (perf_counter() - began) * self._rest_per_second
            self._free_at = max(self._free_at, trio.current_time()) + rest
