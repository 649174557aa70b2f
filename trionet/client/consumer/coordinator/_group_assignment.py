"""The subscription that a member sends, and the assignments that a leader computes.

(Kafka: ConsumerCoordinator.metadata, onLeaderElected, MetadataSnapshot.)
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from ....errors import ConfigError, WireFormatError
from ....protocol.messages.join_group import JoinGroupResponseMember
from ..._topic_partition import TopicPartition
from ...network._cluster import Cluster
from ..assignors import Assignor, MemberSubscription, RebalanceProtocol, partitions_by_topic
from ..assignors._consumer_protocol import (
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

LOGGER: Final = logging.getLogger(__name__)

Snapshot: TypeAlias = Mapping[str, Mapping[int, frozenset[str]]]
"""An assignor's input: the racks of each partition's replicas, by topic and partition number."""


def rebalance_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """Return the highest protocol that all assignors support (KIP-429).

    A group can therefore move from an eager to a cooperative assignor in two rolling restarts:
    first with both assignors in the list, then with only the cooperative assignor.

    Raises:
        ConfigError: there are no assignors, two assignors have the same name, or they have no
            protocol in common.
    """
    names = [each.name for each in assignors]
    if not names or len(set(names)) < len(names):
        raise ConfigError(
            "partition.assignment.strategy must list one or more assignors, each only once; it"
            f" lists {', '.join(names) or 'none'}"
        )
    common = frozenset.intersection(*(frozenset(each.protocols) for each in assignors))
    if not common:
        raise ConfigError(
            f"partition.assignment.strategy = {', '.join(names)}: these assignors have no rebalance"
            " protocol in common; choose assignors that share one"
        )
    return max(common)


class GroupAssignment:
    """A member's assignors, which provide its user data and compute assignments.

    Args:
        assignors: the assignors, in order of preference.
        rack_id: the rack of this member.
    """

    def __init__(self, assignors: Sequence[Assignor], rack_id: str | None) -> None:
        self.protocol = rebalance_protocol(assignors)
        self._by_name = {each.name: each for each in assignors}
        self._rack_id = rack_id
        self._assigned: Sequence[TopicPartition] | None = None
        self._generation = -1

    def protocols(
        self, topics: Iterable[str], owned: Iterable[TopicPartition]
    ) -> list[tuple[str, bytes]]:
        """Return the protocols for JoinGroup: assignor names, each with an encoded subscription.

        Args:
            topics: the topics to which this member subscribes.
            owned: the partitions that this member still owns.
        """
        names = sorted(topics)
        kept = tuple(sorted(owned))
        return [
            (
                name,
                encode_subscription(
                    MemberSubscription(
                        names,
                        assignor.user_data(names, self._assigned, self._generation),
                        kept,
                        self._generation,
                        self._rack_id,
                    )
                ),
            )
            for name, assignor in self._by_name.items()
        ]

    def assigned(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Record the partitions that were assigned to this member in a generation."""
        self._assigned, self._generation = partitions, generation

    def knows(self, name: str | None) -> bool:
        """Whether this member has an assignor with this name."""
        return name in self._by_name

    def assign(
        self, name: str, subscriptions: Mapping[str, MemberSubscription], cluster: Cluster
    ) -> dict[str, bytes]:
        """Compute and encode each member's assignment.

        Args:
            name: the name of the assignor that the group has chosen.
            subscriptions: the subscriptions of the members.
            cluster: the cluster's metadata, which must include all subscribed topics that exist.
        """
        topics = wanted_topics(subscriptions)
        partitions = snapshot(cluster, topics)
        if missing := topics - partitions.keys():
            LOGGER.warning(
                "no partitions are known for these subscribed topics: %s", sorted(missing)
            )
        assigned = self._by_name[name].assign(partitions, subscriptions)
        return {member: encode_assignment(given) for member, given in assigned.items()}


def subscriptions_of(
    members: Iterable[JoinGroupResponseMember],
) -> dict[str, MemberSubscription]:
    """Decode the members' subscriptions, and return them keyed by member id.

    Malformed metadata is treated as a subscription to no topics, so that the other members still
    get partitions.
    """
    found: dict[str, MemberSubscription] = {}
    for member in members:
        try:
            found[member.member_id] = decode_subscription(
                bytes(member.metadata), member.group_instance_id
            )
        except WireFormatError as error:
            LOGGER.warning("member %s sent a malformed subscription: %s", member.member_id, error)
            found[member.member_id] = MemberSubscription(())
    return found


def wanted_topics(subscriptions: Mapping[str, MemberSubscription]) -> frozenset[str]:
    """Return the topics to which any member subscribes."""
    return frozenset(topic for each in subscriptions.values() for topic in each.topics)


def snapshot(cluster: Cluster, topics: Iterable[str]) -> Snapshot:
    """Return an assignor's input for these topics."""
    return partitions_by_topic(cluster, topics)
