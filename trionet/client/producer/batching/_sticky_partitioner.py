"""Where records without a key go: one partition for a batch, then another (KIP-480, KIP-794).

(Kafka: BuiltInPartitioner.) A partition is kept until it got ``batch.size`` bytes, so that batches
are full ones, and changed between two batches only (KAFKA-14156). The next one is chosen at random;
the adaptive choice takes those more often that have less to send, for their leaders are faster.
"""

# Compiled by mypyc.

from __future__ import annotations

import random
from collections.abc import Set as AbstractSet

from ...metadata._cluster import NO_LEADER
from ._partition_queue import PartitionQueue, TopicQueues


def next_queue(
    topic: TopicQueues, chance: random.Random, slow_nodes: AbstractSet[int], *, is_adaptive: bool
) -> PartitionQueue:
    """The partition for the next batch of records without a key.

    Args:
        topic: with one partition at least.
        chance: what decides.
        slow_nodes: ids of nodes that have not taken anything for too long.
        is_adaptive: whether the length of the queues counts.
    """
    queues = topic.queues[: topic.partitions]
    led = [each for each in queues if each.leader != NO_LEADER]
    quick = [each for each in led if each.leader not in slow_nodes]
    candidates = quick or led or queues
    if len(candidates) == 1:
        return candidates[0]
    if not is_adaptive:
        return candidates[int(chance.random() * len(candidates))]
    lengths = [len(each.batches) for each in candidates]
    # The longest queue gets one share, one that is shorter by n gets n more.
    ceiling = max(lengths) + 1
    left = int(chance.random() * (ceiling * len(lengths) - sum(lengths)))
    place = 0
    while left >= ceiling - lengths[place]:
        left -= ceiling - lengths[place]
        place += 1
    return candidates[place]
