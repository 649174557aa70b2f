"""The brokers of a cluster, and an immutable view of it with its topics (Kafka: Node, Cluster)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

import attrs

from ...protocol._wire import NO_UUID
from ...protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from .._topic_partition import TopicPartition
from ._addresses import HOST_CHARS_MAX

COORDINATOR_ID_BASE: Final = 2**32 - 1
"""The node ids of connections to group coordinators count down from this value.

These connections are separate, because a heartbeat must not wait for a Fetch request that the
broker is holding. Kafka counts down from 2^31 - 1, which may be the id of another broker."""

# Broker ids are int32; the node ids of coordinator connections are above it.
_COORDINATORS_ABOVE: Final = 2**31 - 1


@attrs.frozen
class Node:
    """A broker of a cluster.

    Attributes:
        id: the broker's ``node.id``. Entries of ``bootstrap.servers`` have negative ids;
            connections to coordinators have ids that count down from :data:`COORDINATOR_ID_BASE`.
        host: the advertised host name or address.
        port: the advertised port.
        rack: the broker's rack; None if it has none.
    """

    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> str:
        """``host:port``, with brackets around an IPv6 address; a host that is no name is cut."""
        host = self.host
        if len(host) > HOST_CHARS_MAX:
            host = f"{host[:HOST_CHARS_MAX]}…"
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    @property
    def broker_id(self) -> int | None:
        """The broker's ``node.id``; None for a bootstrap server."""
        if self.id < 0:
            return None
        return COORDINATOR_ID_BASE - self.id if self.id > _COORDINATORS_ABOVE else self.id

    def __str__(self) -> str:
        if self.id < 0:
            return f"{self.address} (bootstrap)"
        role = "coordinator, " if self.id > _COORDINATORS_ABOVE else ""
        return f"{self.address} ({role}node {self.broker_id})"


class AdvertisedNode(Protocol):
    """A broker in a response."""

    node_id: int
    host: str
    port: int
    rack: str | None


def nodes_of(brokers: Iterable[AdvertisedNode]) -> dict[int, Node]:
    """Return the brokers of a response, keyed by id; the last one, if several have the same id.

    A broker with a negative id is left out: it would share the connection of a bootstrap server.
    """
    return {
        each.node_id: Node(each.node_id, each.host, each.port, each.rack)
        for each in brokers
        if each.node_id >= 0
    }


NO_LEADER = -1


