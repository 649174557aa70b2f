"""The interface of assignors, which divide the partitions of topics among the members of a group.

(Kafka: ConsumerPartitionAssignor.) The leader of a group runs the assignor that all members have in
common; each member's own assignor provides the user data for the leader.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, Protocol, TypeAlias, runtime_checkable

import attrs

from ..._topic_partition import TopicPartition
from ...metadata._cluster import Cluster

NO_GENERATION: Final = -1

PartitionsByTopic: TypeAlias = Mapping[str, Mapping[int, frozenset[str]]]
"""For each topic, by name, and each partition, by number, the racks of the replicas."""


class RebalanceProtocol(IntEnum):
    """What a member revokes when a rebalance begins (KIP-429)."""

    EAGER = 0
    """All partitions."""

    COOPERATIVE = 1
    """Only the partitions that are assigned to another member, once these are known."""


def _names(topics: Iterable[str]) -> tuple[str, ...]:
    return tuple(topics)


def _partitions(partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    return tuple(partitions)


@attrs.frozen
class MemberSubscription:
    """The subscription of a group member, and the partitions it owns.

    Attributes:
        topics: the topics that the member subscribes to.
        user_data: the data that the member's assignor sends to the leader's.
        owned_partitions: the partitions that the member still owns with a cooperative assignor;
            otherwise empty.
        generation_id: the generation in which the owned partitions were assigned; -1 before the
            first.
        rack_id: the rack of the member (``client.rack``); None if not set.
        group_instance_id: the ``group.instance.id`` of a static member; None for others.
    """

    topics: tuple[str, ...] = attrs.field(converter=_names)
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = attrs.field(default=(), converter=_partitions)
    generation_id: int = NO_GENERATION
    rack_id: str | None = None
    group_instance_id: str | None = None


@runtime_checkable
class Assignor(Protocol):
    """Divides partitions among members; users may write custom assignors.

    Attributes:
        name: the name that members agree on; all assignors with this name must understand each
            other's user data.
        protocols: the supported rebalance protocols. A member uses the highest one that all its
            assignors support.
    """

    @property
    def name(self) -> str: ...

    @property
    def protocols(self) -> Collection[RebalanceProtocol]: ...

    def user_data(
        self, topics: Sequence[str], assigned: Sequence[TopicPartition] | None, generation: int
    ) -> bytes | None:
        """Return the data that the leader needs about this member besides its subscription.

        Args:
            topics: the topics the member subscribes to.
            assigned: the last assignment of the member; None before the first.
            generation: the generation of that assignment; -1 before the first.
        """
        ...

    def assign(
        self,
        partitions_by_topic: PartitionsByTopic,
        subscriptions_by_member_id: Mapping[str, MemberSubscription],
    ) -> dict[str, list[TopicPartition]]:
        """Divide the partitions.

        Args:
            partitions_by_topic: the topics that members subscribe to, as far as they exist.
            subscriptions_by_member_id: all members, at least one.

        Returns:
            A list for each member, which may be empty. No partition may be in two lists.
        """
        ...


def partitions_by_topic(
    cluster: Cluster, topics: Iterable[str]
) -> dict[str, dict[int, frozenset[str]]]:
    """Return the input of an assignor for some topics; topics without partitions are omitted.

    Args:
        cluster: the metadata of the group's leader.
        topics: the topics that members subscribe to.
    """
    racks = {node.id: node.rack for node in cluster.nodes.values()}
    found: dict[str, dict[int, frozenset[str]]] = {}
    for name in sorted(set(topics)):
        topic = cluster.topics.get(name)
        if topic is not None and topic.partitions:
            found[name] = {
                index: frozenset(
                    rack for each in topic.partitions[index].replicas if (rack := racks.get(each))
                )
                for index in sorted(topic.partitions)
            }
    return found


def ordered_members(subscriptions: Mapping[str, MemberSubscription]) -> list[str]:
    """Return the ids of members: static members first, by instance id, which survives a restart.

    (KIP-345; Kafka: AbstractPartitionAssignor.MemberInfo.)
    """

    def order(member_id: str) -> tuple[bool, str]:
        instance_id = subscriptions[member_id].group_instance_id
        return instance_id is None, member_id if instance_id is None else instance_id

    return sorted(subscriptions, key=order)


def member_racks(subscriptions: Mapping[str, MemberSubscription]) -> dict[str, str]:
    """Return the racks of the members that have one."""
    return {each: rack for each, found in subscriptions.items() if (rack := found.rack_id)}


def racks_matter(
    racks_of_members: Collection[str], racks_of_partitions: Collection[frozenset[str]]
) -> bool:
    """Whether it makes a difference which member has which partition (KIP-881).

    It does not if no member is in the rack of a replica, or if every rack has every partition.
    """
    all_racks = frozenset().union(*racks_of_partitions)
    if all_racks.isdisjoint(racks_of_members):
        return False
    return any(racks != all_racks for racks in racks_of_partitions)
