"""The hooks for records and their results (Kafka: ProducerInterceptor), and unseen failures.

As in Kafka, exceptions raised by hooks are only logged. Without a hook for results, failed records
whose deliveries were never read are counted, and raise an error when the block exits. Only counters
are kept, not batches or results, so that the memory of a long-running producer does not grow. The
result of a batch refers to the counter for its records. Reading a delivery decrements the
counter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import attrs

from ..._util._logging import get_logger
from ...errors import ApiError, TrionetError, UndeliveredError
from ...protocol.records._types import Headers
from .._topic_partition import TopicPartition
from ._delivery import FailureCount
from .batching._batch import ProducerBatch
from .batching._records import RecordColumns

logger = get_logger("trionet.client.producer")


class ProducerRecord(NamedTuple):
    """A record as passed to ``on_send``.

    Attributes:
        topic: the name of the topic.
        partition: the number of the partition; None if the partitioner chooses.
        timestamp: the timestamp, in milliseconds since the epoch; None for the current time.
        key: the key; None for null.
        value: the value; None for null.
        headers: the header names and values.
    """

    topic: str
    partition: int | None
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers


@attrs.frozen(kw_only=True)
class Acknowledgement:
    """The result of the records of one batch.

    Attributes:
        topic: the name of the topic.
        partition: the number of the partition.
        records: the number of records.
        base_offset: the offset of the first record; -1 if unknown, or if there is an ``error``.
        error: why the records were not, or may not have been, written; None if they were written.
    """

    topic: str
    partition: int
    records: int
    base_offset: int = -1
    error: Exception | None = None


OnSend: TypeAlias = Callable[[ProducerRecord], ProducerRecord]
"""A hook that returns the record, or a replacement for the same topic and partition."""

OnAcknowledgement: TypeAlias = Callable[[Acknowledgement], object]
"""A hook that receives the result of each batch."""


class SendHook:
    """Calls ``on_send``.

    Args:
        on_send: the user's function.
    """

    def __init__(self, on_send: OnSend) -> None:
        self._on_send = on_send

    def apply(self, record: ProducerRecord) -> ProducerRecord:
        """Return the result of ``on_send``, or the unchanged record if the hook misbehaves."""
        try:
            changed = ProducerRecord(*self._on_send(record))
            if changed[:2] != record[:2]:
                raise ValueError("on_send must not change a record's topic or partition")
        except Exception:  # boundary: a function of the user's
            logger.exception("on_send failed; sending the record unchanged")
            return record
        return changed

    def apply_columns(
        self, topic: str, partition: int | None, columns: RecordColumns
    ) -> RecordColumns:
        """Apply the hook to each record, and return the results."""
        rows: list[tuple[int, Any, Any, Headers]] = [columns.row(n) for n in range(len(columns))]
        records = [self.apply(ProducerRecord(topic, partition, *row)) for row in rows]
        return RecordColumns(
            [each.value for each in records],
            [each.key for each in records],
            [
                row[0] if each.timestamp is None else each.timestamp
                for row, each in zip(rows, records, strict=True)
            ],
            [each.headers for each in records],
        )


class AcknowledgementHook:
    """Calls ``on_acknowledgement``; without one, counts unseen failures instead.

    Args:
        on_acknowledgement: the user's function; None for no hook.
        unseen_failures: counts the failed records whose deliveries were not read; None if these are
            reported otherwise, as by the end of a transaction.
    """

    def __init__(
        self, on_acknowledgement: OnAcknowledgement | None, unseen_failures: UnseenFailures | None
    ) -> None:
        self._on_acknowledgement = on_acknowledgement
        self._undelivered = unseen_failures

    def written(self, batch: ProducerBatch, base_offset: int) -> None:
        """Report a batch that was written."""
        if self._on_acknowledgement is not None:
            self._call(batch, base_offset, None)

    def failed(self, batch: ProducerBatch, error: Exception) -> None:
        """Report a batch that was not, or may not have been, written."""
        if self._on_acknowledgement is not None:
            self._call(batch, -1, error)
            return
        if self._undelivered is None:
            return
        outcome = batch.outcome
        records = batch.record_count - outcome.seen_count
        if records:
            outcome.unseen = self._undelivered.add(batch.topic_partition, error, records)

    def _call(self, batch: ProducerBatch, base_offset: int, error: Exception | None) -> None:
        assert self._on_acknowledgement is not None
        topic, partition = batch.topic_partition
        acknowledgement = Acknowledgement(
            topic=topic,
            partition=partition,
            records=batch.record_count,
            base_offset=base_offset,
            error=error,
        )
        try:
            self._on_acknowledgement(acknowledgement)
        except Exception:  # boundary: a function of the user's
            logger.exception("on_acknowledgement failed")


#: The maximum number of counters; all further failures share one counter.
KINDS_MAX: Final = 100

#: The class of an error, Kafka's error code, and whether the records may have been written.
_Kind: TypeAlias = tuple[type[Exception], int, bool]


class UnseenFailures:
    """Counts the unseen failures of one producer."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[TopicPartition, _Kind], FailureCount] = {}
        self._rest: FailureCount | None = None

    def add(self, partition: TopicPartition, error: Exception, records: int) -> FailureCount:
        """Count the records of a failed batch, and return the counter for its result."""
        key = partition, _kind(error)
        found = self._kinds.get(key)
        if found is None or not found.records:
            if len(self._kinds) >= KINDS_MAX:
                self._kinds = {kind: each for kind, each in self._kinds.items() if each.records}
            found = FailureCount(error)
            if len(self._kinds) < KINDS_MAX:
                self._kinds[key] = found
            else:
                found = self._rest = self._rest or found
        found.records += records
        return found

    def error(self, raised: Exception | None = None) -> UndeliveredError | None:
        """Return the error to raise when the block exits; None if every failure has been seen.

        Args:
            raised: the fatal error of the producer, if a call has raised it; records that failed
                with this error are not reported again.
        """
        failures = [
            (partition.topic, partition.partition, each.records, each.error)
            for (partition, _), each in self._kinds.items()
            if each.records and not _is_same(each.error, raised)
        ]
        records = sum(count for _, _, count, _ in failures)
        if self._rest is not None:
            records += self._rest.records
        return UndeliveredError(failures, records) if records else None


def _kind(error: Exception) -> _Kind:
    if isinstance(error, ApiError):
        return ApiError, error.error_code, error.may_have_been_written
    return type(error), 0, isinstance(error, TrionetError) and error.may_have_been_written


def _is_same(error: Exception, other: Exception | None) -> bool:
    """Return whether two errors are equal in class and arguments, as an error and its copy are."""
    return other is not None and (type(error), error.args) == (type(other), other.args)
