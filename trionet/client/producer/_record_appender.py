"""Appends records to the accumulator without waiting: what a producer does for every record.

(Kafka: KafkaProducer.doSend.) By itself, because it is compiled, and :class:`.Producer` is not.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from ..._util._cancellation import is_cancelled
from ...protocol.records._types import Headers
from ._wait_on_metadata import TopicWait
from .batching._accumulator import RecordAccumulator
from .batching._record_checks import check_partition, check_record, check_timestamp
from .delivery._delivery import Delivery
from .sending._hooks import ProducerRecord, SendHook
from .sending._sender import Sender

#: Of a batch, other tasks have their turn after so many records; less one.
_PAUSE_MASK: Final = 512 - 1


class RecordAppender:
    """Appends records, and has them sent when that begins a batch.

    Args:
        accumulator: what waits to be sent.
        sender: sends it.
        topics: what is known of topics, and waiting for more.
        now_ms: the time of day, in milliseconds.
        hook: sees each record before it is taken; None for none.

    Attributes:
        is_awaited: the task that appends goes on to make the sender's turns itself.
        is_pause_due: other tasks have had no turn for so many records that they are due.
    """

    def __init__(
        self,
        accumulator: RecordAccumulator,
        sender: Sender,
        topics: TopicWait,
        now_ms: Callable[[], int],
        hook: SendHook | None,
    ) -> None:
        self._hook = hook
        self._accumulator = accumulator
        self._sender = sender
        self._topics = topics
        self._now_ms = now_ms
        self._clock = trio.lowlevel.current_clock().current_time
        self.is_pause_due = self.is_awaited = False

    def append(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int | None,
        timestamp: int | None,
    ) -> Delivery:
        """See :meth:`.NowaitProducer.send_nowait`."""
        sender = self._sender
        if sender.error is not None:
            sender.check()
        if self._hook is not None:
            record = ProducerRecord(topic, partition, timestamp, key, value, headers)
            _, _, timestamp, key, value, headers = self._hook.seen(record)
        if timestamp is None:
            timestamp = self._now_ms()
        elif type(timestamp) is not int or timestamp < 0:
            check_timestamp("the timestamp", timestamp)
        accumulator = self._accumulator
        try:
            delivery = accumulator.try_append(topic, partition, timestamp, key, value, headers)
            if delivery is None:
                delivery = self._begin_batch(topic, partition, timestamp, key, value, headers)
        except (TypeError, ValueError, AttributeError):
            check_record(topic, partition, key, value, headers)  # tells which of them it is
            raise
        if not delivery.index & _PAUSE_MASK:
            self.is_pause_due = True
        return delivery

    def _begin_batch(
        self,
        topic: str,
        partition: int | None,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> Delivery:
        check_partition(partition)
        now = self._clock()
        pool = self._accumulator.pool
        was_exhausted = pool.is_exhausted
        try:
            delivery = self._accumulator.append(
                topic, partition, timestamp, key, value, headers, now
            )
        except trio.WouldBlock:
            self._topics.need(topic, partition, now)
            if pool.is_exhausted and not was_exhausted:
                self._sender.kick(now)  # nothing lingers any more
            self._sender.attend()
            raise
        if not delivery.index:  # the batch before it is full, or its own time runs
            self._sender.batch_began(delivery.outcome.topic_partition, now)
            if not self.is_awaited:
                self._sender.attend()
        return delivery

    def append_if_free(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int | None,
        timestamp: int | None,
    ) -> Delivery | None:
        """The same for :meth:`.Producer.enqueue`; None if that has to make a checkpoint, or wait.

        One call does all that nearly every record needs: each further one would be noticed.
        """
        # `is_promised`: other records wait for memory, and come first.
        if self.is_pause_due or is_cancelled() or self._accumulator.pool.is_promised:
            return None
        try:
            return self.append(topic, value, key, headers, partition, timestamp)
        except trio.WouldBlock:
            return None

    def needs_checkpoint(self) -> bool:
        """Whether other tasks are due, or this one is cancelled; counts on the checkpoint."""
        if not self.is_pause_due and not is_cancelled():
            return False
        self.is_pause_due = self.is_awaited = False
        return True
