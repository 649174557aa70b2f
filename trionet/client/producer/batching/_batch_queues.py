"""The batches of all partitions, from their beginning to their end; see :mod:`._accumulator`."""

# Compiled by mypyc.

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ....protocol.records._batch import HEADER_SIZE
from ..._topic_partition import TopicPartition
from ...metadata._cluster import NO_LEADER, Cluster
from ..delivery._produce_request_result import BatchOutcome
from ._accumulator_settings import AccumulatorSettings
from ._batch import ProducerBatch
from ._buffer_pool import BufferPool
from ._partition_queue import PartitionQueue
from ._topic_queues import ProducerTopics


class ReadyCheck(NamedTuple):
    """Who could be sent something.

    Attributes:
        nodes: ids of the nodes that lead partitions with something to send.
        next_check_at: when that may be different by the passing of time alone; ``math.inf`` for
            never.
        unknown_leaders: topics with something to send to a partition that nobody leads.
    """

    nodes: set[int]
    next_check_at: float
    unknown_leaders: set[str]


class Sequencing(Protocol):
    """What numbers batches, so that their leaders know duplicates and gaps."""

    def may_drain(self, batch: ProducerBatch, leader_epoch: int, now: float) -> bool:
        """Whether the first batch of a partition may be sent to its leader now."""

    def passes_over(self, batch: ProducerBatch) -> bool:
        """Whether what is behind a batch is sent before it."""

    def assign(self, batch: ProducerBatch) -> None:
        """Number a batch that is about to be sent; one that was sent before keeps its number."""


