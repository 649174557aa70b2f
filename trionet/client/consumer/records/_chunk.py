"""Decoded records of one partition, and the iterators that hand them out, singly or in batches.

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

from bisect import bisect_left
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import repeat
from operator import length_hint
from typing import TYPE_CHECKING, Final, NamedTuple

import trio
from trio.lowlevel import current_task

from ...._util._cancellation import is_task_cancelled
from ....protocol.records._types import Columns
from ..._topic_partition import TopicPartition
from ._record import ConsumerBatch, ConsumerRecord

if TYPE_CHECKING:
    from mypy_extensions import i64

_new: Final = tuple.__new__
NO_EPOCH: Final = -1
OFFSET_MAX: Final = 2**63 - 2
"""The largest offset of a record: the position after it is the largest signed 64-bit integer."""


class FetchPosition(NamedTuple):
    """A position in a partition.

    Attributes:
        offset: the offset of the next record.
        epoch: the leader epoch of the preceding record, used to detect truncation (KIP-320); -1 if
            it is unknown.
    """

    offset: int
    epoch: int = NO_EPOCH


class Chunk:
    """Decoded records of one partition, and how many of them have been handed out.

    The number is derived from the iterators, so that handing out a record costs no more than
    creating it.

    Args:
        name: the partition.
        columns: the records; at least one.
        timestamp_type: the timestamp type of all the records.
        epoch: the leader epoch of all the records.
        start: the position before the first record.
        end: the position after the last record, past any offsets that compaction has removed.
        broker_id: the broker that the records were fetched from.

    Attributes:
        name: the partition.
        count: the total number of records, handed out or not.
        records: an iterator over the records that have not been handed out yet.
    """

    def __init__(
        self,
        name: TopicPartition,
        columns: Columns,
        timestamp_type: int,
        epoch: int,
        start: FetchPosition,
        end: FetchPosition,
        broker_id: int,
    ) -> None:
        self.name = name
        self._columns = columns
        self._timestamp_type = timestamp_type
        self._epoch = epoch
        self._start = start
        self._end = end
        self._broker_id = broker_id
        self.count: Final = len(columns.offsets)
        self._stopped_at: int | None = None
        self._finished = 0
        self._in_hand = 1
        self._offsets: Iterator[int] = iter(())
        self.records: Iterator[ConsumerRecord] = iter(())
        self._open(columns)

    def _open(self, rest: Columns) -> None:
        self._offsets = iter(rest.offsets)
        topic, partition = self.name
        fields = zip(
            repeat(topic),
            repeat(partition),
            self._offsets,  # before the others, so that it ends exactly with the last record
            rest.timestamps,
            rest.keys,
            rest.values,
            rest.headers,
            repeat(self._timestamp_type),
            repeat(self._epoch),
            strict=False,  # four of them are infinite
        )
        self.records = map(_new, repeat(ConsumerRecord), fields)

    @property
    def taken(self) -> int:
        """The number of records handed out."""
        if self._stopped_at is not None:
            return self._stopped_at
        return self.count - length_hint(self._offsets)

    @property
    def is_done(self) -> bool:
        """Whether all records have been handed out."""
        return self.taken == self.count

    def position(self) -> FetchPosition:
        """Return the position after the records that were handed out."""
        return self._before(self.taken)

    def finished(self) -> FetchPosition:
        """Return the position after the finished records."""
        return self._before(max(self._finished, self.taken - self._in_hand))

    def finish(self) -> None:
        """Record that the user has finished all records that were handed out."""
        self._finished = self.taken
        self._in_hand = 1

    def finish_to(self, offset: int) -> None:
        """Record that the user has finished the records that were handed out before an offset."""
        number = min(self.taken, bisect_left(self._columns.offsets, offset))
        self._finished = max(self._finished, number)

    def stop(self) -> None:
        """Stop handing out records, by exhausting the iterators."""
        self._stopped_at = self.taken
        deque(self._offsets, maxlen=0)

    def take(self, records_max: int) -> ConsumerBatch:
        """Hand out up to ``records_max`` records as a batch.

        :attr:`records` is replaced if records are left; the old iterator is exhausted.
        """
        taken = self.taken
        end = min(self.count, taken + records_max)
        columns = sliced(self._columns, taken, end)
        self._in_hand = end - taken
        deque(self._offsets, maxlen=0)
        if end < self.count:
            self._open(sliced(self._columns, end, self.count))
        return self._batch(columns)

    def whole(self) -> ConsumerBatch:
        """Return all records as a batch, without handing them out."""
        return self._batch(self._columns)

    def _batch(self, columns: Columns) -> ConsumerBatch:
        return ConsumerBatch(
            topic=self.name.topic,
            partition=self.name.partition,
            offsets=columns.offsets,
            timestamps=columns.timestamps,
            keys=columns.keys,
            values=columns.values,
            headers=columns.headers,
            timestamp_type=self._timestamp_type,
            leader_epoch=self._epoch,
            broker_id=self._broker_id,
        )

    def _before(self, number: int) -> FetchPosition:
        """Return the position before the record with this index."""
        if number == self.count:
            return self._end
        if number == 0:
            return self._start
        return FetchPosition(self._columns.offsets[number - 1] + 1, self._epoch)


def sliced(columns: Columns, start: int, end: int) -> Columns:
    """Return a slice of the columns, without copying if it includes all records."""
    if start == 0 and end == len(columns.offsets):
        return columns
    return Columns(
        columns.offsets[start:end],
        columns.timestamps[start:end],
        columns.keys[start:end],
        columns.values[start:end],
        columns.headers[start:end],
    )


def joined(columns: Columns, more: Columns) -> Columns:
    """Concatenate columns, extending the lists of ``columns`` in place."""
    columns.timestamps.extend(more.timestamps)
    columns.keys.extend(more.keys)
    columns.values.extend(more.values)
    columns.headers.extend(more.headers)
    first, second = columns.offsets, more.offsets
    if isinstance(first, list):
        first.extend(second)
        return columns
    if isinstance(first, range) and isinstance(second, range) and first.stop == second.start:
        return columns._replace(offsets=range(first.start, second.stop))
    return columns._replace(offsets=[*first, *second])


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
        next_chunk: see the argument.
        records: an iterator over the records that may be handed out without a checkpoint.
        checkpoint_at: the time on the event loop's clock at which a checkpoint becomes due.
    """

    def __init__(self, next_chunk: Callable[[], Awaitable[Chunk]]) -> None:
        self.next_chunk = next_chunk
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
        chunk = await self.next_chunk()
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

    def __init__(self, next_batch: Callable[[], Awaitable[ConsumerBatch]]) -> None:
        self._next_batch = next_batch

    def __aiter__(self) -> AsyncIterator[ConsumerBatch]:
        return self

    def __anext__(self) -> Awaitable[ConsumerBatch]:
        return self._next_batch()
