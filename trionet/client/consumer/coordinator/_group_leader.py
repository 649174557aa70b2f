"""The assignors of a member: the subscriptions that it sends, and its duties as a group's leader.

(Kafka: ConsumerCoordinator.metadata, onLeaderElected, MetadataSnapshot.) The leader assigns
partitions, and watches for topic changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import trio

from ...._util._logging import get_logger
from ....errors import ConfigError, LocalProtocolError, WireFormatError
from ....protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from ..._topic_partition import TopicPartition
from ...network._kafka_client import KafkaClient
from ..assignors import (
    Assignor,
    MemberSubscription,
    PartitionsByTopic,
    RebalanceProtocol,
    partitions_by_topic,
)
from ..assignors._consumer_protocol import (
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from ..state._subscription_state import SubscriptionState, SubscriptionType
from ._classic_member import ClassicMember, GroupSettings

LOGGER: Final = get_logger(__name__)


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
    """A member's assignors, with the last assignment, from which they compute its user data.

    Args:
        assignors: the assignors, in order of preference.
        rack_id: the rack of this member.

    Attributes:
        protocol: the rebalance protocol that all assignors support.
        by_name: the assignors, keyed by name.
    """

    def __init__(self, assignors: Sequence[Assignor], rack_id: str | None) -> None:
        self.protocol = rebalance_protocol(assignors)
        self.by_name = {each.name: each for each in assignors}
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
            for name, assignor in self.by_name.items()
        ]

    def assigned(self, partitions: Sequence[TopicPartition], generation: int) -> None:
        """Record the partitions that were assigned to this member in a generation."""
        self._assigned, self._generation = partitions, generation


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


class GroupLeader:
    """The part of a member that computes assignments if the member is elected leader.

    Args:
        client: provides the metadata.
        subscription: the user's subscription.
        member: the member, which must rejoin when topics change.
        assignment: has the assignors.
        settings: the group settings.
    """

    def __init__(
        self,
        client: KafkaClient,
        subscription: SubscriptionState,
        member: ClassicMember,
        assignment: GroupAssignment,
        settings: GroupSettings,
    ) -> None:
        self._client = client
        self._subscription = subscription
        self._member = member
        self._assignment = assignment
        self._settings = settings
        self._assigned_from: PartitionsByTopic | None = None  # see _assignable
        self._topics: frozenset[str] = frozenset()
        self._updates_seen = 0

    # Topics.

    async def until_topics_known(self) -> None:
        """Update the topics to subscribe to; for a pattern, first wait for the cluster's topics."""
        await trio.lowlevel.checkpoint_if_cancelled()
        metadata = self._client.metadata
        metadata.set_topics(self._subscription.metadata_topics)
        if self._subscription.type is SubscriptionType.PATTERN:
            while not metadata.has_all_topics:
                await self._client.until_updated(metadata.request_update())
        self.match_pattern()
        self.check_metadata()

    def match_pattern(self) -> None:
        """Make the member rejoin if other topics match the pattern, as far as all are known."""
        metadata = self._client.metadata
        if self._subscription.type is SubscriptionType.PATTERN and metadata.has_all_topics:
            excludes = self._settings.exclude_internal_topics
            is_new = self._subscription.subscribe_matching(
                name
                for name, topic in metadata.cluster.topics.items()
                if topic.partitions and not (topic.is_internal and excludes)
            )
            if is_new:
                self._member.request_rejoin("the topics that match the pattern have changed")

    def check_metadata(self) -> None:
        """Make the member rejoin if the topics or partitions to assign have changed."""
        metadata = self._client.metadata
        if metadata.updates == self._updates_seen:
            return
        self._updates_seen = metadata.updates
        self.match_pattern()
        before = self._assigned_from
        if before is not None:
            now = self._assignable(partitions_by_topic(metadata.cluster, self._topics))
            if now != before:
                self._member.request_rejoin("the partitions of subscribed topics have changed")

    def _assignable(self, partitions: PartitionsByTopic) -> PartitionsByTopic:
        """Return that part of an assignor's input whose change calls for a new assignment.

        A broker that is down has no rack in the metadata. That is no reason for a rebalance unless
        ``client.rack`` is set (Kafka: ConsumerCoordinator.PartitionRackInfo).
        """
        if self._settings.rack_id:
            return partitions
        return {topic: dict.fromkeys(found, frozenset()) for topic, found in partitions.items()}

    # Assignments.

    async def assignments(self, response: JoinGroupResponse) -> dict[str, bytes]:
        """Compute the assignments of all members, if this member is the leader.

        Returns:
            The encoded assignments, keyed by member id; empty if this member is not the leader, or
            if the coordinator keeps the previous assignments (KIP-814).

        Raises:
            LocalProtocolError: the group has chosen an assignor that this member does not support.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        self._assigned_from = None
        if response.leader != response.member_id:
            self._subscription.reset_group_subscription()
            self._client.metadata.set_topics(self._subscription.metadata_topics)
            return {}
        name = response.protocol_name
        assignor = None if name is None else self._assignment.by_name.get(name)
        if assignor is None:
            raise LocalProtocolError(
                f"the group has chosen assignor {name}, which this member does not support"
            )
        subscriptions = subscriptions_of(response.members)
        # No topic has an empty name, so that its metadata would be waited for without end.
        topics = frozenset(
            topic for each in subscriptions.values() for topic in each.topics if topic
        )
        await self._until_described(topics)
        self._topics = topics
        partitions = partitions_by_topic(self._client.metadata.cluster, topics)
        self._assigned_from = self._assignable(partitions)
        # KIP-814: a static leader has returned, and all members keep their assignments.
        if response.skip_assignment:
            return {}
        if missing := topics - partitions.keys():
            LOGGER.warning(
                "no partitions are known for these subscribed topics: %s", sorted(missing)
            )
        assigned = assignor.assign(partitions, subscriptions)
        return {member: encode_assignment(given) for member, given in assigned.items()}

    async def _until_described(self, topics: frozenset[str]) -> None:
        """Wait for the metadata of these topics, to which members subscribe.

        Another member may know of topics that were created since the last update. With a pattern,
        topics that are missing from the next one do not exist.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        self._subscription.subscribe_group(topics)
        metadata = self._client.metadata
        metadata.set_topics(self._subscription.metadata_topics)
        while missing := topics - metadata.cluster.topics.keys():
            await self._client.until_updated(metadata.request_topics(missing))
            if metadata.topics is None:
                break
