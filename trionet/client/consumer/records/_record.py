"""The records that a consumer returns: single records, or batches with columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import attrs

from ....protocol.records._types import Headers
from ..._topic_partition import TopicPartition


class ConsumerRecord(NamedTuple):
    """A record and its position.

    Attributes:
        topic: the name of the topic.
        partition: the number of the partition.
        offset: the offset of the record in the partition.
        timestamp: the timestamp, in milliseconds since the epoch; -1 for none.
        key: the key; None for null.
        value: the value; None for null.
        headers: the names and values of the headers, in order; names may repeat.
        timestamp_type: 0 if the producer set the timestamp, 1 if the broker did.
        leader_epoch: the leader epoch in which the record was appended; -1 if it is unknown
            (KIP-320).
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_type: int
    leader_epoch: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the record, to pass to ``commit``, ``seek`` or ``pause``."""
        return TopicPartition(self.topic, self.partition)


@attrs.frozen(kw_only=True, eq=False)
class ConsumerBatch:
    """Records of one partition, as columns of equal length.

    Attributes:
        topic: the name of the topic.
        partition: the number of the partition.
        offsets: the offsets of the records: a range if the offsets are consecutive, otherwise a
            list.
        timestamps: the timestamps, in milliseconds since the epoch.
        keys: the keys; None for null.
        values: the values; None for null.
        headers: the names and values of each record's headers; empty for a record without
            headers.
        timestamp_type: 0 if the producers set the timestamps, 1 if the broker did.
        leader_epoch: the leader epoch of all records; see :class:`ConsumerRecord`.
        broker_id: the broker that the records were fetched from; -1 if they were not fetched.
    """

    topic: str
    partition: int
    offsets: Sequence[int]
    timestamps: Sequence[int]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    headers: Sequence[Headers]
    timestamp_type: int
    leader_epoch: int
    broker_id: int = -1

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition of the records, to pass to ``commit``, ``seek`` or ``pause``."""
        return TopicPartition(self.topic, self.partition)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Iterate over the records."""
        columns = self.offsets, self.timestamps, self.keys, self.values, self.headers
        return map(
            ConsumerRecord,
            repeat(self.topic),
            repeat(self.partition),
            *columns,
            repeat(self.timestamp_type),
            repeat(self.leader_epoch),
        )

    def arrow(self) -> Any:
        """Convert to a ``pyarrow.RecordBatch`` with columns offset, timestamp, key, value, headers.

        Timestamps are UTC, in milliseconds. A record without headers has null headers.

        Raises:
            ImportError: pyarrow or numpy is not installed (``pip install trionet[spark]``).
        """
        import pyarrow as pa

        from ....protocol.records.columnar._arrow_columns import SCHEMA

        headers: Any = [each or None for each in self.headers]
        columns = [self.offsets, self.timestamps, self.keys, self.values, headers]
        return pa.RecordBatch.from_arrays(
            [
                pa.array(column, type=field.type)
                for column, field in zip(columns, SCHEMA, strict=True)
            ],
            schema=SCHEMA,
        )
