"""The part of a group's leader: it divides the partitions, and notices when they change.

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
    """See the module; every member has one, in case that it is elected.

    Args:
        client: has the metadata.
        subscription: what the user wants.
        member: who may have to join anew.
        assignment: speaks to the assignors.
        settings: of the group.
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

    # What is subscribed to.

    async def until_topics_known(self) -> None:
        """Wait until a pattern can be matched; the cluster was asked for all topics."""
        await trio.lowlevel.checkpoint_if_cancelled()
        metadata = self._client.metadata
        metadata.want(self._subscription.metadata_topics)
        if self._subscription.type is SubscriptionType.PATTERN:
            while metadata.cluster.is_bootstrap or not metadata.updates:
                await self._client.until_updated(metadata.updates)
        self.look_at_metadata()

    def look_at_metadata(self) -> None:
        """Have the member join anew if what the group divides has changed since it did."""
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
                self._member.request_rejoin("the pattern matches other topics")
        before = self._assigned_from
        if before is not None and snapshot(cluster, self._topics) != before:
            self._member.request_rejoin("the partitions of subscribed topics have changed")

    # What is assigned.

    async def assignments(self, answer: JoinGroupResponse) -> dict[str, bytes]:
        """What the members are to have, if this one leads them; nothing otherwise.

        Raises:
            LocalProtocolError: the group has agreed on an assignor that this member lacks.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        self._assigned_from = None
        if answer.leader != answer.member_id:
            self._subscription.reset_group_subscription()
            return {}
        name = answer.protocol_name
        if name is None or not self._assignment.knows(name):
            raise LocalProtocolError(f"the group has agreed on {name}, which this member lacks")
        subscriptions = subscriptions_of(answer.members)
        topics = wanted_topics(subscriptions)
        await self._until_described(topics)
        cluster = self._client.metadata.cluster
        self._topics = topics
        self._assigned_from = snapshot(cluster, topics)
        if answer.skip_assignment:  # KIP-814: a static leader came back, all keep what they have
            return {}
        return self._assignment.assign(name, subscriptions, cluster)

    async def _until_described(self, topics: Collection[str]) -> None:
        """Wait until the cluster was asked for all topics that the members want."""
        await trio.lowlevel.checkpoint_if_cancelled()
        self._subscription.subscribe_group(topics)
        metadata = self._client.metadata
        metadata.want(self._subscription.metadata_topics)
        if self._subscription.metadata_topics is None:
            return
        while not all(topic in metadata.cluster.topics for topic in topics):
            await self._client.until_updated(metadata.request_update())
