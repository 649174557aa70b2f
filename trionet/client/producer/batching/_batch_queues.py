"""The batches of all partitions, from creation to deallocation.

This is the half of Kafka's RecordAccumulator that the sender uses: readiness, draining, retries,
expiry and flushes. No function waits or performs I/O. ``now`` is always the time on the event
loop's clock, in seconds.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ....protocol.records._batch import HEADER_SIZE
from ..._topic_partition import TopicPartition
from ...network._cluster import NO_LEADER, Cluster
from .._delivery import ProduceRequestResult
from .._settings import ProducerSettings
from ._batch import ProducerBatch
from ._buffer_pool import BufferPool
from ._topic_queues import PartitionQueue, ProducerTopics


class ReadyCheck(NamedTuple):
    """The nodes with batches to send, and the time of the next check.

    Attributes:
        nodes: the ids of the leaders of partitions with ready batches.
        next_check_at: when the next batch becomes ready, if nothing else happens; ``math.inf`` for
            never.
        unknown_leaders: the topics with batches for a partition whose leader is not known.
    """

    nodes: set[int]
    next_check_at: float
    unknown_leaders: set[str]


class Sequencing(Protocol):
    """The sequence numbers of batches, which let leaders detect duplicates and gaps."""

    def may_drain(self, batch: ProducerBatch, leader_epoch: int, now: float) -> bool:
        """Return whether the first batch of a partition may be sent to its leader now."""

    def passes_over(self, batch: ProducerBatch) -> bool:
        """Return whether the following batches are sent before this batch."""

    def assign(self, batch: ProducerBatch) -> None:
        """Assign a sequence number to a batch that is about to be sent, unless it has one."""


class BatchQueues:
    """The batches of all partitions, and the memory they hold.

    Each method handles an event in the life of a batch. The methods maintain two indexes: the
    queues with undrained batches, and the incomplete batches.

    Args:
        settings: the settings of the producer.
        rng: jitters backoffs and chooses partitions.
        sequencing: assigns sequence numbers to batches; None without idempotence.

    Attributes:
        pool: the memory that batches occupy.
        topics: the queues by topic, and the leaders of their partitions.
    """

    def __init__(
        self,
        settings: ProducerSettings,
        rng: random.Random,
        sequencing: Sequencing | None = None,
    ) -> None:
        self.pool: BufferPool = BufferPool(settings.buffer_bytes)
        self._is_closed = False
        self._settings = settings
        self._rng = rng
        self._sequencing = sequencing
        self.topics: ProducerTopics = ProducerTopics(
            rng,
            settings.batch_bytes,
            is_adaptive=settings.adaptive_partitioning,
            availability_timeout_seconds=settings.partitioner_availability_timeout_seconds,
        )
        self._undrained: dict[PartitionQueue, None] = {}
        self._incomplete: dict[ProducerBatch, None] = {}
        self._flushes = 0

    # Draining.

    def ready(self, cluster: Cluster, now: float) -> ReadyCheck:
        """Return the leaders of partitions with a batch that is ready to be sent.

        A partition is ready if it is not muted, its next batch is not backing off, and at least one
        of these is true: that batch is full or a retry, another batch is queued as well,
        ``linger.ms`` has passed, the memory is exhausted, a flush is in progress, or the
        accumulator is closed.
        """
        self.topics.update(cluster)
        nodes: set[int] = set()
        unknown: set[str] = set()
        next_check_at = math.inf
        sends_all = self._sends_all
        for queue in self._undrained:
            leader = queue.leader
            if leader == NO_LEADER:
                unknown.add(queue.topic_partition.topic)
            elif not queue.is_muted and (leader not in nodes or queue.batches[0].attempts):
                # Other batches are sent with the first one to their leader, but not a retry.
                at = self._sendable_at(queue, now, sends_all=sends_all)
                if at <= now:
                    nodes.add(leader)
                else:
                    next_check_at = min(next_check_at, at)
        return ReadyCheck(nodes, next_check_at, unknown)

    def next_of(self, partition: TopicPartition, now: float) -> tuple[int, float]:
        """Return the leader of a partition, and when the next batch of the partition is ready.

        This is the equivalent of :meth:`ready` for a single partition. The time is ``math.inf`` if
        the partition has no batch, or is muted.
        """
        queue = self.topics.queue(partition)
        if queue is None or not queue.batches or queue.is_muted:
            return NO_LEADER, math.inf
        return queue.leader, self._sendable_at(queue, now, sends_all=self._sends_all)

    @property
    def _sends_all(self) -> bool:
        return self.pool.is_exhausted or self._is_closed or self._flushes > 0

    def _sendable_at(self, queue: PartitionQueue, now: float, *, sends_all: bool) -> float:
        """Return when the next batch of a queue becomes ready, if nothing else happens."""
        batch = self._next_in(queue)
        if queue.is_backing_off(batch, now):
            return batch.retry_at
        if sends_all or batch.is_drained or batch.is_full or len(queue.batches) > 1:
            return now
        return batch.created_at + self._settings.linger_seconds

    def drain(
        self, cluster: Cluster, node_ids: Iterable[int], bytes_max: int, now: float
    ) -> dict[int, list[ProducerBatch]]:
        """Remove and return batches for some nodes, at most one per partition, ready or not.

        The partitions of a node take turns, so that no partition starves (KAFKA-13834).

        Args:
            cluster: provides the partition leaders.
            node_ids: the nodes that can accept a request now.
            bytes_max: the maximum total size per node, before compression; a single batch may be
                larger.
            now: the current time.

        Returns:
            The batches by node id; an empty list for a node without batches.
        """
        self.topics.update(cluster)
        batches: dict[int, list[ProducerBatch]] = {node_id: [] for node_id in node_ids}
        sizes = dict.fromkeys(batches, 0)
        for queue in list(self._undrained):
            taken = batches.get(queue.leader)
            if taken is None or queue.is_muted:
                continue
            batch = self._next_in(queue)
            if queue.is_backing_off(batch, now):
                continue
            if taken and sizes[queue.leader] + batch.size > bytes_max:
                # Later, smaller batches wait as well; sending them first could starve this one.
                sizes[queue.leader] = bytes_max
                continue
            if self._sequencing is not None and not self._sequencing.may_drain(
                batch, queue.leader_epoch, now
            ):
                continue
            if batch is queue.batches[0]:
                queue.take()
            else:
                queue.remove(batch)
            # A drained partition moves to the end, so that no partition is skipped twice.
            del self._undrained[queue]
            if queue.batches:
                self._undrained[queue] = None
            batch.drain(now)
            batch.leader_epoch = queue.leader_epoch
            if self._sequencing is not None:
                self._sequencing.assign(batch)
            sizes[queue.leader] += batch.size
            taken.append(batch)
        return batches

    def _next_in(self, queue: PartitionQueue) -> ProducerBatch:
        first = queue.batches[0]
        if first.attempts and self._sequencing is not None:
            for batch in queue.batches:
                if not self._sequencing.passes_over(batch):
                    return batch
        return first

    def add(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Queue a new batch, and make it the open batch of its partition."""
        queue.add(batch)
        self._undrained[queue] = None
        self._incomplete[batch] = None

    # Retries, expiry and deallocation.

    def reenqueue(self, batch: ProducerBatch, now: float) -> None:
        """Queue a batch for a retry after ``retry.backoff.ms``, which grows with each attempt."""
        batch.attempts += 1
        batch.retry_at = now + self._settings.retry.seconds(batch.attempts, self._rng)
        self._put_back(batch)

    def _put_back(self, batch: ProducerBatch) -> None:
        queue = self.topics.queue(batch.topic_partition)
        assert queue is not None  # it was drained from there
        queue.put_back(batch)
        self._undrained[queue] = None

    def split_and_reenqueue(self, batch: ProducerBatch, now: float) -> list[ProducerBatch]:
        """Split a batch that was too large, and queue the smaller batches (KIP-126).

        The new batches replace the original batch in the queue and in its deliveries. The caller
        must still pass the original batch to :meth:`deallocate`.

        Args:
            batch: a batch with several records.
            now: the current time.

        Returns:
            The smaller batches, at least two, in order.
        """
        half = HEADER_SIZE + (batch.size - HEADER_SIZE) // 2
        parts = batch.split(min(self._settings.batch_bytes, half))
        for part in reversed(parts):
            part.retry_at = now
            self._incomplete[part] = None
            self._put_back(part)
        return parts

    def expired(self, now: float) -> list[ProducerBatch]:
        """Remove and return the queued batches that have exceeded ``delivery.timeout.ms``."""
        # The same sum as in next_expiry: if rounding made them differ, the sender would spin.
        seconds = self._settings.delivery_timeout_seconds
        batches = [
            batch
            for queue in self._undrained
            for batch in queue.batches
            if batch.created_at + seconds <= now
        ]
        for batch in batches:
            queue = self.topics.queue(batch.topic_partition)
            assert queue is not None
            self._remove(queue, batch)
        return batches

    def remove(self, batch: ProducerBatch) -> None:
        """Remove a queued batch that no longer needs to be sent, without deallocating it."""
        queue = self.topics.queue(batch.topic_partition)
        assert queue is not None  # it waits there
        self._remove(queue, batch)

    def _remove(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        queue.remove(batch)
        if not queue.batches:
            del self._undrained[queue]

    @property
    def next_expiry(self) -> float:
        """The time when the next queued batch expires; ``math.inf`` for never."""
        oldest = math.inf
        for queue in self._undrained:  # runs with each record: a generator takes longer
            oldest = min(oldest, queue.batches[0].created_at)
        return oldest + self._settings.delivery_timeout_seconds

    def deallocate(self, batch: ProducerBatch) -> None:
        """Free the memory of a batch. A second call is a no-op.

        The request that contains the batch must be complete, since memory that is still being sent
        must not be reused (KAFKA-17862).
        """
        self._incomplete.pop(batch, None)
        self.topics.forget(batch)
        if batch.reserved:
            self.pool.give_back(batch.reserved)
            batch.reserved = 0

    # Flushing and closing.

    @property
    def has_undrained(self) -> bool:
        """Whether any batch is queued."""
        return bool(self._undrained)

    @property
    def has_incomplete(self) -> bool:
        """Whether any batch is queued or in flight."""
        return bool(self._incomplete)

    def begin_flush(self) -> list[ProduceRequestResult]:
        """Make every batch ready immediately until :meth:`end_flush`.

        Returns:
            The outcomes of all incomplete batches.
        """
        self._flushes += 1
        return [batch.outcome for batch in self._incomplete]

    def end_flush(self) -> None:
        """End a flush, whether it has completed or was cancelled."""
        self._flushes -= 1

    def abort_incomplete(
        self, error: Exception, under_way: Exception | None = None
    ) -> list[ProducerBatch]:
        """Fail all incomplete batches, queued or in flight, and free their memory.

        Args:
            error: the error for the batches that no leader can have appended.
            under_way: the error for all other batches; defaults to ``error``.

        Returns:
            The batches that this call has failed; excludes those that already had an outcome.
        """
        waiting = {batch for queue in self._undrained for batch in queue.batches}
        for batch in self._incomplete:
            if batch not in waiting:
                batch.may_be_written = True
        return self._abort(list(self._incomplete), error, under_way or error)

    def abort_undrained(self, error: Exception) -> list[ProducerBatch]:
        """Fail and return all queued batches. Batches in flight are not affected."""
        batches = [batch for queue in self._undrained for batch in queue.batches]
        return self._abort(batches, error, error)

    def _abort(
        self, batches: list[ProducerBatch], error: Exception, under_way: Exception
    ) -> list[ProducerBatch]:
        for queue in self._undrained:
            queue.clear()
        self._undrained.clear()
        decided = []
        for batch in batches:
            if batch.outcome.fail(batch.failure(under_way if batch.may_be_written else error)):
                decided.append(batch)
            self.deallocate(batch)
        return decided

    def close(self) -> None:
        """Make all batches ready immediately, since no more records will follow."""
        self._is_closed = True
