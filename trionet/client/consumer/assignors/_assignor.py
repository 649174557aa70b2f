"""The interface of assignors, which divide the partitions of topics among the members of a group.

(Kafka: ConsumerPartitionAssignor.) The leader of a group runs an assignor that all members support.
The assignor of each member provides user data for the leader.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, Protocol, TypeAlias, runtime_checkable

import attrs

from ..._topic_partition import TopicPartition
from ...network._cluster import Cluster

NO_GENERATION: Final = -1

PartitionsByTopic: TypeAlias = Mapping[str, Mapping[int, frozenset[str]]]
"""The racks of each partition's replicas, keyed by topic name and partition number."""


class RebalanceProtocol(IntEnum):
    """Which partitions a member revokes in a rebalance, and when (KIP-429)."""

    EAGER = 0
    """All partitions, when the rebalance begins."""

    COOPERATIVE = 1
    """Only partitions that move to another member, once the new assignment is known."""


def _names(topics: Iterable[str]) -> tuple[str, ...]:
    return tuple(topics)


def _partitions(partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    return tuple(partitions)


@attrs.frozen
class MemberSubscription:
    """A group member's subscription, and the partitions that the member owns.

    Attributes:
        topics: the topics to which the member subscribes.
        user_data: the data that the member's assignor sends to the leader's assignor.
        owned_partitions: the partitions that the member still owns; empty unless it uses a
            cooperative assignor.
        generation_id: the generation in which the owned partitions were assigned; -1 before the
            first assignment.
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
    """The interface of assignors. Users can implement custom assignors.

    Attributes:
        name: the name by which a group's members agree on an assignor. All assignors with the same
            name must understand each other's user data.
        protocols: the supported rebalance protocols. A member uses the highest protocol that all
            its assignors support.
    """

    @property
    def name(self) -> str: ...

    @property
    def protocols(self) -> Collection[RebalanceProtocol]: ...

    def user_data(
        self, topics: Sequence[str], assigned: Sequence[TopicPartition] | None, generation: int
    ) -> bytes | None:
        """Return the data that the leader needs from this member in addition to its subscription.

        Args:
            topics: the topics to which this member subscribes.
            assigned: the last assignment of this member; None before the first assignment.
            generation: the generation of the last assignment; -1 before the first assignment.
        """
        ...

    def assign(
        self,
        partitions_by_topic: PartitionsByTopic,
        subscriptions_by_member_id: Mapping[str, MemberSubscription],
    ) -> dict[str, list[TopicPartition]]:
        """Assign partitions to members.

        Args:
            partitions_by_topic: the existing topics to which any member subscribes, with their
                partitions.
            subscriptions_by_member_id: the subscriptions of all members; at least one.

        Returns:
            The partitions of every member, possibly none. No partition may be assigned to more than
            one member.
        """
        ...


def partitions_by_topic(
    cluster: Cluster, topics: Iterable[str]
) -> dict[str, dict[int, frozenset[str]]]:
    """Return an assignor's input for these topics; topics that do not exist are omitted.

    Args:
        cluster: the metadata that the group's leader has.
        topics: the topics to which members subscribe.
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
    """Return the member ids in order: static members by instance id, then the other members.

    Instance ids survive restarts, so the order of static members is stable (KIP-345; Kafka:
    AbstractPartitionAssignor.MemberInfo).
    """

    def order(member_id: str) -> tuple[bool, str]:
        instance_id = subscriptions[member_id].group_instance_id
        return instance_id is None, member_id if instance_id is None else instance_id

    return sorted(subscriptions, key=order)


def member_racks(subscriptions: Mapping[str, MemberSubscription]) -> dict[str, str]:
    """Return the racks of the members that have a rack."""
    return {each: rack for each, found in subscriptions.items() if (rack := found.rack_id)}


def racks_matter(
    racks_of_members: Collection[str], racks_of_partitions: Collection[frozenset[str]]
) -> bool:
    """Whether racks affect the choice of a member for a partition (KIP-881).

    They have no effect if no member shares a rack with a replica, or if every rack has a replica of
    every partition.
    """
    all_racks = frozenset().union(*racks_of_partitions)
    if all_racks.isdisjoint(racks_of_members):
        return False
    return any(racks != all_racks for racks in racks_of_partitions)
