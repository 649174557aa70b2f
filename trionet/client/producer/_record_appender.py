"""The code path that appends records to the accumulator (Kafka: KafkaProducer.doSend).

Every record takes this path, so its cost limits the throughput of a producer. This module is
compiled. The module of :class:`.Producer` is not, because compiled async functions do not warn when
a caller forgets to await them. Two costs are avoided for most records. The clock is read only for a
record that begins a batch. The fields are checked only after an append has failed, so that the
error can name the field. Reconsider once mypyc can compile async functions that warn.

The fields have no types here, because compiled code checks the types of arguments before a function
begins, and its error (``bytes or None object expected; got str``) would come in place of ours. The
accumulator has the types, so each field is still checked once.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import trio
from trio.lowlevel import current_task

from ..._util._cancellation import is_task_cancelled
from ...protocol.records._batch import Bytes
from ...protocol.records._types import Headers
from ._delivery import Delivery
from ._hooks import ProducerRecord, SendHook
from ._metadata import MetadataWaiter
from .batching._accumulator import RecordAccumulator
from .batching._records import check_partition, check_record, check_timestamp
from .sending._sender import Sender

#: A mask for the index of a record in its batch. The task yields when the masked index is 0.
_PAUSE_MASK: Final = 512 - 1


class RecordAppender:
    """Appends records for a producer, and triggers sending when a batch begins.

    Args:
        accumulator: holds the records waiting to be sent.
        sender: sends the records.
        topics: waits for topic metadata.
        now_ms: returns the wall-clock time in milliseconds since the epoch.
        hook: applied to each record before it is appended; None for no hook.

    Attributes:
        is_awaited: whether the appending task will run the sender, so that the sending task need
            not be woken.
        is_pause_due: whether the appending task must yield before the next record.
    """

    def __init__(
        self,
        accumulator: RecordAccumulator,
        sender: Sender,
        topics: MetadataWaiter,
        now_ms: Callable[[], int],
        hook: SendHook | None,
    ) -> None:
        self._hook = hook
        self._accumulator = accumulator
        self._sender = sender
        self._topics = topics
        self._now_ms = now_ms
        self._clock = trio.lowlevel.current_clock().current_time
        self._task = current_task()
        self.is_pause_due: bool = False
        self.is_awaited: bool = False

    def append(
        self, topic: Any, value: Any, key: Any, headers: Any, partition: Any, timestamp: Any
    ) -> Delivery:
        """Append a record; see :meth:`.Producer.send_nowait`."""
        sender = self._sender
        if sender.error is not None:
            sender.check()
        if self._hook is not None:
            record = ProducerRecord(topic, partition, timestamp, key, value, headers)
            _, _, timestamp, key, value, headers = self._hook.apply(record)
        if timestamp is None:
            timestamp = self._now_ms()
        elif type(timestamp) is not int or timestamp < 0:
            check_timestamp("the timestamp", timestamp)
            timestamp = int(timestamp)
        if partition is not None and type(partition) is not int:
            check_partition(partition)
            partition = int(partition)
        accumulator = self._accumulator
        try:
            delivery = accumulator.try_append(topic, partition, timestamp, key, value, headers)
            if delivery is None:
                delivery = self._begin_batch(topic, partition, timestamp, key, value, headers)
        except (TypeError, ValueError, AttributeError):
            check_record(topic, partition, key, value, headers)  # names the wrong field
            raise
        if not delivery.index & _PAUSE_MASK:
            self.is_pause_due = True
        return delivery

    def send_nowait(
        self,
        topic: Any,
        value: Any,
        *,
        key: Any = None,
        headers: Any = (),
        partition: Any = None,
        timestamp: Any = None,
    ) -> Delivery:
        """Append a record. This method replaces :meth:`.Producer.send_nowait` in every producer."""
        return self.append(topic, value, key, headers, partition, timestamp)

    def _begin_batch(
        self,
        topic: str,
        partition: int | None,
        timestamp: int,
        key: Bytes | None,
        value: Bytes | None,
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
            self._topics.request(topic, partition, now)
            if pool.is_exhausted and not was_exhausted:
                self._sender.send_now(now)  # nothing lingers any more
            self._sender.wake()
            raise
        if not delivery.index:  # a new batch: the one before it is full, and linger.ms begins
            self._sender.batch_began(delivery.outcome.topic_partition, now)
            if not self.is_awaited:
                self._sender.wake_for_new_batch()
        return delivery

    def append_if_free(
        self, topic: Any, value: Any, key: Any, headers: Any, partition: Any, timestamp: Any
    ) -> Delivery | None:
        """Append a record if that requires neither a checkpoint nor a wait; otherwise return None.

        Most calls to :meth:`.Producer.enqueue` make only this one call, since a second call per
        record would cost too much.
        """
        # is_promised: other records wait for memory and come first.
        if self._is_cancelled() or self.is_pause_due or self._accumulator.pool.is_promised:
            return None
        try:
            return self.append(topic, value, key, headers, partition, timestamp)
        except trio.WouldBlock:
            return None

    def needs_checkpoint(self) -> bool:
        """Return whether the task must yield or is cancelled; if so, reset both flags."""
        if not self.is_pause_due and not self._is_cancelled():
            return False
        self.is_pause_due = self.is_awaited = False
        return True

    def _is_cancelled(self) -> bool:
        task = current_task()
        if task is not self._task:  # checked once per task rather than once per record
            self._sender.check_thread()
            self._task = task
        return is_task_cancelled(task)
