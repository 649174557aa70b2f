"""What a member tells the group's leader, and what a leader tells the members.

(Kafka: ConsumerCoordinator.metadata, onLeaderElected, MetadataSnapshot.) Pure.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from ....errors import ConfigError, WireFormatError
from ....protocol.messages.join_group import JoinGroupResponseMember
from ..._topic_partition import TopicPartition
from ...metadata._cluster import Cluster
from ..assignors import Assignor, MemberSubscription, RebalanceProtocol, partitions_by_topic
from ..assignors._consumer_protocol import (
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

LOGGER: Final = logging.getLogger(__name__)

Snapshot: TypeAlias = Mapping[str, Mapping[int, frozenset[str]]]
"""What an assignment was made from: topics, their partitions, and the racks of each."""


def rebalance_protocol(assignors: Sequence[Assignor]) -> RebalanceProtocol:
    """The highest protocol that all assignors have (KIP-429).

    So a group changes from an eager assignor to a cooperative one in two rolling restarts: with
    both in the list, and then with the new one alone.

    Raises:
        ConfigError: there are no assignors, or they have no protocol in common, or two have the
            same name.
    """
    names = [each.name for each in assignors]
    if not names or len(set(names)) < len(names):
        raise ConfigError(
            f"partition.assignment.strategy = {', '.join(names) or 'nothing'}: allowed are one or"
            " more assignors, each once"
        )
    common = frozenset.intersection(*(frozenset(each.protocols) for each in assignors))
    if not common:
        raise ConfigError(
            f"partition.assignment.strategy = {', '.join(names)}: these have no rebalance protocol"
            " in common; name assignors that do"
        )
    return max(common)


class GroupAssignment:
    """Speaks to the members' assignors.

    Args:
        assignors: by preference.
        rack_id: where this member stands.
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
        """What to join with: each assignor's name, and what it is told of this member.

        Args:
            topics: what the member subscribes to.
            owned: what it still holds.
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
        """This member was given these."""
        self._assigned, self._generation = partitions, generation

    def knows(self, name: str | None) -> bool:
        """Whether an assignor is among those of this member."""
        return name in self._by_name

    def assign(
        self, name: str, subscriptions: Mapping[str, MemberSubscription], cluster: Cluster
    ) -> dict[str, bytes]:
        """What each member of the group is to have.

        Args:
            name: of the assignor that the group has agreed on.
            subscriptions: of the members.
            cluster: with the topics that they want.
        """
        topics = wanted_topics(subscriptions)
        partitions = snapshot(cluster, topics)
        if missing := topics - partitions.keys():
            LOGGER.warning("no partitions are known of topics of the group: %s", sorted(missing))
        assigned = self._by_name[name].assign(partitions, subscriptions)
        return {member: encode_assignment(given) for member, given in assigned.items()}


def subscriptions_of(
    members: Iterable[JoinGroupResponseMember],
) -> dict[str, MemberSubscription]:
    """What the members want, by their ids.

    A member that nobody understands gets nothing, and does not keep the others from theirs.
    """
    found: dict[str, MemberSubscription] = {}
    for member in members:
        try:
            found[member.member_id] = decode_subscription(
                bytes(member.metadata), member.group_instance_id
            )
        except WireFormatError as error:
            LOGGER.warning("member %s of the group says nonsense: %s", member.member_id, error)
            found[member.member_id] = MemberSubscription(())
    return found


def wanted_topics(subscriptions: Mapping[str, MemberSubscription]) -> frozenset[str]:
    """All topics that some member wants."""
    return frozenset(topic for each in subscriptions.values() for topic in each.topics)


def snapshot(cluster: Cluster, topics: Iterable[str]) -> Snapshot:
    """What an assignment of these topics is made from."""
    return partitions_by_topic(cluster, topics)
