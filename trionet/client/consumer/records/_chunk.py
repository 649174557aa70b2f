"""Records of one partition that are decoded, and handed out one by one or together."""

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
from ._columns import sliced
from ._record import ConsumerBatch, ConsumerRecord

_new: Final = tuple.__new__


class Chunk:
    """See the module.

    How far it was handed out is told by its iterators alone, so that one more record costs nothing
    but itself.

    Args:
        name: of the partition.
        columns: the records; at least one.
        timestamp_type: of all the records.
        epoch: the leader epoch of all the records.
        start: where reading was before.
        end: where it is when all are handed out; behind the last record, or farther.

    Attributes:
        name: of the partition.
        records: those that are still to be handed out.
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
            self._offsets,  # before the others, so that it is at its end when all is handed out
            rest.timestamps,
            rest.keys,
            rest.values,
            rest.headers,
            repeat(self._timestamp_type),
            repeat(self._epoch),
            strict=False,  # four of them have no end
        )
        self.records = map(_new, repeat(ConsumerRecord), fields)

    @property
    def count(self) -> int:
        """How many there were at first."""
        return self._count

    @property
    def taken(self) -> int:
        """How many were handed out."""
        if self._stopped_at is not None:
            return self._stopped_at
        return self._count - length_hint(self._offsets)

    @property
    def is_done(self) -> bool:
        """Whether all were handed out."""
        return self.taken == self._count

    def position(self) -> FetchPosition:
        """Behind what was handed out."""
        return self._before(self.taken)

    def finished(self) -> FetchPosition:
        """Behind what the user has finished with: all but what was handed out last."""
        return self._before(max(self._finished, self.taken - self._in_hand))

    def finish(self) -> None:
        """The user has finished with all that was handed out."""
        self._finished = self.taken
        self._in_hand = 1

    def stop(self) -> None:
        """Hand out no more."""
        self._stopped_at = self.taken
        deque(self._offsets, maxlen=0)

    def take(self, records_max: int) -> ConsumerBatch:
        """Hand out so many together, or the rest if that is less.

        Who holds :attr:`records` has to take it anew.
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
        """All the records together, without handing them out."""
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
        """Where reading is before the record of this number."""
        if number == self._count:
            return self._end
        if number == 0:
            return self._start
        return FetchPosition(self._columns.offsets[number - 1] + 1, self._epoch)
