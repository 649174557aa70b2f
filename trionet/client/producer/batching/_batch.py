"""The batch of records that a producer builds for one partition (Kafka: ProducerBatch)."""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, cast

from ....protocol.records import _implementation as implementation
from ....protocol.records._batch import HEADER_SIZE, TRANSACTIONAL, Bytes, seal_batch
from ....protocol.records._records import compressed_chunks
from ....protocol.records._types import EncodedRecords, Headers, as_bytes, as_header
from ..._topic_partition import TopicPartition
from .._delivery import Delivery, ProduceRequestResult, maybe_written, new_delivery
from ._records import RecordColumns

if TYPE_CHECKING:
    from ....protocol.records._typed_writer import BatchBuilder as TypedBuilder

NONE: Final = -1
SEQUENCE_MAX: Final = 2**31 - 1


#: The maximum size of the record fields other than key, value and headers: length, attributes,
#: timestamp delta, offset delta, key length, value length and header count.
_RECORD_OVERHEAD: Final = 5 + 1 + 10 + 5 + 5 + 5 + 5
_HEADER_OVERHEAD: Final = 5 + 5
#: The maximum size of a character in UTF-8.
_UTF8_BYTES_MAX: Final = 4


def record_size_max(
    key: Bytes | None, value: Bytes | None, headers: Iterable[object] | None
) -> int:
    """Return the maximum size in bytes of a batch that contains only this record.

    (Kafka: AbstractRecords.estimateSizeInBytesUpperBound.)
    """
    size = HEADER_SIZE + _RECORD_OVERHEAD + _length(key) + _length(value)
    for header in headers or ():  # a batch accepts None for no headers, too
        name, content = as_header(header)
        size += _HEADER_OVERHEAD + _UTF8_BYTES_MAX * len(name) + _length(content)
    return size


def _length(field: object) -> int:
    if field is None:
        return 0
    if isinstance(field, memoryview):
        return field.nbytes
    return len(field if isinstance(field, (bytes, bytearray)) else as_bytes(field))


