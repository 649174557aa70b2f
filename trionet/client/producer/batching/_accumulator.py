"""Records that wait to be sent, in batches for each partition (Kafka: RecordAccumulator).

Pure: ``now`` is in seconds of the loop's clock everywhere, and nothing here waits. The producer
appends, the sender asks who is ready, drains, and tells what became of each batch.
"""

# Compiled by mypyc.

from __future__ import annotations

import random

import trio

from ....errors import RecordTooLargeError
from ....protocol.records._batch import Bytes
from ....protocol.records._types import Headers
from ..._topic_partition import TopicPartition
from ..delivery._deliveries import Deliveries
from ..delivery._delivery import Delivery, abandon, withdrawn
from ..delivery._produce_request_result import BatchOutcome
from ._accumulator_settings import AccumulatorSettings
from ._batch import ProducerBatch, record_size_max
from ._batch_queues import BatchQueues, ReadyCheck, Sequencing
from ._partition_queue import PartitionQueue
from ._partitioner import partition_of
from ._record_columns import RecordColumns

__all__ = ["ReadyCheck", "RecordAccumulator", "Sequencing"]


class RecordAccumulator(BatchQueues):
    """See the module; what is sent of it is in :class:`.BatchQueues`.

    Args:
        settings: how records are gathered.
        chance: blurs waits and chooses partitions.
        sequencing: numbers the batches; None without idempotence.
    """

    def __init__(
        self,
        settings: AccumulatorSettings,
        chance: random.Random,
        sequencing: Sequencing | None = None,
    ) -> None:
        super().__init__(settings, chance, sequencing)
        self._batch_bytes = min(settings.batch_bytes, settings.request_bytes_max)
        self._ignores_keys = settings.ignores_keys

    def knows(self, topic: str, partition: int | None = None) -> bool:
        """Whether something can be appended to a topic, or to one partition of it."""
        found = self._topics.get(topic)
        return found is not None and (partition is None or found.queue(partition) is not None)

    def key_partitions(self, topic: str) -> int:
        """How many partitions the keys of a topic's records choose from.

        Args:
            topic: one that :meth:`knows` says yes to.

        Returns:
            0 where they choose none (``partitioner.ignore.keys``).
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
        """Add a record to the batch that its partition fills.

        Args:
            topic: one that :meth:`knows` says yes to.
            partition: its number; None lets the key decide, or without a key the load.
            timestamp: in milliseconds.
            key: None for none.
            value: None for null.
            headers: names and values.
            now: the time.

        Raises:
            trio.WouldBlock: ``buffer.memory`` has no room for another batch, or the topic or the
                partition is not known (yet).
            trio.ClosedResourceError: the accumulator is closed.
            RecordTooLargeError: the record is larger than ``max.request.size``, or than all of
                ``buffer.memory``.
            LocalProtocolError: the timestamp is beyond 64 bits, or too far from the batch's first.
            TypeError: the key or the value is neither bytes nor None.
        """
        delivery = self.try_append(topic, partition, timestamp, key, value, headers)
        if delivery is not None:
            return delivery
        found = self._topics.get(topic)
        if found is None or self.is_closed:
            raise self._why_not()
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
        """Add a record to the batch that its partition fills, as :meth:`append`.

        That is what happens to nearly every record, and needs no clock.

        Returns:
            Its delivery; None if that takes another batch, or cannot be done.

        Raises:
            LocalProtocolError, TypeError: as :meth:`append`.
        """
        found = self._topics.get(topic)
        if found is None or self.is_closed:
            return None
        if partition is not None:
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
        """Add some records of columns, as far as there is room for them.

        Args:
            topic: one that :meth:`knows` says yes to.
            partition: its number; None lets the keys decide, or without a key the load.
            columns: the records, of which these passed :meth:`check_columns`.
            start: the number of the first one.
            stop: the number of the one after the last.
            deliveries: take theirs.
            now: the time.

        Returns:
            The number of the first one that was not added; less than ``stop`` if ``buffer.memory``
            has no room for another batch, or the topic or the partition is not known (yet).

        Raises:
            trio.ClosedResourceError: the accumulator is closed.
            LocalProtocolError: as :meth:`append`; the records before that one were added.
        """
        found = self._topics.get(topic)
        number = start
        has_keys = columns.keys is not None and not self._ignores_keys
        try:
            while number < stop:
                if found is not None and not self.is_closed:
                    queue = found.sticky if found.sticky_batch is found.sticky_filling else None
                    if partition is not None:
                        queue = found.queue(partition)
                    elif has_keys:
                        queue = None  # each goes its own way
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

    def end_columns(self, deliveries: Deliveries) -> bool:
        """All records of columns were appended: where they fill whole batches nothing lingers.

        Whoever sends so many at once needs no company for the last ones, and waits for all.

        Returns:
            Whether there is a batch to be sent that would have lingered.
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
        """Look at some records before any of them is appended.

        Raises:
            TypeError: a key or a value is neither bytes nor None; says which.
            RecordTooLargeError: as :meth:`append`.
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
        settings = self._settings
        try:
            batch = ProducerBatch(
                queue.topic_partition,
                self._batch_bytes,
                size,
                now,
                settings.codec,
                settings.level,
            )
            delivery = batch.try_append(timestamp, key, value, headers)
        except BaseException:
            self.pool.give_back(size)
            raise
        assert delivery is not None
        queue.add(batch)
        self._undrained[queue] = None
        self._incomplete[batch] = None
        return delivery

    def _reserve(self, key: Bytes | None, value: Bytes | None, headers: Headers) -> int:
        """Take the memory of a batch that begins with a record; how much it is."""
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
                    f"a record of {size} bytes, with all that belongs to it, is larger than"
                    f" {name} = {limit}; send less, or raise that"
                )

    def _why_not(self) -> Exception:
        if self.is_closed:
            return trio.ClosedResourceError("the producer is closed")
        return trio.WouldBlock()

    def withdraw_all(self, deliveries: Deliveries) -> None:
        """Take back the records whose batches were not drained yet."""
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
        """Take a record back whose batch was not drained yet; whether that was so."""
        batch = self._undrained_batch(delivery.outcome)
        if batch is None:
            abandon(delivery.outcome, delivery.index)
            return False
        if not delivery.outcome.withdraw(delivery.index):
            return False
        self._drop_if_empty(batch)
        return True

    def _undrained_batch(self, outcome: BatchOutcome) -> ProducerBatch | None:
        queue = self._topics.queue(outcome.topic_partition)
        if queue is not None:
            for batch in queue.batches:
                if batch.outcome is outcome:
                    return None if batch.is_drained else batch
        return None

    def _drop_if_empty(self, batch: ProducerBatch) -> None:
        queue = self._topics.queue(batch.topic_partition)
        if queue is not None and not batch.record_count:
            self._remove(queue, batch)
            batch.fail(withdrawn())  # a flush may wait for it
            self.deallocate(batch)


def _fill(
    batch: ProducerBatch, columns: RecordColumns, start: int, stop: int, deliveries: Deliveries
) -> int:
    """Add records to a batch as long as they fit; the number of the first that does not."""
    index = batch.appended
    try:
        return batch.append_columns(columns, start, stop)
    finally:  # of those before one that cannot be written, too
        if batch.appended > index:
            deliveries.add(batch.outcome, index, batch.appended - index)
