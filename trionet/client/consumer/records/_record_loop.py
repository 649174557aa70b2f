"""The iterators of ``async for record in consumer`` and :meth:`.Consumer.batches`.

Handing out a record must cost little more than creating it. A C iterator in the chunk creates the
records. The loop around it is compiled, because a compiled coroutine costs less than half as much
as an interpreted one. Two checks are made cheaper: the cancellation check uses the task that waited
last instead of looking up the current task, and the clock is read only every few records, because
reading it costs as much as creating a record.

Rejected: an async generator, which the caller would have to close after leaving the loop, and a
full checkpoint for each record, which costs 3 microseconds. Reconsider if a trio checkpoint costs
less than a record.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final

import trio
from trio.lowlevel import current_task

from ...._util._cancellation import is_task_cancelled
from ._chunk import Chunk
from ._record import ConsumerBatch, ConsumerRecord

if TYPE_CHECKING:
    from mypy_extensions import i64

NOTHING: Final[Iterator[ConsumerRecord]] = iter(())

#: The maximum number of records between two readings of the clock, and the time within which the
#: preceding run must have been consumed. A slower user would block other tasks for too long.
_RUN_MAX: Final = 16
_RUN_SECONDS: Final = 0.000_1


class RecordLoop:
    """An iterator over records that executes a checkpoint from time to time.

    Args:
        next_chunk: marks the preceding records as finished and waits for the next records.

    Attributes:
        records: an iterator over the records that may be handed out without a checkpoint.
        checkpoint_at: the time on the event loop's clock at which a checkpoint becomes due.
    """

    def __init__(self, next_chunk: Callable[[], Awaitable[Chunk]]) -> None:
        self._next_chunk = next_chunk
        self._clock = trio.lowlevel.current_clock().current_time
        # The task that waited last, because checking for cancellation has to be cheap. Another
        # cancelled task may get a record that is ready, as if it had called a moment earlier.
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
            return record  # noqa: ASYNC910 - a checkpoint is made every millisecond
        return await self.wait()

    def take(self) -> ConsumerRecord | None:
        """Return the next record; None if a checkpoint is due or no record is available."""
        if not is_task_cancelled(self._task) and (self._left > 0 or self._has_time()):
            self._left -= 1
            for record in self.records:
                return record
        return None

    async def wait(self) -> ConsumerRecord:
        """Execute a checkpoint and wait for the next record."""
        chunk = await self._next_chunk()
        self._task = current_task()
        self.records = chunk.records
        return next(self.records)

    def _has_time(self) -> bool:
        """Read the clock, and return whether records may be handed out without a checkpoint."""
        now = self._clock()
        if now - self._looked_at < _RUN_SECONDS:
            self._run = min(2 * self._run + 1, _RUN_MAX)
        else:
            self._run = 0
        self._left = self._run
        self._looked_at = now
        return now < self.checkpoint_at


class BatchLoop:
    """An iterator over batches.

    Args:
        next_batch: the consumer's :meth:`.Consumer.next_batch`.
    """

    __slots__ = ("_next_batch",)

    def __init__(self, next_batch: Callable[[], Awaitable[ConsumerBatch]]) -> None:
        self._next_batch = next_batch

    def __aiter__(self) -> AsyncIterator[ConsumerBatch]:
        return self

    def __anext__(self) -> Awaitable[ConsumerBatch]:
        return self._next_batch()
