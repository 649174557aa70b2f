"""Decoded records of one partition, which are handed out one by one or in batches."""

# Compiled by mypyc.

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import repeat
from operator import length_hint
from typing import Final

from ....protocol.records._types import Columns
from ..._topic_partition import TopicPartition
from ..state._partition_state import FetchPosition
from ._record import ConsumerBatch, ConsumerRecord

_new: Final = tuple.__new__


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

    Attributes:
        name: the partition.
        records: an iterator over the records that have not been handed out yet.
    """

    __slots__ = (
        "_columns",
        "_count",
        "_end",
        "_epoch",
        "_finished",
        "_in_hand",
        "_offsets",
        "_start",
        "_stopped_at",
        "_timestamp_type",
        "name",
        "records",
    )

    def __init__(
        self,
        name: TopicPartition,
        columns: Columns,
        timestamp_type: int,
        epoch: int,
        start: FetchPosition,
        end: FetchPosition,
    ) -> None:
        self.name = name
        self._columns = columns
        self._timestamp_type = timestamp_type
        self._epoch = epoch
        self._start = start
        self._end = end
        self._count = len(columns.offsets)
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
    def count(self) -> int:
        """The total number of records, handed out or not."""
        return self._count

    @property
    def taken(self) -> int:
        """The number of records handed out."""
        if self._stopped_at is not None:
            return self._stopped_at
        return self._count - length_hint(self._offsets)

    @property
    def is_done(self) -> bool:
        """Whether all records have been handed out."""
        return self.taken == self._count

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

    def stop(self) -> None:
        """Stop handing out records, by exhausting the iterators."""
        self._stopped_at = self.taken
        deque(self._offsets, maxlen=0)

    def take(self, records_max: int) -> ConsumerBatch:
        """Hand out up to ``records_max`` records as a batch.

        :attr:`records` is replaced if records are left; the old iterator is exhausted.
        """
        taken = self.taken
        end = min(self._count, taken + records_max)
        columns = sliced(self._columns, taken, end)
        self._in_hand = end - taken
        deque(self._offsets, maxlen=0)
        if end < self._count:
            self._open(sliced(self._columns, end, self._count))
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
        )

    def _before(self, number: int) -> FetchPosition:
        """Return the position before the record with this index."""
        if number == self._count:
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
