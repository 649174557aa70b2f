"""The record accumulator, which batches records per partition (Kafka: RecordAccumulator).

Records are appended one by one but drained in batches, so there are two classes. The accumulator
finds the open batch of a partition and appends to it. :class:`.BatchQueues` manages batches after
that, and is the only class that the sender uses. Appending a record costs one topic lookup and
one call to the batch builder (:meth:`RecordAccumulator.try_append`). It needs neither a clock
nor a lock, since all tasks run in one event loop.

Rejected: a reference from the producer to the current batch. This would save the topic lookup, a
fifth of the cost of an append, but would have to be invalidated whenever metadata changes.
Reconsider if records are ever sent without a topic name.

No function waits or performs I/O. ``now`` is always the time on the event loop's clock, in seconds.
"""

# Compiled by mypyc.

from __future__ import annotations

import random
from typing import Final

import trio

from ....errors import RecordTooLargeError
from ....protocol.records._batch import HEADER_SIZE, Bytes
from ....protocol.records._types import EncodedRecords, Headers
from ....protocol.records.compression._codecs import NAMES
from ..._topic_partition import TopicPartition
from .._deliveries import Deliveries
from .._delivery import Delivery, ProduceRequestResult, abandon, withdrawn
from .._settings import ProducerSettings
from ..transactions._transaction_state import TransactionState
from ._batch import ProducerBatch, record_size_max
from ._batch_queues import BatchQueues, Sequencing
from ._buffer_pool import BufferPool
from ._records import RecordColumns
from ._topic_queues import PartitionQueue, partition_of

_CODECS: Final = {name: number for number, name in NAMES.items()}


