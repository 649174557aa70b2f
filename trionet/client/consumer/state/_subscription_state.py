"""The subscription of a consumer, and the partitions that are assigned to it.

(Kafka: SubscriptionState.) Pure. Partitions are assigned by the user
(:meth:`SubscriptionState.assign`) or by a group, for the topics that the user names
(:meth:`SubscriptionState.subscribe`) or that match a pattern.
"""

# Compiled by mypyc.

from __future__ import annotations

import enum
import re
from collections.abc import Iterable

from ..._topic_partition import TopicPartition
from ._assigned_partitions import AssignedPartitions
from ._reset_strategy import ResetStrategy


class SubscriptionType(enum.Enum):
    """How partitions are assigned."""

    NONE = "none"
    TOPICS = "topics"
    PATTERN = "pattern"
    USER = "user"


class SubscriptionState:
    """The subscription, and the partitions assigned because of it.

    Args:
        default_reset: where to start without an offset (``auto.offset.reset``).

    Attributes:
        type: how partitions are assigned.
        topics: the topics of the subscription: those the user named, or the last ones that matched
            the pattern.
        pattern: the topic pattern; None without one.
        assignment: the assigned partitions, with the position in each.
    """

    def __init__(self, default_reset: ResetStrategy) -> None:
        self.type = SubscriptionType.NONE
        self.topics: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        self.assignment = AssignedPartitions(default_reset)
        self._group_topics: frozenset[str] = frozenset()

    # The user's subscription.

    def subscribe(self, topics: Iterable[str]) -> bool:
        """Let a group assign the partitions of these topics.

        Returns:
            Whether the topics have changed.

        Raises:
            ValueError: partitions were assigned manually, or a pattern is subscribed to.
        """
        self._become(SubscriptionType.TOPICS)
        return self._change_topics(frozenset(topics))

    def subscribe_pattern(self, pattern: re.Pattern[str]) -> None:
        """Let a group assign the partitions of all topics whose whole name matches the pattern.

        Raises:
            ValueError: partitions were assigned manually, or topics are subscribed to.
        """
        self._become(SubscriptionType.PATTERN)
        self.pattern = pattern

    def subscribe_matching(self, topics: Iterable[str]) -> bool:
        """Update the topics that match the pattern from all topics of the cluster.

        Returns:
            Whether the topics have changed.
        """
        return self._change_topics(frozenset(filter(self.matches, topics)))

    def matches(self, topic: str) -> bool:
        """Whether the pattern matches a topic; False without a pattern."""
        return self.pattern is not None and self.pattern.fullmatch(topic) is not None

    def assign(self, partitions: Iterable[TopicPartition]) -> bool:
        """Assign exactly these partitions; those assigned before keep their positions.

        Returns:
            Whether the assignment has changed.

        Raises:
            ValueError: topics or a pattern are subscribed to.
        """
        self._become(SubscriptionType.USER)
        return self.assignment.replace(partitions)

    def unsubscribe(self) -> None:
        """Drop the subscription and the assignment."""
        self.type = SubscriptionType.NONE
        self.topics = self._group_topics = frozenset()
        self.pattern = None
        self.assignment.replace(())

    def _become(self, type: SubscriptionType) -> None:
        if self.type not in {SubscriptionType.NONE, type}:
            raise ValueError(
                "subscriptions to topics, to a pattern and manual assignment of partitions are"
                f" mutually exclusive, and this consumer uses {self.type.value}; call"
                " unsubscribe() first"
            )
        self.type = type

    def _change_topics(self, topics: frozenset[str]) -> bool:
        if topics == self.topics:
            return False
        self.topics = topics
        self._group_topics |= topics
        return True

    @property
    def is_group_managed(self) -> bool:
        """Whether a group assigns the partitions."""
        return self.type in {SubscriptionType.TOPICS, SubscriptionType.PATTERN}

    @property
    def is_empty(self) -> bool:
        """Whether there is no subscription and no assignment."""
        if self.type is SubscriptionType.USER:
            return not self.assignment.states
        return self.type is SubscriptionType.NONE

    # The group.

    def subscribe_group(self, topics: Iterable[str]) -> bool:
        """Follow the metadata of all topics that the group's members subscribe to, as its leader.

        Returns:
            Whether there are new topics among them.
        """
        before = self._group_topics
        self._group_topics = before | frozenset(topics)
        return self._group_topics != before

    def reset_group_subscription(self) -> None:
        """Follow only the topics of this member, which is no longer the leader."""
        self._group_topics = self.topics

    def assign_from_group(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign the partitions that the group assigned; earlier ones keep their positions.

        Raises:
            ValueError: there is no subscription.
        """
        if not self.is_group_managed:
            raise ValueError("a group can assign partitions only to a subscribed consumer")
        self.assignment.replace(partitions)

    def fits_subscription(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether the current subscription includes the topics of all these partitions."""
        if self.type is SubscriptionType.PATTERN:
            return all(self.matches(each.topic) for each in partitions)
        return all(each.topic in self.topics for each in partitions)

    @property
    def metadata_topics(self) -> frozenset[str] | None:
        """The topics whose metadata is needed; None for all topics, to match a pattern."""
        if self.type is SubscriptionType.PATTERN:
            return None
        if self.type is SubscriptionType.USER:
            return frozenset(each.topic for each in self.assignment.states)
        return self._group_topics | self.topics
