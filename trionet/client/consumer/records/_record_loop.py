"""The loop of ``async for record in consumer``, which runs for each record.

Handing out a record must cost little more than creating it. The records are created by a C iterator
of their chunk; the loop around it is compiled, because a compiled coroutine costs less than half of
an interpreted one, and contains nothing else. Two things that would be needed for each record are
made cheaper: cancellation is checked on the task that waited last, without looking up the current
task, and the clock is read only every few records, because reading it costs as much as creating a
record.

Rejected: an async generator, which must be closed where iteration stops, and a full checkpoint for
each record, which costs 3 microseconds. Reconsider if a trio checkpoint ever costs less than a
record.
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

#: The most records between two readings of the clock, and how quickly the last run must have been
#: consumed for that: a user that takes longer for a record would hold up other tasks.
_RUN_MAX: Final = 16
_RUN_SECONDS: Final = 0.000_1


class RecordLoop:
    """Hands out records, with an occasional checkpoint.

    Args:
        next_chunk: waits for records; those handed out before count as finished.

    Attributes:
        records: iterates over the records that may be handed out without a checkpoint.
        checkpoint_at: the time on the loop's clock at which a checkpoint becomes due.
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
        """Return the next record, if no checkpoint is due."""
        if not is_task_cancelled(self._task) and (self._left > 0 or self._has_time()):
            self._left -= 1
            for record in self.records:
                return record
        return None

    async def wait(self) -> ConsumerRecord:
        """Execute a checkpoint, and wait for a record if there is none."""
        chunk = await self._next_chunk()
        self._task = current_task()
        self.records = chunk.records
        return next(self.records)

    def _has_time(self) -> bool:
        """Read the clock. Returns whether more records may be handed out without a checkpoint."""
        now = self._clock()
        if now - self._looked_at < _RUN_SECONDS:
            self._run = min(2 * self._run + 1, _RUN_MAX)
        else:
            self._run = 0
        self._left = self._run
        self._looked_at = now
        return now < self.checkpoint_at


class BatchLoop:
    """Iterates over batches until the consumer's block ends.

    Args:
        next_batch: the :meth:`.Consumer.next_batch` of the consumer.
    """

    __slots__ = ("_next_batch",)

    def __init__(self, next_batch: Callable[[], Awaitable[ConsumerBatch]]) -> None:
        self._next_batch = next_batch

    def __aiter__(self) -> AsyncIterator[ConsumerBatch]:
        return self

    def __anext__(self) -> Awaitable[ConsumerBatch]:
        return self._next_batch()
