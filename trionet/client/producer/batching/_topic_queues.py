"""The batch queues of partitions and topics, and the partitioner that chooses among them.

(Kafka: RecordAccumulator.TopicInfo, BuiltInPartitioner and NodeLatencyStats, KIP-794.) Keys are
mapped to partitions by murmur2, as in Kafka's Java client. Records without a key use a sticky
partition (KIP-480, KIP-794). To fill batches, the sticky partition is kept until it has received
``batch.size`` bytes, and changes only between two batches (KAFKA-14156). The next partition is
chosen at random. Adaptive partitioning prefers partitions with shorter queues, since their leaders
are probably faster.
"""

# Compiled by mypyc.

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final

from ....protocol.records._batch import Bytes
from ....protocol.records._types import as_bytes
from ..._topic_partition import TopicPartition
from ...network._cluster import NO_LEADER, Cluster, TopicMetadata
from ._batch import NONE, SEQUENCE_MAX, ProducerBatch

if TYPE_CHECKING:
    from mypy_extensions import i64


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
        partitions: the number of partitions; 0 if it is not known. The partitions are numbered
            without gaps; if metadata has a gap, this is how many it has, as in Kafka, and not the
            largest number, of which a broker could make any.
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
        self.partitions = len(known)
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


_MULTIPLIER: Final = 0x5BD1E995
_SEED: Final = 0x9747B28C
_MASK: Final = 0xFFFF_FFFF


def murmur2(data: bytes) -> int:
    """Return the unsigned 32-bit hash of a key (Kafka: Utils.murmur2)."""
    length: i64 = len(data)
    value: i64 = (_SEED ^ length) & _MASK
    word: i64
    place: i64 = 0
    whole: i64 = length & -4
    while place < whole:
        word = data[place] | data[place + 1] << 8 | data[place + 2] << 16 | data[place + 3] << 24
        word = word * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        value = value * _MULTIPLIER & _MASK ^ word
        place += 4
    if place < length:
        rest: i64 = length - place
        if rest == 3:
            value ^= data[place + 2] << 16
        if rest >= 2:
            value ^= data[place + 1] << 8
        value = (value ^ data[place]) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    return value ^ value >> 15


def partition_of(key: Bytes, partitions: int) -> int:
    """Return which of ``partitions`` partitions a key maps to.

    Raises:
        TypeError: the key is not bytes.
    """
    if not isinstance(key, bytes):
        key = as_bytes(key)
    return (murmur2(key) & 0x7FFF_FFFF) % partitions


def next_queue(
    topic: TopicQueues, rng: random.Random, slow_nodes: AbstractSet[int], *, is_adaptive: bool
) -> PartitionQueue:
    """Choose the partition for the next batch of records without a key.

    Args:
        topic: a topic with at least one partition.
        rng: the random generator.
        slow_nodes: the ids of nodes that have accepted no request for too long; they are skipped
            unless all leaders are slow.
        is_adaptive: whether to prefer partitions with shorter queues.
    """
    queues = topic.queues[: topic.partitions]
    led = [each for each in queues if each.leader != NO_LEADER]
    quick = [each for each in led if each.leader not in slow_nodes]
    candidates = quick or led or queues
    if len(candidates) == 1:
        return candidates[0]
    if not is_adaptive:
        return candidates[int(rng.random() * len(candidates))]
    lengths = [len(each.batches) for each in candidates]
    # The longest queue gets one share, a queue that is shorter by n gets n more.
    ceiling = max(lengths) + 1
    left = int(rng.random() * (ceiling * len(lengths) - sum(lengths)))
    place = 0
    while left >= ceiling - lengths[place]:
        left -= ceiling - lengths[place]
        place += 1
    return candidates[place]