class BatchQueues:
    """See the module.

    Args:
        settings: how records are gathered.
        chance: blurs waits and chooses partitions.
        sequencing: numbers the batches; None without idempotence.

    Attributes:
        pool: the memory that batches take.
        is_closed: nothing is appended any more.
    """

    def __init__(
        self,
        settings: AccumulatorSettings,
        chance: random.Random,
        sequencing: Sequencing | None = None,
    ) -> None:
        self.pool = BufferPool(settings.buffer_bytes)
        self.is_closed = False
        self._settings = settings
        self._chance = chance
        self._sequencing = sequencing
        self._topics = ProducerTopics(
            chance,
            settings.batch_bytes,
            is_adaptive=settings.is_adaptive,
            availability_seconds=settings.availability_seconds,
        )
        self._undrained: dict[PartitionQueue, None] = {}
        self._incomplete: dict[ProducerBatch, None] = {}
        self._flushes = 0

    # What is known of the cluster.

    def update(self, cluster: Cluster) -> None:
        """Take note of who leads what; cheap if it is the same snapshot as before."""
        self._topics.update(cluster)

    def update_node_latency(self, node_id: int, now: float, *, can_drain: bool) -> None:
        """There is something to send to a node; whether it can take it now (KIP-794)."""
        self._topics.update_node_latency(node_id, now, can_drain=can_drain)

    # Batches go.

    def ready(self, cluster: Cluster, now: float) -> ReadyCheck:
        """Who could be sent something.

        A partition is ready if its first batch does not wait for a retry, the partition is not
        muted, and one of these holds: a batch is full, ``linger.ms`` is over, the memory is
        exhausted, somebody flushes, or the accumulator is closed.
        """
        self._topics.update(cluster)
        nodes: set[int] = set()
        unknown: set[str] = set()
        next_check_at = math.inf
        sends_all = self._sends_all
        for queue in self._undrained:
            leader = queue.leader
            if leader == NO_LEADER:
                unknown.add(queue.topic_partition.topic)
            elif not queue.is_muted and leader not in nodes:
                at = self._sendable_at(queue, now, sends_all=sends_all)
                if at <= now:
                    nodes.add(leader)
                else:
                    next_check_at = min(next_check_at, at)
        return ReadyCheck(nodes, next_check_at, unknown)

    def next_of(self, partition: TopicPartition, now: float) -> tuple[int, float]:
        """Of one partition: the id of its leader, and when it could be sent something.

        What :meth:`ready` tells of all; ``math.inf`` if that is not known.
        """
        queue = self._topics.queue(partition)
        if queue is None or not queue.batches or queue.is_muted:
            return NO_LEADER, math.inf
        return queue.leader, self._sendable_at(queue, now, sends_all=self._sends_all)

    @property
    def _sends_all(self) -> bool:
        return self.pool.is_exhausted or self.is_closed or self._flushes > 0

    def _sendable_at(self, queue: PartitionQueue, now: float, *, sends_all: bool) -> float:
        """When a queue's next batch may go, if nothing else happens."""
        batch = self._next_in(queue)
        if queue.is_backing_off(batch, now):
            return batch.retry_at
        if sends_all or batch.is_drained or batch.is_full or len(queue.batches) > 1:
            return now
        return batch.created_at + self._settings.linger_seconds

    def drain(
        self, cluster: Cluster, node_ids: Iterable[int], bytes_max: int, now: float
    ) -> dict[int, list[ProducerBatch]]:
        """Take batches for some nodes, one of each partition, whether it is ready or not.

        The partitions of a node come in turn, so that none starves (KAFKA-13834).

        Args:
            cluster: who leads what.
            node_ids: who can take a request now.
            bytes_max: the most for each node, before compression; a single batch may be larger.
            now: the time.

        Returns:
            The batches by node; a node without any has an empty list.
        """
        self._topics.update(cluster)
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
                sizes[queue.leader] = bytes_max  # the next ones wait for their turn, too
                continue
            if self._sequencing is not None and not self._sequencing.may_drain(
                batch, queue.leader_epoch, now
            ):
                continue
            if batch is queue.batches[0]:
                queue.take()
            else:
                queue.remove(batch)
            # What was served goes to the end: nobody is passed over twice.
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

    def mute(self, partition: TopicPartition) -> None:
        """Send nothing to a partition until it is unmuted (``max.in.flight`` of 1)."""
        queue = self._topics.queue(partition)
        if queue is not None:
            queue.is_muted = True

    def unmute(self, partition: TopicPartition) -> None:
        """Let a partition be sent to again."""
        queue = self._topics.queue(partition)
        if queue is not None:
            queue.is_muted = False

    # What became of them.

    def reenqueue(self, batch: ProducerBatch, now: float) -> None:
        """Send a batch again, after ``retry.backoff.ms``, longer with each attempt."""
        batch.attempts += 1
        batch.retry_at = now + self._settings.retry.seconds(batch.attempts, self._chance)
        self._put_back(batch)

    def _put_back(self, batch: ProducerBatch) -> None:
        queue = self._topics.queue(batch.topic_partition)
        assert queue is not None  # it was drained from there
        queue.put_back(batch)
        self._undrained[queue] = None

    def split_and_reenqueue(self, batch: ProducerBatch, now: float) -> list[ProducerBatch]:
        """Send a batch again in smaller ones, because it was too large (KIP-126).

        The batch itself is done with: its place is theirs, its deliveries follow them. It is still
        to be given to :meth:`deallocate`.

        Args:
            batch: one with several records.
            now: the time.

        Returns:
            The smaller ones, two at least, in order.
        """
        half = HEADER_SIZE + (batch.size - HEADER_SIZE) // 2
        parts = batch.split(min(self._settings.batch_bytes, half))
        for part in reversed(parts):
            part.retry_at = now
            self._incomplete[part] = None
            self._put_back(part)
        return parts

    def expired(self, now: float) -> list[ProducerBatch]:
        """Take out what waits here and has passed ``delivery.timeout.ms``; muted or not."""
        # The same sum as below, or a last bit would have the sender look again and again.
        seconds = self._settings.delivery_seconds
        batches = [
            batch
            for queue in self._undrained
            for batch in queue.batches
            if batch.created_at + seconds <= now
        ]
        for batch in batches:
            queue = self._topics.queue(batch.topic_partition)
            assert queue is not None
            self._remove(queue, batch)
        return batches

    def remove(self, batch: ProducerBatch) -> None:
        """Take out a batch that waits to be sent again, and need not be; it is not deallocated."""
        queue = self._topics.queue(batch.topic_partition)
        assert queue is not None  # it waits there
        self._remove(queue, batch)

    def _remove(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        queue.remove(batch)
        if not queue.batches:
            del self._undrained[queue]

    @property
    def next_expiry(self) -> float:
        """When the next batch that waits here expires; ``math.inf`` for never."""
        oldest = math.inf
        for queue in self._undrained:  # asked for with each record: a generator takes longer
            oldest = min(oldest, queue.batches[0].created_at)
        return oldest + self._settings.delivery_seconds

    def deallocate(self, batch: ProducerBatch) -> None:
        """A batch and its request are over: its memory is free; a second time changes nothing.

        Not before the request is: what it is written from must not become another's (KAFKA-17862).
        """
        self._incomplete.pop(batch, None)
        if batch.reserved:
            self.pool.give_back(batch.reserved)
            batch.reserved = 0

    # The end.

    @property
    def has_undrained(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._undrained)

    @property
    def has_incomplete(self) -> bool:
        """Whether a batch was not deallocated yet."""
        return bool(self._incomplete)

    def begin_flush(self) -> list[BatchOutcome]:
        """From now to :meth:`end_flush` everything is sent at once.

        Returns:
            The outcomes of all batches there are; to be waited for with :func:`.until_done`.
        """
        self._flushes += 1
        return [batch.outcome for batch in self._incomplete]

    def end_flush(self) -> None:
        """A flush has ended, whether it was waited for or not."""
        self._flushes -= 1

    def abort_incomplete(
        self, error: Exception, under_way: Exception | None = None
    ) -> list[ProducerBatch]:
        """Fail every batch there is, sent or not, and free its memory.

        Those are returned that this decides: others had failed before, and were still under way.

        Args:
            error: why.
            under_way: why, for those that leaders may have; the same without.
        """
        waiting = {batch for queue in self._undrained for batch in queue.batches}
        for batch in self._incomplete:
            if batch not in waiting:
                batch.may_be_written = True
        return self._abort(list(self._incomplete), error, under_way or error)

    def abort_undrained(self, error: Exception) -> list[ProducerBatch]:
        """Fail every batch that waits here, and say which; those that are on their way live on."""
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
            if batch.fail(batch.failure(under_way if batch.may_be_written else error)):
                decided.append(batch)
            self.deallocate(batch)
        return decided

    def close(self) -> None:
        """Append nothing any more; what is there is sent at once."""
        self.is_closed = True
