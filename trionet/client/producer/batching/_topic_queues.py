"""The batch queues of all topics, and the latency of partition leaders.

(Kafka: RecordAccumulator.topicInfoMap and NodeLatencyStats, KIP-794.)
"""

# Compiled by mypyc.

from __future__ import annotations

import random

from ..._topic_partition import TopicPartition
from ...network._cluster import Cluster
from ._partition_queue import PartitionQueue, TopicQueues
from ._partitioner import next_queue


class NodeLatency:
    """The latency of a node, as two times on the event loop's clock.

    Attributes:
        ready_at: when batches were last ready for the node.
        drained_at: when the node could last accept a request.
    """

    __slots__ = ("drained_at", "ready_at")

    def __init__(self, now: float) -> None:
        self.ready_at = now
        self.drained_at = now

    def update(self, now: float, *, can_drain: bool) -> None:
        """Record that batches are ready for the node, and whether the node can accept a request."""
        self.ready_at = now
        if can_drain:
            self.drained_at = now

    @property
    def held_up_seconds(self) -> float:
        """How long the node has had ready batches without accepting a request, in seconds."""
        return self.ready_at - self.drained_at


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
        self._latencies: dict[int, NodeLatency] = {}

    def update(self, cluster: Cluster) -> None:
        """Update the partition leaders. A no-op if the snapshot has not changed."""
        if cluster is self._cluster:
            return
        self._cluster = cluster
        nodes = frozenset(cluster.nodes)
        for name, topic in self._by_name.items():
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
        queue = topic.sticky
        last = topic.sticky_batch
        if last is not None:
            topic.sticky_bytes += last.size
            if queue is not None and (last.is_full or topic.sticky_bytes >= self._batch_bytes):
                queue = None
        if queue is None:
            topic.sticky_bytes = 0
            queue = next_queue(topic, self._rng, self._slow_nodes(), is_adaptive=self._is_adaptive)
        topic.sticky = queue
        topic.sticky_batch = None
        return queue

    def update_node_latency(self, node_id: int, now: float, *, can_drain: bool) -> None:
        """Update the latency of a node with ready batches (KIP-794).

        Args:
            node_id: the id of the node.
            now: the current time.
            can_drain: whether the node can accept a request.
        """
        if not self._availability_timeout_seconds:
            return
        latency = self._latencies.get(node_id)
        if latency is None:
            latency = self._latencies[node_id] = NodeLatency(now)
        latency.update(now, can_drain=can_drain)

    def _slow_nodes(self) -> frozenset[int]:
        return frozenset(
            node_id
            for node_id, latency in self._latencies.items()
            if latency.held_up_seconds > self._availability_timeout_seconds
        )
