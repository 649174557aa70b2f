"""Records for one partition, gathered until they are sent (Kafka: ProducerBatch)."""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from ....protocol.records import _implementation as implementation
from ....protocol.records._batch import HEADER_SIZE, TRANSACTIONAL, Bytes, sealed
from ....protocol.records._records import compressed_chunks
from ....protocol.records._types import Headers, as_bytes
from ..._topic_partition import TopicPartition
from ..delivery._delivery import Delivery
from ..delivery._produce_request_result import BatchOutcome, maybe_written
from ._record_columns import RecordColumns

if TYPE_CHECKING:
    from ....protocol.records._typed_writer import BatchBuilder as TypedBuilder

NONE: Final = -1
SEQUENCE_MAX: Final = 2**31 - 1


#: A record's length, attributes, timestamp, offset, the lengths of key and value, and the number
#: of its headers, as varints of the most bytes that each may have.
_RECORD_OVERHEAD: Final = 5 + 1 + 10 + 5 + 5 + 5 + 5
_HEADER_OVERHEAD: Final = 5 + 5
#: What one character of a header's name may need.
_UTF8_BYTES_MAX: Final = 4


def record_size_max(key: Bytes | None, value: Bytes | None, headers: Headers) -> int:
    """How large a batch with this record alone is at most, in bytes.

    (Kafka: AbstractRecords.estimateSizeInBytesUpperBound.)
    """
    size = HEADER_SIZE + _RECORD_OVERHEAD + _length(key) + _length(value)
    for name, content in headers or ():  # as a batch that has begun takes them
        size += _HEADER_OVERHEAD + _UTF8_BYTES_MAX * len(name) + _length(content)
    return size


def _length(field: object) -> int:
    if field is None:
        return 0
    if isinstance(field, memoryview):
        return field.nbytes
    return len(field if isinstance(field, (bytes, bytearray)) else as_bytes(field))


