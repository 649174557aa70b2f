"""The topics that records were appended to: their queues, and who leads them."""

# Compiled by mypyc.

from __future__ import annotations

import random

from ..._topic_partition import TopicPartition
from ...metadata._cluster import Cluster
from ._node_latency import NodeLatency
from ._partition_queue import PartitionQueue, TopicQueues
from ._sticky_partitioner import next_queue


class ProducerTopics:
    """See the module.

    Args:
        chance: what chooses partitions.
        batch_bytes: what a partition gets before another one is chosen (``batch.size``).
        is_adaptive: whether the length of the queues counts for that.
        availability_seconds: how long a node may take nothing and still be chosen; 0 for ever.
    """

    __slots__ = (
        "_availability_seconds",
        "_batch_bytes",
        "_by_name",
        "_chance",
        "_cluster",
        "_is_adaptive",
        "_latencies",
    )

    def __init__(
        self,
        chance: random.Random,
        batch_bytes: int,
        *,
        is_adaptive: bool,
        availability_seconds: float,
    ) -> None:
        self._chance = chance
        self._batch_bytes = batch_bytes
        self._is_adaptive = is_adaptive
        self._availability_seconds = availability_seconds
        self._cluster = Cluster()
        self._by_name: dict[str, TopicQueues] = {}
        self._latencies: dict[int, NodeLatency] = {}

    def update(self, cluster: Cluster) -> None:
        """Take note of who leads what; nothing to do if it is the same snapshot as before."""
        if cluster is self._cluster:
            return
        self._cluster = cluster
        nodes = frozenset(cluster.nodes)
        for name, topic in self._by_name.items():
            topic.update(cluster.topics.get(name), nodes)
        for node_id in self._latencies.keys() - nodes:
            del self._latencies[node_id]

    def get(self, name: str) -> TopicQueues | None:
        """A topic; None if its partitions are not known."""
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
        """The queue of a partition; None if there never was anything for its topic."""
        topic = self._by_name.get(partition.topic)
        if topic is None or partition.partition >= len(topic.queues):
            return None
        return topic.queues[partition.partition]

    # Records without a key.

    def choose(self, topic: TopicQueues) -> PartitionQueue:
        """Where the next batch of records without a key goes, because the last takes no more.

        (Kafka: BuiltInPartitioner.updatePartitionInfo.)
        """
        queue = topic.sticky
        last = topic.sticky_batch
        if last is not None:
            topic.sticky_bytes += last.size
            if queue is not None and (last.is_full or topic.sticky_bytes >= self._batch_bytes):
                queue = None
        if queue is None:
            topic.sticky_bytes = 0
            queue = next_queue(
                topic, self._chance, self._slow_nodes(), is_adaptive=self._is_adaptive
            )
        topic.sticky = queue
        topic.sticky_batch = None
        return queue

    def update_node_latency(self, node_id: int, now: float, *, can_drain: bool) -> None:
        """There is something to send to a node; whether it can take it now (KIP-794)."""
        if not self._availability_seconds:
            return
        latency = self._latencies.get(node_id)
        if latency is None:
            latency = self._latencies[node_id] = NodeLatency(now)
        latency.update(now, can_drain=can_drain)

    def _slow_nodes(self) -> frozenset[int]:
        return frozenset(
            node_id
            for node_id, latency in self._latencies.items()
            if latency.held_up_seconds > self._availability_seconds
        )
