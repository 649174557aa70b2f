"""What divides the partitions of topics among the members of a group.

(Kafka: ConsumerPartitionAssignor.) The leader of a group asks the assignor that all members have in
common; each member asks its own what the leader should know.
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
"""Topics by name, in each the partitions by number, of each the racks of its replicas."""


class RebalanceProtocol(IntEnum):
    """What a member gives up when a rebalance begins (KIP-429)."""

    EAGER = 0
    """Everything."""

    COOPERATIVE = 1
    """Only what another member is to have, when that is known."""


def _names(topics: Iterable[str]) -> tuple[str, ...]:
    return tuple(topics)


def _partitions(partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    return tuple(partitions)


@attrs.frozen
class MemberSubscription:
    """What a member of a group wants, and what it has.

    Attributes:
        topics: what it subscribes to.
        user_data: what the assignor of the member tells the one of the leader.
        owned_partitions: what it still holds, with a cooperative assignor; else nothing.
        generation_id: the generation in which it was given them; -1 before the first.
        rack_id: where it stands (``client.rack``); None if it does not say.
        group_instance_id: of a static member (``group.instance.id``).
    """

    topics: tuple[str, ...] = attrs.field(converter=_names)
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = attrs.field(default=(), converter=_partitions)
    generation_id: int = NO_GENERATION
    rack_id: str | None = None
    group_instance_id: str | None = None


@runtime_checkable
class Assignor(Protocol):
    """Divides partitions among members; you may write your own.

    Attributes:
        name: what members agree on; all with this name must understand each other's user data.
        protocols: the rebalance protocols that it can be used with. A member uses the
            highest that all its assignors have.
    """

    @property
    def name(self) -> str: ...

    @property
    def protocols(self) -> Collection[RebalanceProtocol]: ...

    def user_data(
        self, topics: Sequence[str], assigned: Sequence[TopicPartition] | None, generation: int
    ) -> bytes | None:
        """What the leader should know of this member, beside its subscription.

        Args:
            topics: what the member subscribes to.
            assigned: what it was assigned the last time; None before the first.
            generation: the generation in which that was; -1 before the first.
        """
        ...

    def assign(
        self,
        partitions_by_topic: PartitionsByTopic,
        subscriptions_by_member_id: Mapping[str, MemberSubscription],
    ) -> dict[str, list[TopicPartition]]:
        """Who is to have what.

        Args:
            partitions_by_topic: the topics that exist of those that members subscribe to.
            subscriptions_by_member_id: all members, at least one.

        Returns:
            A list for each member, which may be empty. No partition is in two lists.
        """
        ...


def partitions_by_topic(
    cluster: Cluster, topics: Iterable[str]
) -> dict[str, dict[int, frozenset[str]]]:
    """What an assignor has to know of some topics; those without partitions are left out.

    Args:
        cluster: as the leader of the group knows it.
        topics: what the members subscribe to.
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
    """The ids of members: static ones first, by their names, which a restart does not change.

    (KIP-345; Kafka: AbstractPartitionAssignor.MemberInfo.)
    """

    def order(member_id: str) -> tuple[bool, str]:
        instance_id = subscriptions[member_id].group_instance_id
        return instance_id is None, member_id if instance_id is None else instance_id

    return sorted(subscriptions, key=order)


def member_racks(subscriptions: Mapping[str, MemberSubscription]) -> dict[str, str]:
    """Where those members stand that say it."""
    return {each: rack for each, found in subscriptions.items() if (rack := found.rack_id)}


def racks_matter(
    racks_of_members: Collection[str], racks_of_partitions: Collection[frozenset[str]]
) -> bool:
    """Whether it makes a difference who has which partition (KIP-881).

    Not if no member stands where a replica is, and not if every rack has every partition.
    """
    all_racks = frozenset().union(*racks_of_partitions)
    if all_racks.isdisjoint(racks_of_members):
        return False
    return any(racks != all_racks for racks in racks_of_partitions)
