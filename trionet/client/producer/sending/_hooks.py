"""Calls the user's functions for each record and its result (Kafka: ProducerInterceptor).

As in Kafka, their errors are logged, and affect nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import attrs

from ....protocol.records._types import Headers
from ..batching._batch import ProducerBatch
from ..delivery._unseen_failures import UnseenFailures

logger = logging.getLogger("trionet.client.producer")


class ProducerRecord(NamedTuple):
    """A record before it is appended.

    Attributes:
        topic: the name of the topic.
        partition: the number of the partition; None chooses by the key, or without a key by load.
        timestamp: the timestamp, in milliseconds since 1970; None for now.
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
        base_offset: the offset of the first record, which the others follow; -1 if it is not known,
            or with an ``error``.
        error: why the records were not, or may not have been, written; None if they were.
    """

    topic: str
    partition: int
    records: int
    base_offset: int = -1
    error: Exception | None = None


OnSend: TypeAlias = Callable[[ProducerRecord], ProducerRecord]
"""Called with each record; returns it, or a replacement for the same topic and partition."""

OnAcknowledgement: TypeAlias = Callable[[Acknowledgement], object]
"""Called with the result of each batch."""

Columns: TypeAlias = tuple[
    list[bytes | None], list[bytes | None], list[Headers], int | Sequence[int]
]


class SendHook:
    """Calls ``on_send`` with each record.

    Args:
        on_send: the user's function.
    """

    def __init__(self, on_send: OnSend) -> None:
        self._on_send = on_send

    def apply(self, record: ProducerRecord) -> ProducerRecord:
        """Return the record to send: the result of ``on_send``, or the record if that fails."""
        try:
            changed = self._on_send(record)
            if changed[:2] != record[:2]:
                raise ValueError("on_send must not change a record's topic or partition")
        except Exception:  # boundary: a function of the user's
            logger.exception("on_send failed; sending the record unchanged")
            return record
        return changed

    def apply_columns(
        self,
        topic: str,
        partition: int | None,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        headers: Sequence[Headers] | None,
        timestamps: int | Sequence[int],
    ) -> Columns:
        """Apply the hook to columns; returns the values, keys, headers and timestamps to send."""
        count = len(values)
        times = [timestamps] * count if isinstance(timestamps, int) else timestamps
        rows = zip(
            times,
            [None] * count if keys is None else keys,
            values,
            [()] * count if headers is None else headers,
            strict=True,
        )
        records = [self.apply(ProducerRecord(topic, partition, *row)) for row in rows]
        return (
            [each.value for each in records],
            [each.key for each in records],
            [each.headers for each in records],
            [
                time if each.timestamp is None else each.timestamp
                for time, each in zip(times, records, strict=True)
            ],
        )


class AcknowledgementHook:
    """Reports the results of batches to ``on_acknowledgement``, or counts failures without it.

    Args:
        on_acknowledgement: the user's function, which sees all failures; None for none.
        unseen_failures: counts failed records whose deliveries have not been read.
    """

    def __init__(
        self, on_acknowledgement: OnAcknowledgement | None, unseen_failures: UnseenFailures
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
