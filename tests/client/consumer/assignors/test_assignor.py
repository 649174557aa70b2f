from __future__ import annotations

from trionet.client.consumer.assignors import (
    CooperativeStickyAssignor,
    RangeAssignor,
    RebalanceProtocol,
    RoundRobinAssignor,
    StickyAssignor,
    partitions_by_topic,
)
from trionet.client.network._cluster import Cluster, Node, PartitionMetadata, TopicMetadata


def partition(index: int, *replicas: int) -> PartitionMetadata:
    return PartitionMetadata(index=index, leader=replicas[0], replicas=replicas)


def test_assignors_learn_where_the_replicas_are() -> None:
    cluster = Cluster(
        nodes={1: Node(1, "h", 1, "a"), 2: Node(2, "h", 2, "b"), 3: Node(3, "h", 3)},
        topics={
            "orders": TopicMetadata(
                name="orders", partitions={1: partition(1, 3, 9), 0: partition(0, 1, 2, 3)}
            ),
            "empty": TopicMetadata(name="empty"),
        },
    )

    found = partitions_by_topic(cluster, ["orders", "empty", "unknown", "orders"])

    assert {"orders": {0: frozenset("ab"), 1: frozenset()}} == found
    assert [0, 1] == list(found["orders"])


def test_names_and_protocols_are_kafkas() -> None:
    assignors = (
        RangeAssignor(),
        RoundRobinAssignor(),
        StickyAssignor(),
        CooperativeStickyAssignor(),
    )

    assert ["range", "roundrobin", "sticky", "cooperative-sticky"] == [
        each.name for each in assignors
    ]
    assert [RebalanceProtocol.EAGER] * 3 + [RebalanceProtocol.COOPERATIVE] == [
        max(each.protocols) for each in assignors
    ]
    assert all(RebalanceProtocol.EAGER in each.protocols for each in assignors)