class ProducerBatch:
    """See the module.

    Args:
        topic_partition: where the records go.
        size_max: ``batch.size``: further records must fit into so many bytes; the first one need
            not.
        reserved: the bytes of the buffer pool that it holds.
        created_at: on the loop's clock, in seconds; ``delivery.timeout.ms`` counts from here.
        codec: the compression codec's number.
        level: see :func:`._codecs.compress`.

    Attributes:
        topic_partition: as the arguments.
        reserved: 0 when they were given back.
        created_at: as there.
        outcome: what becomes of the records.
        attempts: how often it was sent and is to be sent again.
        retry_at: not before this, on the loop's clock, it is sent again (``retry.backoff.ms``),
            unless the partition has a newer leader.
        leader_epoch: of the leader it was sent to the last time; -1 for none, or an unknown one.
        drained_at: when it was last drained; -1.0 before.
        is_drained: it may have been sent; its records cannot be taken back any more.
        may_be_written: an attempt ended without a response, or with one that leaves open whether
            the leader has the batch.
        producer_id: whom it is from; -1 for nobody (idempotence is off).
        producer_epoch: which life of them.
        base_sequence: the number of its first record; -1 for none.
        is_transactional: it belongs to a transaction.
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
        self.topic_partition = topic_partition
        self.reserved = reserved
        self.created_at = created_at
        self.outcome = BatchOutcome(topic_partition)
        self.attempts = 0
        self.retry_at = created_at
        self.leader_epoch = -1
        self.drained_at = -1.0
        self.is_drained = False
        self.may_be_written = False
        self.producer_id = NONE
        self.producer_epoch = NONE
        self.base_sequence = NONE
        self.is_transactional = False
        self._builder = implementation.writer.BatchBuilder()
        # The same one with its own type, if it has one that is compiled: a call of C per record.
        self._typed = cast("TypedBuilder", self._builder) if implementation.is_typed else None
        self._is_marked_full = False
        self._size_max = size_max
        self._codec = codec
        self._level = level
        self._body: list[bytes] | None = None

    # Filling.

    def try_append(
        self,
        timestamp: int,
        key: Bytes | None,
        value: Bytes | None,
        headers: Headers,
    ) -> Delivery | None:
        """Add a record if there is room for it.

        Returns:
            Its delivery; None if there is no room.

        Raises:
            LocalProtocolError: the timestamp is beyond 64 bits, or too far from the first one.
            TypeError: the key or the value is neither bytes nor None.
        """
        typed = self._typed
        if typed is not None:
            number: int = typed.count
            if not typed.append(timestamp, key, value, headers, self._size_max):
                return None
            return Delivery(self.outcome, number, timestamp)
        builder = self._builder
        index = builder.count
        if not builder.append(timestamp, key, value, headers, self._size_max):
            return None
        return Delivery(self.outcome, index, timestamp)

    def append_columns(self, columns: RecordColumns, start: int, stop: int) -> int:
        """Add some records of columns, as long as there is room for them.

        Returns:
            The number of the first one that was not added.
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

    @property
    def appended(self) -> int:
        """How many records were added, whether they were taken back or not."""
        return self._builder.count

    @property
    def size(self) -> int:
        """In bytes, with its header and before compression."""
        return self._builder.size

    @property
    def sent_size(self) -> int:
        """In bytes, with its header and as it is sent; after :meth:`chunks` was asked for."""
        assert self._body is not None
        return HEADER_SIZE + sum(map(len, self._body))

    @property
    def record_count(self) -> int:
        """How many records are sent."""
        count = self._builder.count
        return count if self.is_drained else count - len(self.outcome.withdrawn)

    @property
    def is_full(self) -> bool:
        """Whether waiting for more records makes no sense."""
        return self._is_marked_full or self._builder.size >= self._size_max

    def mark_full(self) -> None:
        """A record did not fit."""
        self._is_marked_full = True

    # Sending.

    def drain(self, now: float) -> None:
        """It is about to be sent: nothing is added or taken back any more."""
        self.drained_at = now
        if not self.is_drained:
            self.is_drained = True
            withdrawn = self.outcome.withdrawn
            if withdrawn:
                self._leave_out(withdrawn)

    def chunks(self) -> list[bytes]:
        """The batch as it is sent, in pieces; compressed once, however often it is sent.

        This may take long with a codec and large batches, and may be done in a thread.
        """
        if self._body is None:
            self._body = compressed_chunks(self._builder, self._codec, self._level)
        builder = self._builder
        return sealed(
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
        """Number the batch; with a new epoch again, though it was sent before (KIP-360)."""
        self.producer_id = producer_id
        self.producer_epoch = epoch
        self.base_sequence = base_sequence

    def split(self, size_max: int) -> list[ProducerBatch]:
        """Smaller batches with the same records; their outcomes become those of this one's records.

        They hold nothing of the buffer pool, and have the numbers of their records (KIP-126).

        Args:
            size_max: how large they may be, in bytes; one with a single record may be larger.
        """
        parts: list[ProducerBatch] = []
        starts: list[tuple[int, BatchOutcome]] = []
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
        """The records once more; they are kept in the form in which they are sent."""
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

    # Ending.

    def failure(self, error: Exception) -> Exception:
        """The error as this batch fails with it: it says so if the records may be written."""
        return maybe_written(error) if self.may_be_written else error

    def complete(self, base_offset: int, log_append_time: int = -1) -> bool:
        """The records were written; see :meth:`.BatchOutcome.complete`."""
        return self.outcome.complete(base_offset, log_append_time)

    def fail(self, error: Exception) -> bool:
        """The records were not written, or nobody knows; whether this decides it."""
        return self.outcome.fail(error)

    def fail_records(self, error: Exception, errors: Mapping[int, Exception]) -> bool:
        """Some records made all fail (KIP-467).

        Args:
            error: of all that have none of their own.
            errors: of those that were refused, by their place in the batch.
        """
        return self.outcome.fail(error, errors)
