"""What ``async for record in consumer`` runs for each record; by itself, because it is compiled.

A coroutine of compiled code costs a third of an interpreted one, which is most of what a record
costs here. Nothing else is in it: the records are made by a C iterator of their chunk.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import trio

from ..._util.cancellation import is_cancelled
from .chunk import Chunk
from .record import ConsumerRecord

NOTHING: Final[Iterator[ConsumerRecord]] = iter(())


class RecordLoop:
    """See the module.

    Args:
        next_chunk: waits for records; what was handed out before is finished.

    Attributes:
        records: those that may be handed out without a checkpoint.
        checkpoint_at: from then on, on the loop's clock, none may.
    """

    def __init__(self, next_chunk: Callable[[], Awaitable[Chunk]]) -> None:
        self._next_chunk = next_chunk
        self._clock = trio.lowlevel.current_clock().current_time
        self.records = NOTHING
        self.checkpoint_at = 0.0

    def __aiter__(self) -> RecordLoop:
        return self

    async def __anext__(self) -> ConsumerRecord:
        """See :meth:`.Consumer.__anext__`."""
        if self._clock() < self.checkpoint_at and not is_cancelled():
            for record in self.records:
                return record  # noqa: ASYNC910 - one is made each millisecond
        chunk = await self._next_chunk()
        self.records = chunk.records
        return next(self.records)
