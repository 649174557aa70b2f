"""What is known of a cluster: its brokers, its topics, and who leads what (Kafka: Cluster)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from ...protocol._wire import NO_UUID
from ...protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from .._node import Node
from .._topic_partition import TopicPartition

NO_LEADER = -1


@attrs.frozen(kw_only=True)
class PartitionMetadata:
    """One partition as the brokers described it.

    Attributes:
        index: its number.
        leader: the id of its leader's node; -1 for none.
        leader_epoch: counts its leaders; -1 where the broker does not tell (KIP-320).
        replicas: ids of the nodes that have it.
        in_sync: those that are up to date.
        offline: those that cannot be reached.
        error_code: why nothing, or not all, is known.
    """

    index: int
    leader: int = NO_LEADER
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    error_code: int = 0


@attrs.frozen(kw_only=True)
class TopicMetadata:
    """One topic as the brokers described it.

    Attributes:
        name: its name.
        id: its 16-byte id; zeros where the broker does not tell.
        partitions: by number.
        is_internal: it is Kafka's own.
        error_code: why nothing, or not all, is known.
    """

    name: str
    id: bytes = NO_UUID
    partitions: Mapping[int, PartitionMetadata] = attrs.field(factory=dict)
    is_internal: bool = False
    error_code: int = 0


@attrs.frozen(kw_only=True)
class Cluster:
    """A snapshot; it never changes, another one takes its place.

    Attributes:
        id: the cluster's id; None where it is not known.
        controller: the id of the controller's node; -1 for none.
        nodes: the brokers by id; those of ``bootstrap.servers`` until others are known.
        topics: by name; only those that were asked for.
        is_bootstrap: the nodes are those of ``bootstrap.servers``.
    """

    id: str | None = None
    controller: int = NO_LEADER
    nodes: Mapping[int, Node] = attrs.field(factory=dict)
    topics: Mapping[str, TopicMetadata] = attrs.field(factory=dict)
    is_bootstrap: bool = False

    @classmethod
    def bootstrap(cls, servers: Iterable[tuple[str, int]]) -> Cluster:
        """What is known at the beginning; the ids are made up, below zero."""
        nodes = {-1 - i: Node(-1 - i, host, port) for i, (host, port) in enumerate(servers)}
        return cls(nodes=nodes, is_bootstrap=True)

    def node_at(self, host: str, port: int) -> Node | None:
        """The node that is reached there; None if none is, or several say so."""
        found = [each for each in self.nodes.values() if (each.host, each.port) == (host, port)]
        return found[0] if len(found) == 1 else None

    def leader(self, topic: str, partition: int) -> Node | None:
        """Who leads a partition; None if nobody does, or nobody knows."""
        found = self.topics.get(topic)
        known = found.partitions.get(partition) if found is not None else None
        return self.nodes.get(known.leader) if known is not None else None


def with_leaders(
    before: Cluster, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]
) -> Cluster:
    """The cluster with new leaders that an answer to another question told of (KIP-951).

    Args:
        before: what was known.
        leaders: the node id and the leader epoch of each; one that is not newer than what is known
            changes nothing, nor does one whose node is not known.
        nodes: the leaders' nodes, where the answer has them.
    """
    known = {**before.nodes, **{each.id: each for each in nodes}}
    topics = dict(before.topics)
    for (name, index), (leader, epoch) in leaders.items():
        topic = topics.get(name)
        partition = topic.partitions.get(index) if topic is not None else None
        if topic is None or partition is None or leader not in known:
            continue
        if epoch > partition.leader_epoch:
            moved = attrs.evolve(partition, leader=leader, leader_epoch=epoch, error_code=0)
            topics[name] = attrs.evolve(topic, partitions={**topic.partitions, index: moved})
    return attrs.evolve(before, nodes=known, topics=topics)


def described(response: MetadataResponse, before: Cluster, *, is_partial: bool) -> Cluster:
    """The cluster as an answer describes it.

    A leader of an older epoch than one that is known already is not believed: the answer comes
    from a broker that is behind (KIP-320), unless the topic was made anew meanwhile.

    Args:
        response: the answer.
        before: what was known.
        is_partial: only some topics were asked for; the others stay.
    """
    topics = dict(before.topics) if is_partial else {}
    for topic in response.topics:
        if topic.name is not None:
            topics[topic.name] = _topic(topic, before.topics.get(topic.name))
    return Cluster(
        id=response.cluster_id,
        controller=response.controller_id,
        nodes={each.node_id: _node(each) for each in response.brokers},
        topics=topics,
    )


def _node(broker: MetadataResponseBroker) -> Node:
    return Node(broker.node_id, broker.host, broker.port, broker.rack)


def _topic(topic: MetadataResponseTopic, before: TopicMetadata | None) -> TopicMetadata:
    assert topic.name is not None
    known: Mapping[int, PartitionMetadata] = {}
    # A broker that tells no ids may still be behind.
    if before is not None and topic.topic_id in (before.id, NO_UUID):
        known = before.partitions
    return TopicMetadata(
        name=topic.name,
        id=topic.topic_id,
        partitions={
            each.partition_index: _partition(each, known.get(each.partition_index))
            for each in topic.partitions
        },
        is_internal=topic.is_internal,
        error_code=topic.error_code,
    )


def _partition(
    partition: MetadataResponsePartition, before: PartitionMetadata | None
) -> PartitionMetadata:
    if before is not None and 0 <= partition.leader_epoch < before.leader_epoch:
        return before
    return PartitionMetadata(
        index=partition.partition_index,
        leader=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replicas=tuple(partition.replica_nodes),
        in_sync=tuple(partition.isr_nodes),
        offline=tuple(partition.offline_replicas),
        error_code=partition.error_code,
    )