class ProducerTopics:
    """The batch queues of all topics, and the partitioner state.

    Args:
        rng: chooses partitions.
        batch_bytes: the number of bytes after which a new sticky partition is chosen
            (``batch.size``).
        is_adaptive: whether to prefer partitions with shorter queues.
        availability_timeout_seconds: how long a node may accept no request for ready batches before
            it is skipped; 0 never skips a node.
    """

    __slots__ = (
        "_availability_timeout_seconds",
        "_batch_bytes",
        "_by_name",
        "_cluster",
        "_is_adaptive",
        "_latencies",
        "_rng",
    )

    def __init__(
        self,
        rng: random.Random,
        batch_bytes: int,
        *,
        is_adaptive: bool,
        availability_timeout_seconds: float,
    ) -> None:
        self._rng = rng
        self._batch_bytes = batch_bytes
        self._is_adaptive = is_adaptive
        self._availability_timeout_seconds = availability_timeout_seconds
        self._cluster = Cluster()
        self._by_name: dict[str, TopicQueues] = {}
        # When batches were last ready for a node, and when the node could last accept a request.
        self._latencies: dict[int, tuple[float, float]] = {}

    def update(self, cluster: Cluster) -> None:
        """Update the partition leaders. A no-op if the snapshot has not changed."""
        before = self._cluster
        if cluster is before:
            return
        self._cluster = cluster
        nodes = frozenset(cluster.nodes)
        names: Iterable[str] | None = cluster.changed_topics
        if cluster.number != before.number + 1 or nodes != before.nodes.keys():
            names = None
        for name in self._by_name if names is None else names:
            topic = self._by_name.get(name)
            if topic is not None:
                topic.update(cluster.topics.get(name), nodes)
        for node_id in self._latencies.keys() - nodes:
            del self._latencies[node_id]

    def get(self, name: str) -> TopicQueues | None:
        """Return the queues of a topic; None if its partitions are not known."""
        topic = self._by_name.get(name)
        if topic is None:
            found = self._cluster.topics.get(name)
            if found is None:
                return None
            topic = TopicQueues(name)
            topic.update(found, frozenset(self._cluster.nodes))
            if topic.partitions:
                self._by_name[name] = topic
        return topic if topic.partitions else None

    def queue(self, partition: TopicPartition) -> PartitionQueue | None:
        """Return the queue of a partition; None if no record was appended to the topic yet."""
        topic = self._by_name.get(partition.topic)
        if topic is None or partition.partition >= len(topic.queues):
            return None
        return topic.queues[partition.partition]

    def mute(self, partition: TopicPartition) -> None:
        """Mute a partition, so that no batch is sent to it (``max.in.flight`` of 1)."""
        queue = self.queue(partition)
        if queue is not None:
            queue.is_muted = True

    def unmute(self, partition: TopicPartition) -> None:
        """Unmute a partition."""
        queue = self.queue(partition)
        if queue is not None:
            queue.is_muted = False

    # Records without a key.

    def choose(self, topic: TopicQueues) -> PartitionQueue:
        """Return the partition queue for the next record without a key.

        This changes the sticky partition if its batch is full, or the partition has received
        ``batch.size`` bytes (Kafka: BuiltInPartitioner.updatePartitionInfo).
        """
        self._leave(topic)
        queue = topic.sticky
        if queue is None:
            topic.sticky_bytes = 0
            queue = next_queue(topic, self._rng, self._slow_nodes(), is_adaptive=self._is_adaptive)
        topic.sticky = queue
        return queue

    def forget(self, batch: ProducerBatch) -> None:
        """Keep no reference to a batch whose memory is freed."""
        topic = self._by_name.get(batch.topic_partition.topic)
        if topic is not None and topic.sticky_batch is batch:
            self._leave(topic)

    def _leave(self, topic: TopicQueues) -> None:
        last = topic.sticky_batch
        if last is not None:
            topic.sticky_batch = None
            topic.sticky_bytes += last.size
            if last.is_full or topic.sticky_bytes >= self._batch_bytes:
                topic.sticky = None

    def update_node_latency(self, node_id: int, now: float, *, can_drain: bool) -> None:
        """Update the latency of a node with ready batches (KIP-794).

        Args:
            node_id: the id of the node.
            now: the current time.
            can_drain: whether the node can accept a request.
        """
        if not self._availability_timeout_seconds:
            return
        _, drained_at = self._latencies.get(node_id, (now, now))
        self._latencies[node_id] = (now, now if can_drain else drained_at)

    def _slow_nodes(self) -> frozenset[int]:
        return frozenset(
            node_id
            for node_id, (ready_at, drained_at) in self._latencies.items()
            if ready_at - drained_at > self._availability_timeout_seconds
        )