class ProducerBatch:
    """A batch of records for one partition.

    Args:
        topic_partition: the destination.
        size_max: ``batch.size``; the batch may exceed this size only if it has a single record.
        reserved: the number of bytes taken from the buffer pool.
        created_at: the creation time on the event loop's clock, in seconds;
            ``delivery.timeout.ms`` runs from then.
        codec: the number of the compression codec.
        level: see :func:`trionet.protocol.records.compression._codecs.compress`.

    Attributes:
        topic_partition: the destination.
        reserved: the number of bytes taken from the buffer pool; 0 once they have been given back.
        created_at: the creation time on the event loop's clock, in seconds.
        outcome: the result of the batch, which the deliveries of its records share.
        attempts: the number of retries.
        retry_at: when the retry backoff (``retry.backoff.ms``) ends, on the event loop's clock;
            ignored if the partition has a newer leader.
        leader_epoch: the epoch of the leader to which the batch was last sent; -1 if the batch has
            not been sent yet, or the epoch is not known.
        drained_at: when the batch was last drained; -1.0 if it never was.
        is_drained: whether the batch was drained, after which no record can be withdrawn.
        may_be_written: whether the leader may have appended the batch, because an attempt had no
            response or an inconclusive one.
        producer_id: the producer id; -1 without idempotence.
        producer_epoch: the epoch of the producer id.
        base_sequence: the sequence number of the first record; -1 if none was assigned.
        is_transactional: whether the batch is part of a transaction.
    """

    __slots__ = (
        "_body",
        "_builder",
        "_codec",
        "_is_marked_full",
        "_level",
        "_size_max",
        "_typed",
        "attempts",
        "base_sequence",
        "created_at",
        "drained_at",
        "is_drained",
        "is_transactional",
        "leader_epoch",
        "may_be_written",
        "outcome",
        "producer_epoch",
        "producer_id",
        "reserved",
        "retry_at",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        size_max: int,
        reserved: int,
        created_at: float,
        codec: int = 0,
        level: int | None = None,
    ) -> None:
        self.topic_partition: TopicPartition = topic_partition
        self.reserved: int = reserved
        self.created_at: float = created_at
        self.outcome: ProduceRequestResult = ProduceRequestResult(topic_partition)
        self.attempts: int = 0
        self.retry_at: float = created_at
        self.leader_epoch: int = -1
        self.drained_at: float = -1.0
        self.is_drained: bool = False
        self.may_be_written: bool = False
        self.producer_id: int = NONE
        self.producer_epoch: int = NONE
        self.base_sequence: int = NONE
        self.is_transactional: bool = False
        self._builder = implementation.writer.BatchBuilder()
        # The same object with its concrete type if that is compiled: a C call for each record.
        self._typed = cast("TypedBuilder", self._builder) if implementation.is_typed else None
        self._is_marked_full = False
        self._size_max = size_max
        self._codec = codec
        self._level = level
        self._body: list[bytes] | None = None

    # Appending.

    def try_append(
        self,
        timestamp: int,
        key: Bytes | None,
        value: Bytes | None,
        headers: Headers,
    ) -> Delivery | None:
        """Append a record if it fits.

        Returns:
            The record's delivery; None if the record does not fit.

        Raises:
            LocalProtocolError: the timestamp does not fit into 64 bits, or is too far from the
                first timestamp of the batch.
            TypeError: the key or the value is neither bytes nor None.
        """
        typed = self._typed
        if typed is not None:
            number: int = typed.count
            if not typed.append(timestamp, key, value, headers, self._size_max):
                return None
            return new_delivery(self.outcome, number, timestamp)
        builder = self._builder
        index = builder.count
        if not builder.append(timestamp, key, value, headers, self._size_max):
            return None
        return new_delivery(self.outcome, index, timestamp)

    def append_columns(self, columns: RecordColumns, start: int, stop: int) -> int:
        """Append a range of records until one does not fit.

        Returns:
            The index of the first record that was not appended.
        """
        return self._builder.append_columns(
            start,
            stop,
            columns.timestamps,
            columns.keys,
            columns.values,
            columns.headers,
            self._size_max,
        )

    def begin_with(self, records: EncodedRecords, timestamp: int) -> None:
        """Begin the empty batch with encoded records; see :meth:`.BatchBuilder.begin_with`."""
        self._builder.begin_with(records.body, records.record_count, timestamp)

    @property
    def appended(self) -> int:
        """The number of appended records, including withdrawn records."""
        return self._builder.count

    @property
    def size(self) -> int:
        """The size in bytes before compression, including the header."""
        return self._builder.size

    @property
    def sent_size(self) -> int:
        """The size in bytes on the wire, including the header; available after :meth:`chunks`."""
        assert self._body is not None
        return HEADER_SIZE + sum(map(len, self._body))

    @property
    def record_count(self) -> int:
        """The number of records to send, without withdrawn records."""
        count = self._builder.count
        return count if self.is_drained else count - len(self.outcome.withdrawn)

    @property
    def is_full(self) -> bool:
        """Whether the batch has reached its maximum size, or a record did not fit."""
        return self._is_marked_full or self._builder.size >= self._size_max

    def mark_full(self) -> None:
        """Mark the batch as full even though it has not reached its maximum size."""
        self._is_marked_full = True

    # Sending.

    def drain(self, now: float) -> None:
        """Close the batch before sending, so that no record can be appended or withdrawn."""
        self.drained_at = now
        if not self.is_drained:
            self.is_drained = True
            withdrawn = self.outcome.withdrawn
            if withdrawn:
                self._leave_out(withdrawn)

    def chunks(self) -> list[bytes]:
        """Return the encoded batch, which is compressed only on the first call.

        Compressing a large batch may take long, so this method may be called in a worker thread.
        """
        if self._body is None:
            self._body = compressed_chunks(self._builder, self._codec, self._level)
        builder = self._builder
        return seal_batch(
            self._body,
            builder.count,
            attributes=self._codec | (TRANSACTIONAL if self.is_transactional else 0),
            last_offset_delta=builder.last_offset_delta,
            base_timestamp=builder.base_timestamp,
            max_timestamp=builder.max_timestamp,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
        )

    def set_producer_state(self, producer_id: int, epoch: int, base_sequence: int) -> None:
        """Set the producer id, epoch and sequence number; a new epoch changes them (KIP-360)."""
        self.producer_id = producer_id
        self.producer_epoch = epoch
        self.base_sequence = base_sequence

    def split(self, size_max: int) -> list[ProducerBatch]:
        """Split the batch into smaller batches, whose outcomes replace its own (KIP-126).

        The new batches take no memory from the buffer pool. The records keep their sequence
        numbers.

        Args:
            size_max: the maximum size in bytes; a batch with a single record may be larger.

        Returns:
            The new batches, in order.
        """
        parts: list[ProducerBatch] = []
        starts: list[tuple[int, ProduceRequestResult]] = []
        for number, row in enumerate(self._rows()):
            if not parts or parts[-1].try_append(*row) is None:
                parts.append(self._part(number, size_max))
                parts[-1].try_append(*row)
                starts.append((number, parts[-1].outcome))
        self.outcome.split(starts)
        return parts

    def _part(self, number: int, size_max: int) -> ProducerBatch:
        part = ProducerBatch(
            self.topic_partition, size_max, 0, self.created_at, self._codec, self._level
        )
        part.is_drained = True
        part.may_be_written = self.may_be_written
        part.is_transactional = self.is_transactional
        sequence = self.base_sequence
        if sequence != NONE:
            sequence = (sequence + number) & SEQUENCE_MAX
        part.set_producer_state(self.producer_id, self.producer_epoch, sequence)
        part.leader_epoch = self.leader_epoch
        return part

    def _rows(self) -> list[tuple[int, bytes | None, bytes | None, Headers]]:
        """Decode the records, which are kept only in encoded form."""
        builder = self._builder
        body = b"".join(builder.chunks())
        rows, _ = implementation.reader.read_rows(body, 0, builder.count, 0, builder.base_timestamp)
        return [(timestamp, key, value, headers) for _, timestamp, key, value, headers in rows]

    def _leave_out(self, withdrawn: frozenset[int]) -> None:
        builder = implementation.writer.BatchBuilder()
        for number, (timestamp, key, value, headers) in enumerate(self._rows()):
            if number not in withdrawn:
                builder.append(timestamp, key, value, headers)
        self._builder = builder

    # Completion.

    def failure(self, error: Exception) -> Exception:
        """Return the error for this batch, marked if its records may have been written."""
        return maybe_written(error) if self.may_be_written else error
