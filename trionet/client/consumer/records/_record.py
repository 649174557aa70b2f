"""What a consumer hands out: records one by one, or in batches of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import attrs

from ....protocol.records._types import Headers
from ..._topic_partition import TopicPartition


class ConsumerRecord(NamedTuple):
    """A record, and where it was.

    Attributes:
        topic: the topic's name.
        partition: the partition's number.
        offset: its place in the partition.
        timestamp: in milliseconds since 1970; -1 for none.
        key: None for null.
        value: None for null.
        headers: names and values, in their order; a name may occur more than once.
        timestamp_type: 0 if the producer set the timestamp, 1 if the broker did.
        leader_epoch: counts the partition's leaders up to the one that wrote it; -1 where the
            broker does not tell (KIP-320).
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
        """The partition that it is of, as ``commit``, ``seek`` and ``pause`` take it."""
        return TopicPartition(self.topic, self.partition)


@attrs.frozen(kw_only=True, eq=False)
class ConsumerBatch:
    """Records of one partition as columns, all of one length.

    Attributes:
        topic: the topic's name.
        partition: the partition's number.
        offsets: a range where no offset is missing, else a list.
        timestamps: in milliseconds since 1970.
        keys: None for null.
        values: None for null.
        headers: names and values; empty where a record has none.
        timestamp_type: 0 if the producers set the timestamps, 1 if the broker did.
        leader_epoch: of all the records; see :class:`ConsumerRecord`.
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

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that they are of, as ``commit``, ``seek`` and ``pause`` take it."""
        return TopicPartition(self.topic, self.partition)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """The same records one by one."""
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
        """The columns as a ``pyarrow.RecordBatch``: offset, timestamp, key, value, headers.

        Timestamps are milliseconds in UTC; headers are null where a record has none.

        Raises:
            ImportError: pyarrow, or numpy, is not installed (``pip install trionet[spark]``).
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
