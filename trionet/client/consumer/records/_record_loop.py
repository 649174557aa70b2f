"""What ``async for record in consumer`` runs for each record; by itself, because it is compiled.

A coroutine of compiled code costs less than half of an interpreted one. Nothing else is in it: the
records are made by a C iterator of their chunk, and even looking at the clock each time would cost
as much as making a record.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final

import trio
from trio.lowlevel import current_task

from ...._util._cancellation import is_task_cancelled
from ._chunk import Chunk
from ._record import ConsumerRecord

if TYPE_CHECKING:
    from mypy_extensions import i64

NOTHING: Final[Iterator[ConsumerRecord]] = iter(())

#: At most so many records are handed out between two looks at the clock, and only as long as that
#: many took less than this: who spends more on a record would hold other tasks for long.
_RUN_MAX: Final = 16
_RUN_SECONDS: Final = 0.000_1


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
        # The one that waited last, since looking for cancellation has to be cheap: another one that
        # is cancelled may get what is in hand, as if it had asked a moment earlier.
        self._task = current_task()
        self._run: i64 = 0
        self._left: i64 = 0
        self._looked_at = 0.0
        self.records = NOTHING
        self.checkpoint_at = 0.0

    def __aiter__(self) -> RecordLoop:
        return self

    async def __anext__(self) -> ConsumerRecord:
        """See :meth:`.Consumer.__anext__`."""
        record = self.take()
        if record is not None:
            return record  # noqa: ASYNC910 - one is made each millisecond
        return await self.wait()

    def take(self) -> ConsumerRecord | None:
        """The next record, if it can be had without a checkpoint."""
        if not is_task_cancelled(self._task) and (self._left > 0 or self._has_time()):
            self._left -= 1
            for record in self.records:
                return record
        return None

    async def wait(self) -> ConsumerRecord:
        """Make a checkpoint, and wait for a record if there is none."""
        chunk = await self._next_chunk()
        self._task = current_task()
        self.records = chunk.records
        return next(self.records)

    def _has_time(self) -> bool:
        """Whether the next records may be handed out without a checkpoint; looks at the clock."""
        now = self._clock()
        if now - self._looked_at < _RUN_SECONDS:
            self._run = min(2 * self._run + 1, _RUN_MAX)
        else:
            self._run = 0
        self._left = self._run
        self._looked_at = now
        return now < self.checkpoint_at
