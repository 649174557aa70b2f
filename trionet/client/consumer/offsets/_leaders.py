"""Partitions by the node that leads them."""

from __future__ import annotations

from collections.abc import Iterable

from ..._node import Node
from ..._topic_partition import TopicPartition
from ...metadata._cluster import Cluster


def by_leader(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> tuple[dict[Node, list[TopicPartition]], list[TopicPartition]]:
    """Which node to ask about which partitions, and those that nobody is known to lead."""
    found: dict[Node, list[TopicPartition]] = {}
    unknown: list[TopicPartition] = []
    for each in partitions:
        leader = cluster.leader(*each)
        if leader is None:
            unknown.append(each)
        else:
            found.setdefault(leader, []).append(each)
    return found, unknown


def leader_epoch(cluster: Cluster, partition: TopicPartition) -> int:
    """The epoch of a partition's leader; -1 where it is not known."""
    topic = cluster.topics.get(partition.topic)
    known = topic.partitions.get(partition.partition) if topic is not None else None
    return known.leader_epoch if known is not None else -1


def is_gone(cluster: Cluster, partition: TopicPartition) -> bool:
    """Whether a topic has no such partition, such as one that was deleted; not if none is known."""
    topic = cluster.topics.get(partition.topic)
    return topic is not None and partition.partition not in topic.partitions
