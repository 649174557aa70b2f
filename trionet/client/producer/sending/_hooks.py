"""Functions of the user's that see every record and what became of it (Kafka: ProducerInterceptor).

As in Kafka an error of theirs is told in the log, and stops nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import attrs

from ....protocol.records._types import Headers
from ..batching._batch import ProducerBatch
from ..delivery._unseen_failures import Undelivered

logger = logging.getLogger("trionet.client.producer")


class ProducerRecord(NamedTuple):
    """A record before it is taken to be sent.

    Attributes:
        topic: its topic.
        partition: its number; None lets the key decide, or without a key the load.
        timestamp: in milliseconds since 1970; None for now.
        key: None for null.
        value: None for null.
        headers: names and values.
    """

    topic: str
    partition: int | None
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: Headers


@attrs.frozen(kw_only=True)
class Acknowledgement:
    """What became of the records of one batch.

    Attributes:
        topic: their topic.
        partition: their partition.
        records: how many they are.
        base_offset: of the first; the others follow. -1 where nobody knows, or with an ``error``.
        error: why they were not written, or why nobody knows; None if they were.
    """

    topic: str
    partition: int
    records: int
    base_offset: int = -1
    error: Exception | None = None


OnSend: TypeAlias = Callable[[ProducerRecord], ProducerRecord]
"""Sees a record, and gives it back or another one for the same topic and partition."""

OnAcknowledgement: TypeAlias = Callable[[Acknowledgement], object]
"""Is told of a batch when it is decided what became of it."""

Columns: TypeAlias = tuple[
    list[bytes | None], list[bytes | None], list[Headers], int | Sequence[int]
]


class SendHook:
    """Calls the function that sees records.

    Args:
        on_send: the function.
    """

    def __init__(self, on_send: OnSend) -> None:
        self._on_send = on_send

    def seen(self, record: ProducerRecord) -> ProducerRecord:
        """The record to be sent."""
        try:
            changed = self._on_send(record)
            if changed[:2] != record[:2]:
                raise ValueError("on_send may not change a record's topic or partition")
        except Exception:  # boundary: a function of the user's
            logger.exception("on_send failed; the record is sent as it was")
            return record
        return changed

    def seen_columns(
        self,
        topic: str,
        partition: int | None,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        headers: Sequence[Headers] | None,
        timestamps: int | Sequence[int],
    ) -> Columns:
        """The columns of the records to be sent: values, keys, headers, timestamps."""
        count = len(values)
        times = [timestamps] * count if isinstance(timestamps, int) else timestamps
        rows = zip(
            times,
            [None] * count if keys is None else keys,
            values,
            [()] * count if headers is None else headers,
            strict=True,
        )
        records = [self.seen(ProducerRecord(topic, partition, *row)) for row in rows]
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
    """Calls the function that is told what became of records, if there is one.

    Args:
        on_acknowledgement: the function, which sees all failures.
        undelivered: counts them where there is none, until their deliveries are looked at.
    """

    def __init__(
        self, on_acknowledgement: OnAcknowledgement | None, undelivered: Undelivered
    ) -> None:
        self._on_acknowledgement = on_acknowledgement
        self._undelivered = undelivered

    def written(self, batch: ProducerBatch, base_offset: int) -> None:
        """A batch was written."""
        if self._on_acknowledgement is not None:
            self._call(batch, base_offset, None)

    def failed(self, batch: ProducerBatch, error: Exception) -> None:
        """A batch was not written, or nobody knows."""
        if self._on_acknowledgement is not None:
            self._call(batch, -1, error)
            return
        outcome = batch.outcome
        records = batch.record_count - outcome.looked_at
        if records:
            outcome.unseen = self._undelivered.add(batch.topic_partition, error, records)

    def _call(self, batch: ProducerBatch, base_offset: int, error: Exception | None) -> None:
        assert self._on_acknowledgement is not None
        topic, partition = batch.topic_partition
        told = Acknowledgement(
            topic=topic,
            partition=partition,
            records=batch.record_count,
            base_offset=base_offset,
            error=error,
        )
        try:
            self._on_acknowledgement(told)
        except Exception:  # boundary: a function of the user's
            logger.exception("on_acknowledgement failed")