class RecordAccumulator:
    """The batches of a producer, and the memory they occupy.

    Args:
        settings: the settings of the producer.
        rng: jitters backoffs and chooses partitions.
        sequencing: assigns sequence numbers to batches; None without idempotence.
        transaction: the transactions to which all records belong; None without transactions.

    Attributes:
        queues: the batches waiting to be sent.
        pool: the memory that batches occupy.
        is_closed: whether the producer is closed.
        is_blocked: whether appends are rejected, because the producer is closed, or because no
            transaction is open.
    """

    def __init__(
        self,
        settings: ProducerSettings,
        rng: random.Random,
        sequencing: Sequencing | None = None,
        transaction: TransactionState | None = None,
    ) -> None:
        self.queues: BatchQueues = BatchQueues(settings, rng, sequencing)
        # Both are read for each record, and these references save an attribute access.
        self.pool: BufferPool = self.queues.pool
        self._topics = self.queues.topics
        self.is_closed: bool = False
        self.is_blocked: bool = transaction is not None
        self._transaction = transaction
        self._settings = settings
        self._batch_bytes = min(settings.batch_bytes, settings.request_bytes_max)
        self._codec = _CODECS[settings.compression]
        self._ignores_keys = settings.partitioner_ignores_keys

    def knows(self, topic: str, partition: int | None = None) -> bool:
        """Return whether records can be appended to a topic, or to one partition of it."""
        found = self._topics.get(topic)
        return found is not None and (partition is None or found.queue(partition) is not None)

    def key_partitions(self, topic: str) -> int:
        """Return the number of partitions across which the keys of a topic are hashed.

        Args:
            topic: a topic for which :meth:`knows` returns True.

        Returns:
            The number of partitions; 0 if keys are ignored (``partitioner.ignore.keys``).
        """
        found = self._topics.get(topic)
        return 0 if found is None or self._ignores_keys else found.partitions

    def append(
        self,
        topic: str,
        partition: int | None,
        timestamp: int,
        key: Bytes | None,
        value: Bytes | None,
        headers: Headers,
        now: float,
    ) -> Delivery:
        """Append a record to the open batch of its partition, or to a new one.

        Args:
            topic: a topic for which :meth:`knows` returns True.
            partition: the partition number; if None, the partitioner chooses, by the key if there
                is one.
            timestamp: the timestamp, in milliseconds.
            key: the key; None for no key.
            value: the value; None for null.
            headers: the header names and values.
            now: the current time.

        Raises:
            trio.WouldBlock: ``buffer.memory`` has no space for another batch, or the topic or the
                partition is not known yet.
            trio.ClosedResourceError: the accumulator is closed.
            LocalProtocolError: no transaction is open.
            TransactionAbortableError: the open transaction has failed.
            RecordTooLargeError: the record is larger than ``max.request.size``, or than all of
                ``buffer.memory``.
            LocalProtocolError: the timestamp does not fit into 64 bits, or is too far from the
                first timestamp of the batch.
            TypeError: the key or the value is neither bytes nor None.
        """
        delivery = self.try_append(topic, partition, timestamp, key, value, headers)
        if delivery is not None:
            return delivery
        found = self._topics.get(topic)
        if found is None or self.is_blocked:
            if self.is_blocked:
                raise self._refusal()
            raise trio.WouldBlock
        is_sticky = False
        if partition is not None:
            chosen = found.queue(partition)
            if chosen is None:
                raise trio.WouldBlock
            queue = chosen
        elif key is None or self._ignores_keys:
            is_sticky = True
            queue = self._topics.choose(found)
        else:
            queue = found.queues[partition_of(key, found.partitions)]
        batch = queue.filling
        if batch is not None:
            delivery = batch.try_append(timestamp, key, value, headers)
            if delivery is None:
                batch.mark_full()
        if delivery is None:
            delivery = self._begin_batch(queue, timestamp, key, value, headers, now)
        if is_sticky:
            found.sticky_batch = queue.filling
        return delivery

    def try_append(
        self,
        topic: str,
        partition: int | None,
        timestamp: int,
        key: Bytes | None,
        value: Bytes | None,
        headers: Headers,
    ) -> Delivery | None:
        """Append a record to the open batch of its partition, without starting a new batch.

        Nearly every record takes this path, which does not need the current time.

        Returns:
            The record's delivery; None if the record needs a new batch, or cannot be appended.

        Raises:
            LocalProtocolError, TypeError: see :meth:`append`.
        """
        found = self._topics.get(topic)
        if found is None or self.is_blocked:
            return None
        if partition is not None:
            if type(partition) is not int:
                return None  # perhaps a bool, which is checked before a new batch begins
            queue = found.queue(partition)
            batch = None if queue is None else queue.filling
        elif key is None or self._ignores_keys:
            batch = found.sticky_batch
            if batch is not found.sticky_filling:
                return None
        else:
            batch = found.queues[partition_of(key, found.partitions)].filling
        if batch is None:
            return None
        delivery = batch.try_append(timestamp, key, value, headers)
        if delivery is None:
            batch.mark_full()
        return delivery

    def append_columns(
        self,
        topic: str,
        partition: int | None,
        columns: RecordColumns,
        start: int,
        stop: int,
        deliveries: Deliveries,
        now: float,
    ) -> int:
        """Append a range of records, stopping when the buffer is full.

        Args:
            topic: a topic for which :meth:`knows` returns True.
            partition: the partition number; if None, the partitioner chooses one for each record.
            columns: the records; the range must have passed :meth:`check_columns`.
            start: the index of the first record.
            stop: the index after the last record.
            deliveries: receives the deliveries of the records.
            now: the current time.

        Returns:
            The index of the first record that was not appended; less than ``stop`` if
            ``buffer.memory`` has no space for another batch, or the topic or the partition is not
            known yet.

        Raises:
            trio.ClosedResourceError: the accumulator is closed.
            LocalProtocolError: see :meth:`append`; the records before the invalid one were
                appended.
        """
        found = self._topics.get(topic)
        number = start
        has_keys = columns.keys is not None and not self._ignores_keys
        try:
            while number < stop:
                if found is not None and not self.is_blocked:
                    queue = found.sticky if found.sticky_batch is found.sticky_filling else None
                    if partition is not None:
                        queue = found.queue(partition)
                    elif has_keys:
                        queue = None  # each key chooses its own partition
                    if queue is not None and queue.filling is not None:
                        number = _fill(queue.filling, columns, number, stop, deliveries)
                        if number == stop:
                            break
                timestamp, key, value, headers = columns.row(number)
                delivery = self.append(topic, partition, timestamp, key, value, headers, now)
                deliveries.add(delivery.outcome, delivery.index, 1)
                number += 1
        except trio.WouldBlock:
            pass
        return number

    def add_encoded(
        self,
        topic: str,
        partition: int | None,
        records: EncodedRecords,
        timestamp: int,
        deliveries: Deliveries,
        now: float,
    ) -> bool:
        """Add a batch of encoded records.

        Args:
            topic: a topic for which :meth:`knows` returns True.
            partition: the partition number; if None, the partitioner chooses one for the batch.
            records: the records, which must have passed :meth:`check_encoded`.
            timestamp: the timestamp of the records, in milliseconds.
            deliveries: receives the deliveries of the records.
            now: the current time.

        Returns:
            Whether the batch was added; False if ``buffer.memory`` has no space for it, or the
            topic or the partition is not known yet.

        Raises:
            trio.ClosedResourceError, LocalProtocolError, TransactionAbortableError: see
                :meth:`append`.
        """
        if self.is_blocked:
            raise self._refusal()
        found = self._topics.get(topic)
        if found is None:
            return False
        queue = self._topics.choose(found) if partition is None else found.queue(partition)
        if queue is None:
            return False
        size = HEADER_SIZE + len(records.body)
        batch = self._new_batch(queue, size, now)
        batch.begin_with(records, timestamp)
        if not self.pool.take(size):
            return False
        self.queues.add(queue, batch)
        queue.filling = None  # the memory that it has taken holds no further records
        if partition is None:
            found.sticky_batch = batch
        deliveries.add(batch.outcome, 0, records.record_count)
        return True

    def check_encoded(self, records: EncodedRecords) -> None:
        """Check the size of a batch before any of a call's records are added.

        Raises:
            RecordTooLargeError: see :meth:`append`.
        """
        self._check_size(HEADER_SIZE + len(records.body))

    def end_columns(self, deliveries: Deliveries) -> bool:
        """Mark the last batch of each partition as full if the columns also filled earlier batches.

        The caller waits for all of these records and has no more records to add, so nothing would
        be gained if the last batches lingered.

        Returns:
            Whether any batch was marked full.
        """
        has_ended = False
        filled: set[TopicPartition] = set()
        for outcome in deliveries.outcomes:
            partition = outcome.topic_partition
            if partition in filled:
                queue = self._topics.queue(partition)
                batch = None if queue is None else queue.filling
                if batch is not None and batch.outcome is outcome:
                    batch.mark_full()
                    has_ended = True
            filled.add(partition)
        return has_ended

    def check_columns(self, columns: RecordColumns, start: int, stop: int) -> None:
        """Check a range of records before any of them is appended.

        Raises:
            TypeError, ValueError: see :meth:`.RecordColumns.check`.
            RecordTooLargeError: see :meth:`append`.
        """
        longest = columns.check(start, stop)
        limit = min(self._settings.request_bytes_max, self._settings.buffer_bytes)
        if columns.headers is not None or record_size_max(None, None, ()) + longest > limit:
            for number in range(start, stop):
                _, key, value, headers = columns.row(number)
                self._check_size(record_size_max(key, value, headers))

    def _begin_batch(
        self,
        queue: PartitionQueue,
        timestamp: int,
        key: Bytes | None,
        value: Bytes | None,
        headers: Headers,
        now: float,
    ) -> Delivery:
        size = self._reserve(key, value, headers)
        try:
            batch = self._new_batch(queue, size, now)
            delivery = batch.try_append(timestamp, key, value, headers)
        except BaseException:
            self.pool.give_back(size)
            raise
        assert delivery is not None
        self.queues.add(queue, batch)
        return delivery

    def _new_batch(self, queue: PartitionQueue, reserved: int, now: float) -> ProducerBatch:
        transaction = self._transaction
        if transaction is not None:
            transaction.add_partition(queue.topic_partition)
        batch = ProducerBatch(
            queue.topic_partition,
            self._batch_bytes,
            reserved,
            now,
            self._codec,
            self._settings.compression_level,
        )
        batch.is_transactional = transaction is not None
        return batch

    def _reserve(self, key: Bytes | None, value: Bytes | None, headers: Headers) -> int:
        """Take memory for a batch that begins with this record, and return the number of bytes."""
        size = record_size_max(key, value, headers)
        self._check_size(size)
        settings = self._settings
        size = max(size, min(settings.batch_bytes, settings.buffer_bytes))
        if not self.pool.take(size):
            raise trio.WouldBlock
        return size

    def _check_size(self, size: int) -> None:
        for limit, name in (
            (self._settings.request_bytes_max, "max.request.size"),
            (self._settings.buffer_bytes, "buffer.memory"),
        ):
            if size > limit:
                raise RecordTooLargeError(
                    f"the record is {size} bytes including overhead, which exceeds {name} ="
                    f" {limit}; send a smaller record, or raise {name}"
                )

    def withdraw_all(self, deliveries: Deliveries) -> None:
        """Withdraw the records whose batches are undrained, and mark all other failures as seen."""
        for outcome, index, count in deliveries.spans():
            batch = self._undrained_batch(outcome)
            for number in range(index, index + count):
                if batch is None:
                    abandon(outcome, number)
                else:
                    outcome.withdraw(number)
            if batch is not None:
                self._drop_if_empty(batch)

    def withdraw(self, delivery: Delivery) -> bool:
        """Withdraw a record unless its batch has been drained. Returns whether it was withdrawn."""
        batch = self._undrained_batch(delivery.outcome)
        if batch is None:
            abandon(delivery.outcome, delivery.index)
            return False
        if not delivery.outcome.withdraw(delivery.index):
            return False
        self._drop_if_empty(batch)
        return True

    def _undrained_batch(self, outcome: ProduceRequestResult) -> ProducerBatch | None:
        queue = self._topics.queue(outcome.topic_partition)
        if queue is not None:
            for batch in queue.batches:
                if batch.outcome is outcome:
                    return None if batch.is_drained else batch
        return None

    def _drop_if_empty(self, batch: ProducerBatch) -> None:
        queue = self._topics.queue(batch.topic_partition)
        if queue is not None and not batch.record_count:
            self.queues.remove(batch)
            batch.outcome.fail(withdrawn())  # a flush may wait for it
            self.queues.deallocate(batch)

    def begin_transaction(self) -> None:
        """Accept records again, now that a transaction is open."""
        self.is_blocked = self.is_closed

    def end_transaction(self) -> None:
        """Reject further appends until the next transaction."""
        self.is_blocked = True

    def _refusal(self) -> Exception:
        if self.is_closed or self._transaction is None:
            return trio.ClosedResourceError("the producer is closed")
        return self._transaction.refusal()

    def close(self) -> None:
        """Reject further appends, and make all queued batches ready immediately."""
        self.is_closed = self.is_blocked = True
        self.queues.close()


def _fill(
    batch: ProducerBatch, columns: RecordColumns, start: int, stop: int, deliveries: Deliveries
) -> int:
    """Append records until one does not fit. Returns the index of the first that does not."""
    index = batch.appended
    try:
        return batch.append_columns(columns, start, stop)
    finally:  # also for the records before one that cannot be encoded
        if batch.appended > index:
            deliveries.add(batch.outcome, index, batch.appended - index)
