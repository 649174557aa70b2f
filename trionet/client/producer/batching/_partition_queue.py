"""The batch queues of a topic's partitions (Kafka: RecordAccumulator.TopicInfo)."""

# Compiled by mypyc.

from __future__ import annotations

from collections import deque

from ..._topic_partition import TopicPartition
from ...network._cluster import NO_LEADER, TopicMetadata
from ._batch import NONE, SEQUENCE_MAX, ProducerBatch


class PartitionQueue:
    """The queued batches of one partition.

    Attributes:
        topic_partition: the partition.
        batches: the batches, oldest first; the last one may be open.
        filling: the open batch, to which records are appended; None if there is none.
        leader: the node id of the partition leader; -1 if it is not known.
        leader_epoch: the leader epoch; -1 if the brokers do not report it.
        is_muted: whether no batch may be sent until a response has arrived (``max.in.flight`` of
            1).
    """

    __slots__ = ("batches", "filling", "is_muted", "leader", "leader_epoch", "topic_partition")

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition: TopicPartition = topic_partition
        self.batches: deque[ProducerBatch] = deque()
        self.filling: ProducerBatch | None = None
        self.leader: int = NO_LEADER
        self.leader_epoch: int = -1
        self.is_muted: bool = False

    def add(self, batch: ProducerBatch) -> None:
        """Append a new batch and make it the open batch."""
        if self.filling is not None:
            self.filling.mark_full()
        self.batches.append(batch)
        self.filling = batch

    def put_back(self, batch: ProducerBatch) -> None:
        """Insert a batch to be retried ahead of the new batches.

        Batches with sequence numbers are kept in sequence order (Kafka: insertInSequenceOrder).
        """
        place = 0
        if batch.base_sequence != NONE:
            for other in self.batches:
                if other.base_sequence == NONE or _is_before(batch, other):
                    break
                place += 1
        self.batches.insert(place, batch)

    def take(self) -> ProducerBatch:
        """Remove and return the oldest batch, which is no longer open."""
        batch = self.batches.popleft()
        if batch is self.filling:
            self.filling = None
        return batch

    def remove(self, batch: ProducerBatch) -> None:
        """Remove a batch from any position."""
        self.batches.remove(batch)
        if batch is self.filling:
            self.filling = None

    def clear(self) -> None:
        """Remove all batches."""
        self.batches.clear()
        self.filling = None

    def is_backing_off(self, batch: ProducerBatch, now: float) -> bool:
        """Return whether a retry is backing off; a newer leader ends the backoff (KAFKA-15415)."""
        return now < batch.retry_at and not (batch.leader_epoch < self.leader_epoch)


def _is_before(batch: ProducerBatch, other: ProducerBatch) -> bool:
    """Return whether one batch's sequence number precedes another's, allowing for wraparound."""
    ahead = (other.base_sequence - batch.base_sequence) & SEQUENCE_MAX
    return 0 < ahead <= SEQUENCE_MAX // 2


class TopicQueues:
    """The batch queues of one topic's partitions.

    Attributes:
        name: the name of the topic.
        queues: the queues by partition number, including those of deleted partitions.
        partitions: the number of partitions; 0 if it is not known.
        sticky: the queue of the sticky partition, to which records without a key are appended.
        sticky_batch: the batch to which these records are appended; None before it begins.
        sticky_bytes: the total size of the preceding batches since the partition was chosen.
    """

    __slots__ = (
        "name",
        "partitions",
        "queues",
        "sticky",
        "sticky_batch",
        "sticky_bytes",
    )

    def __init__(self, name: str) -> None:
        self.name: str = name
        self.queues: list[PartitionQueue] = []
        self.partitions: int = 0
        self.sticky: PartitionQueue | None = None
        self.sticky_batch: ProducerBatch | None = None
        self.sticky_bytes: int = 0

    def queue(self, partition: int) -> PartitionQueue | None:
        """Return the queue of a partition; None if the partition is not known."""
        return self.queues[partition] if 0 <= partition < self.partitions else None

    @property
    def sticky_filling(self) -> ProducerBatch | None:
        """The open batch of the sticky partition, which may also contain records with a key."""
        return None if self.sticky is None else self.sticky.filling

    def update(self, topic: TopicMetadata | None, nodes: frozenset[int]) -> None:
        """Update the partitions and leaders from new metadata."""
        known = {} if topic is None else topic.partitions
        self.partitions = max(known, default=-1) + 1
        if self.sticky is not None and self.queue(self.sticky.topic_partition.partition) is None:
            self.sticky = self.sticky_batch = None
        while len(self.queues) < self.partitions:
            self.queues.append(PartitionQueue(TopicPartition(self.name, len(self.queues))))
        for queue in self.queues:
            found = known.get(queue.topic_partition.partition)
            if found is None:
                queue.leader = NO_LEADER
                continue
            queue.leader = found.leader if found.leader in nodes else NO_LEADER
            queue.leader_epoch = found.leader_epoch