@attrs.frozen(kw_only=True)
class PartitionMetadata:
    """Metadata of one partition.

    Attributes:
        index: the partition number.
        leader: the node id of the leader; -1 if there is none.
        leader_epoch: the leader epoch; -1 if the broker does not report it (KIP-320).
        replicas: the node ids of the replicas.
        in_sync: the node ids of the in-sync replicas.
        offline: the node ids of the offline replicas.
        error_code: the partition's error code; 0 (NONE) on success.
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
    """Metadata of one topic.

    Attributes:
        name: the topic's name.
        id: the 16-byte topic id; zeros if the broker does not report it.
        partitions: the partitions, keyed by number.
        is_internal: whether the topic is internal to Kafka.
        error_code: the topic's error code; 0 (NONE) on success.
    """

    name: str
    id: bytes = NO_UUID
    partitions: Mapping[int, PartitionMetadata] = attrs.field(factory=dict)
    is_internal: bool = False
    error_code: int = 0


class LayeredTopics(Mapping[str, TopicMetadata]):
    """The topics of a snapshot that differs from the one before in a few topics.

    Copying the metadata of all topics for each new topic would make n new topics cost n². The
    snapshots share most topics instead, and copy the rest.

    Args:
        shared: topics, which must not be changed.
        recent: topics that replace those of the same name.
    """

    __slots__ = ("_recent", "_shared")

    def __init__(
        self, shared: Mapping[str, TopicMetadata], recent: Mapping[str, TopicMetadata]
    ) -> None:
        self._shared = shared
        self._recent = recent

    def __getitem__(self, name: str) -> TopicMetadata:
        found = self._recent.get(name)
        return self._shared[name] if found is None else found

    def get(self, name: str, default: Any = None) -> Any:  # as this is faster than the mixin
        found = self._recent.get(name)
        return self._shared.get(name, default) if found is None else found

    def __iter__(self) -> Iterator[str]:
        yield from self._shared
        yield from (name for name in self._recent if name not in self._shared)

    def __len__(self) -> int:
        return len(self._shared) + sum(name not in self._shared for name in self._recent)

    def with_recent(self, topics: Mapping[str, TopicMetadata]) -> LayeredTopics:
        """Return the topics with some of them replaced or added."""
        recent = {**self._recent, **topics}
        if len(recent) ** 2 <= len(self._shared):
            return LayeredTopics(self._shared, recent)
        return LayeredTopics({**self._shared, **recent}, {})


def _replaced(
    before: Mapping[str, TopicMetadata], topics: Mapping[str, TopicMetadata]
) -> LayeredTopics:
    """Return the topics of a snapshot, with some of them replaced or added."""
    layered = before if isinstance(before, LayeredTopics) else LayeredTopics(before, {})
    return layered.with_recent(topics)


@attrs.frozen(kw_only=True)
class Cluster:
    """An immutable snapshot of a cluster; updates replace it.

    Attributes:
        id: the cluster id; None if unknown.
        controller: the node id of the controller; -1 if there is none.
        nodes: the brokers, or the ``bootstrap.servers`` until the brokers are known, keyed by id.
        topics: the requested topics, keyed by name.
        is_bootstrap: whether the nodes are still the ``bootstrap.servers``.
        number: the number of snapshots of this client before this one.
        changed_topics: the topics that may differ from those of the snapshot before; None if any
            may.
    """

    id: str | None = None
    controller: int = NO_LEADER
    nodes: Mapping[int, Node] = attrs.field(factory=dict)
    topics: Mapping[str, TopicMetadata] = attrs.field(factory=dict)
    is_bootstrap: bool = False
    number: int = 0
    changed_topics: frozenset[str] | None = None

    @classmethod
    def bootstrap(cls, servers: Iterable[tuple[str, int]]) -> Cluster:
        """Create the initial snapshot, in which the servers have artificial negative ids.

        They count down from -2. Kafka's count down from -1, which stands for no node everywhere
        else: the first server would lead the partitions that have no leader.
        """
        ids = itertools.count(NO_LEADER - 1, -1)
        nodes = {id: Node(id, host, port) for id, (host, port) in zip(ids, servers, strict=False)}
        return cls(nodes=nodes, is_bootstrap=True)

    def node_at(self, host: str, port: int) -> Node | None:
        """Return the node that advertises this address; None unless exactly one does."""
        found = [each for each in self.nodes.values() if (each.host, each.port) == (host, port)]
        return found[0] if len(found) == 1 else None

    def leader(self, topic: str, partition: int) -> Node | None:
        """Return the leader of a partition; None if the partition has no known leader."""
        found = self.topics.get(topic)
        known = found.partitions.get(partition) if found is not None else None
        return self.nodes.get(known.leader) if known is not None else None


def with_leaders(
    before: Cluster, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Mapping[int, Node]
) -> Cluster:
    """Return the cluster, updated with the leaders in a Produce or Fetch response (KIP-951).

    Args:
        before: the preceding snapshot.
        leaders: the node id and leader epoch of each partition's leader. Leaders whose epoch is not
            newer than the known one, or whose node is not known, are ignored.
        nodes: the leaders' nodes, keyed by id, if the response includes them; those of leaders that
            are ignored are ignored, too.
    """
    known = dict(before.nodes)
    moved: dict[str, dict[int, PartitionMetadata]] = {}
    for (name, index), (leader, epoch) in leaders.items():
        topic = before.topics.get(name)
        partition = topic.partitions.get(index) if topic is not None else None
        node = nodes.get(leader) or known.get(leader)
        if partition is None or node is None:
            continue
        if epoch > partition.leader_epoch:
            known[leader] = node
            after = attrs.evolve(partition, leader=leader, leader_epoch=epoch, error_code=0)
            moved.setdefault(name, {})[index] = after
    # Once for each topic: all partitions that a broker led may move at the same time.
    changed: dict[str, TopicMetadata] = {}
    for name, partitions in moved.items():
        former = before.topics[name]
        changed[name] = attrs.evolve(former, partitions={**former.partitions, **partitions})
    return attrs.evolve(
        before,
        nodes=known,
        topics=_replaced(before.topics, changed),
        number=before.number + 1,
        changed_topics=frozenset(changed),
    )


def without_topic(before: Cluster, name: str) -> Cluster:
    """Return the cluster without the metadata of a topic."""
    return attrs.evolve(
        before,
        topics={each: topic for each, topic in before.topics.items() if each != name},
        number=before.number + 1,
        changed_topics=frozenset({name}),
    )


EPOCHS_VERSION = 9
"""The first Metadata version whose leader epochs can be relied on.

Brokers before Kafka 2.4, which do not have it, may report an older epoch than the leader's until
they are restarted, and requests with that epoch would fail as long (KAFKA-9212)."""


def forget_epochs(response: MetadataResponse) -> None:
    """Make the leader epochs of a response in a version before :data:`EPOCHS_VERSION` unknown."""
    for topic in response.topics:
        for each in topic.partitions:
            each.leader_epoch = -1


def described(response: MetadataResponse, before: Cluster, *, is_partial: bool) -> Cluster:
    """Return the snapshot of the cluster that a Metadata response describes.

    Topics without a name and partitions with negative numbers, which no request can name, are left
    out. A partition whose leader epoch is older than the known one is left as it was, since the
    broker's metadata is stale (KIP-320), unless the topic has been recreated.

    Args:
        response: the response.
        before: the preceding snapshot.
        is_partial: whether the topics that are not in the response stay as they were, instead of
            being forgotten.
    """
    topics = {
        topic.name: _topic(topic, before.topics.get(topic.name))
        for topic in response.topics
        if topic.name
    }
    return Cluster(
        id=response.cluster_id,
        controller=response.controller_id,
        nodes=nodes_of(response.brokers),
        topics=_replaced(before.topics, topics) if is_partial else topics,
        number=before.number + 1,
        changed_topics=frozenset(topics) if is_partial else None,
    )


def _topic(topic: MetadataResponseTopic, before: TopicMetadata | None) -> TopicMetadata:
    assert topic.name is not None
    known: Mapping[int, PartitionMetadata] = {}
    # A broker that reports no topic ids may also have stale metadata.
    if before is not None and topic.topic_id in (before.id, NO_UUID):
        known = before.partitions
    return TopicMetadata(
        name=topic.name,
        id=topic.topic_id,
        partitions={
            each.partition_index: _partition(each, known.get(each.partition_index))
            for each in topic.partitions
            if each.partition_index >= 0
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
