"""The batches of one partition that wait to be sent, and of one topic.

(Kafka: RecordAccumulator.TopicInfo.)
"""

# Compiled by mypyc.

from __future__ import annotations

from collections import deque

from ..._topic_partition import TopicPartition
from ...metadata._cluster import NO_LEADER, TopicMetadata
from ._batch import NONE, SEQUENCE_MAX, ProducerBatch


class PartitionQueue:
    """See the module.

    Attributes:
        topic_partition: whose batches they are.
        batches: the oldest first; the last may still be filled.
        filling: the last one while records may be added to it.
        leader: the id of the node that leads the partition; -1 for none that is known.
        leader_epoch: counts its leaders; -1 where the brokers do not tell.
        is_muted: nothing may be sent until an answer has come (``max.in.flight`` of 1).
    """

    __slots__ = ("batches", "filling", "is_muted", "leader", "leader_epoch", "topic_partition")

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.batches: deque[ProducerBatch] = deque()
        self.filling: ProducerBatch | None = None
        self.leader = NO_LEADER
        self.leader_epoch = -1
        self.is_muted = False

    def add(self, batch: ProducerBatch) -> None:
        """A new batch takes the records from now on."""
        if self.filling is not None:
            self.filling.mark_full()
        self.batches.append(batch)
        self.filling = batch

    def put_back(self, batch: ProducerBatch) -> None:
        """A batch is to be sent again, before those that are new.

        With numbers, it takes the place that its number has (Kafka: insertInSequenceOrder).
        """
        place = 0
        if batch.base_sequence != NONE:
            for other in self.batches:
                if other.base_sequence == NONE or _is_before(batch, other):
                    break
                place += 1
        self.batches.insert(place, batch)

    def take(self) -> ProducerBatch:
        """The oldest batch, which is not filled any more."""
        batch = self.batches.popleft()
        if batch is self.filling:
            self.filling = None
        return batch

    def remove(self, batch: ProducerBatch) -> None:
        """Take out a batch, wherever it stands."""
        self.batches.remove(batch)
        if batch is self.filling:
            self.filling = None

    def clear(self) -> None:
        """Take out all batches."""
        self.batches.clear()
        self.filling = None

    def is_backing_off(self, batch: ProducerBatch, now: float) -> bool:
        """Whether a batch that failed has to wait still; not for a newer leader (KAFKA-15415)."""
        return now < batch.retry_at and not (batch.leader_epoch < self.leader_epoch)


def _is_before(batch: ProducerBatch, other: ProducerBatch) -> bool:
    """Whether a batch's number comes before another's, on the circle that they run on."""
    ahead = (other.base_sequence - batch.base_sequence) & SEQUENCE_MAX
    return 0 < ahead <= SEQUENCE_MAX // 2


class TopicQueues:
    """The queues of one topic's partitions.

    Attributes:
        name: the topic's.
        queues: by partition; one that vanished stays as long as something waits for it.
        partitions: how many there are; 0 while that is not known.
        sticky: where records without a key go at present.
        sticky_batch: the batch there that they fill; None if there is none yet.
        sticky_bytes: how much the batches before it got there.
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
        self.name = name
        self.queues: list[PartitionQueue] = []
        self.partitions = 0
        self.sticky: PartitionQueue | None = None
        self.sticky_batch: ProducerBatch | None = None
        self.sticky_bytes = 0

    def queue(self, partition: int) -> PartitionQueue | None:
        """A partition's queue; None if there is no such partition, as far as is known."""
        return self.queues[partition] if 0 <= partition < self.partitions else None

    @property
    def sticky_filling(self) -> ProducerBatch | None:
        """The batch that is filled where records without a key go; others may have begun it."""
        return None if self.sticky is None else self.sticky.filling

    def update(self, topic: TopicMetadata | None, nodes: frozenset[int]) -> None:
        """Who leads what now."""
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
