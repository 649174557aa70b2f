"""The partitioner (Kafka: BuiltInPartitioner).

Keys are mapped to partitions by murmur2, as in Kafka's Java client. Records without a key use a
sticky partition (KIP-480, KIP-794). To fill batches, the sticky partition is kept until it has
received ``batch.size`` bytes, and changes only between two batches (KAFKA-14156). The next
partition is chosen at random. Adaptive partitioning prefers partitions with shorter queues, since
their leaders are probably faster.
"""

# Compiled by mypyc.

from __future__ import annotations

import random
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final

from ....protocol.records._batch import Bytes
from ....protocol.records._types import as_bytes
from ...network._cluster import NO_LEADER
from ._partition_queue import PartitionQueue, TopicQueues

if TYPE_CHECKING:
    from mypy_extensions import i64

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
