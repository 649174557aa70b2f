"""The duties of a group's leader, which assigns partitions and watches for topic changes.

(Kafka: ConsumerCoordinator.onLeaderElected and its MetadataSnapshot.)
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final

import trio

from ....errors import LocalProtocolError
from ....protocol.messages.join_group import JoinGroupResponse
from ...network._kafka_client import KafkaClient
from ..state._subscription_state import SubscriptionState, SubscriptionType
from ._classic_member import ClassicMember
from ._group_assignment import GroupAssignment, Snapshot, snapshot, subscriptions_of, wanted_topics
from ._group_settings import GroupSettings

LOGGER: Final = logging.getLogger(__name__)


class GroupLeader:
    """The part of a member that computes assignments if the member is elected leader.

    Args:
        client: provides the metadata.
        subscription: the user's subscription.
        member: the member, which must rejoin when topics change.
        assignment: runs the assignors.
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
        self._assigned_from: Snapshot | None = None
        self._topics: frozenset[str] = frozenset()
        self._updates_seen = 0

    # Topics.

    async def until_topics_known(self) -> None:
        """Update the topics to subscribe to; for a pattern, first wait for the cluster's topics."""
        await trio.lowlevel.checkpoint_if_cancelled()
        metadata = self._client.metadata
        metadata.set_topics(self._subscription.metadata_topics)
        if self._subscription.type is SubscriptionType.PATTERN:
            while metadata.cluster.is_bootstrap or not metadata.updates:
                await self._client.until_updated(metadata.updates)
        self.check_metadata()

    def check_metadata(self) -> None:
        """Make the member rejoin if the topics or partitions to assign have changed."""
        metadata = self._client.metadata
        if metadata.updates == self._updates_seen:
            return
        self._updates_seen = metadata.updates
        cluster = metadata.cluster
        if self._subscription.type is SubscriptionType.PATTERN:
            excludes = self._settings.exclude_internal_topics
            is_new = self._subscription.subscribe_matching(
                name
                for name, topic in cluster.topics.items()
                if topic.partitions and not (topic.is_internal and excludes)
            )
            if is_new:
                self._member.request_rejoin("the topics that match the pattern have changed")
        before = self._assigned_from
        if before is not None and snapshot(cluster, self._topics) != before:
            self._member.request_rejoin("the partitions of subscribed topics have changed")

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
            return {}
        name = response.protocol_name
        if name is None or not self._assignment.knows(name):
            raise LocalProtocolError(
                f"the group has chosen assignor {name}, which this member does not support"
            )
        subscriptions = subscriptions_of(response.members)
        topics = wanted_topics(subscriptions)
        await self._until_described(topics)
        cluster = self._client.metadata.cluster
        self._topics = topics
        self._assigned_from = snapshot(cluster, topics)
        # KIP-814: a static leader has returned, and all members keep their assignments.
        if response.skip_assignment:
            return {}
        return self._assignment.assign(name, subscriptions, cluster)

    async def _until_described(self, topics: Collection[str]) -> None:
        """Wait for the metadata of these topics, to which members subscribe."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self._subscription.subscribe_group(topics)
        metadata = self._client.metadata
        metadata.set_topics(self._subscription.metadata_topics)
        if self._subscription.metadata_topics is None:
            return
        while not all(topic in metadata.cluster.topics for topic in topics):
            await self._client.until_updated(metadata.request_update())
