"""The sticky choice of a partition for records without a key (KIP-480, KIP-794).

(Kafka: BuiltInPartitioner.) A partition is kept until it got ``batch.size`` bytes, so that batches
are full, and changed only between two batches (KAFKA-14156). The next one is chosen at random; the
adaptive choice prefers partitions with shorter queues, whose leaders are faster.
"""

# Compiled by mypyc.

from __future__ import annotations

import random
from collections.abc import Set as AbstractSet

from ...metadata._cluster import NO_LEADER
from ._partition_queue import PartitionQueue, TopicQueues


def next_queue(
    topic: TopicQueues, rng: random.Random, slow_nodes: AbstractSet[int], *, is_adaptive: bool
) -> PartitionQueue:
    """Choose the partition for the next batch of records without a key.

    Args:
        topic: one with at least one partition.
        rng: makes the choice.
        slow_nodes: ids of nodes that have accepted nothing for too long.
        is_adaptive: whether the length of the queues counts.
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
