"""A consumer's subscription and assigned partitions.

(Kafka: SubscriptionState.) Either the user assigns partitions (:meth:`SubscriptionState.assign`);
or the user subscribes to topic names (:meth:`SubscriptionState.subscribe`) or to a pattern
(:meth:`SubscriptionState.subscribe_pattern`), and a group assigns the partitions.
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

    NONE = "nothing"
    TOPICS = "a subscription to topics"
    PATTERN = "a subscription to a pattern"
    USER = "manual assignment"


class SubscriptionState:
    """A consumer's subscription and assigned partitions.

    Args:
        default_reset: the default reset strategy (``auto.offset.reset``).

    Attributes:
        type: how partitions are assigned.
        topics: the topics of the subscription: those that the user named, or those that currently
            match the pattern.
        pattern: the topic pattern; None if there is none.
        assignment: the assigned partitions, with their positions.
    """

    def __init__(self, default_reset: ResetStrategy) -> None:
        self.type = SubscriptionType.NONE
        self.topics: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        self.assignment = AssignedPartitions(default_reset)
        self._group_topics: frozenset[str] = frozenset()

    # The user's subscription.

    def subscribe(self, topics: Iterable[str]) -> bool:
        """Subscribe to topics by name.

        Returns:
            Whether the topics have changed.

        Raises:
            ValueError: partitions are assigned manually, or there is a pattern subscription.
        """
        self._become(SubscriptionType.TOPICS)
        return self._change_topics(frozenset(topics))

    def subscribe_pattern(self, pattern: re.Pattern[str]) -> None:
        """Subscribe to all topics whose full names match a pattern.

        Raises:
            ValueError: partitions are assigned manually, or there is a subscription by name.
        """
        self._become(SubscriptionType.PATTERN)
        self.pattern = pattern

    def subscribe_matching(self, topics: Iterable[str]) -> bool:
        """Update the topics that match the pattern, given all topics of the cluster.

        Returns:
            Whether the topics have changed.
        """
        return self._change_topics(frozenset(filter(self.matches, topics)))

    def matches(self, topic: str) -> bool:
        """Whether a topic matches the pattern; False without a pattern."""
        return self.pattern is not None and self.pattern.fullmatch(topic) is not None

    def assign(self, partitions: Iterable[TopicPartition]) -> bool:
        """Assign exactly these partitions; partitions that stay assigned keep their positions.

        Returns:
            Whether the assignment has changed.

        Raises:
            ValueError: there is a subscription.
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
                "subscribing to topics, subscribing to a pattern and assigning partitions manually"
                f" are mutually exclusive, and this consumer has {self.type.value}; call"
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
        """Whether there is neither a subscription nor a manual assignment."""
        if self.type is SubscriptionType.USER:
            return not self.assignment.states
        return self.type is SubscriptionType.NONE

    # The group.

    def subscribe_group(self, topics: Iterable[str]) -> bool:
        """As the leader, include the topics of all members in metadata requests.

        Returns:
            Whether any of the topics are new.
        """
        before = self._group_topics
        self._group_topics = before | frozenset(topics)
        return self._group_topics != before

    def reset_group_subscription(self) -> None:
        """Include only this member's topics in metadata requests, since it is not the leader."""
        self._group_topics = self.topics

    def assign_from_group(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign the partitions that the group assigned; see :meth:`.AssignedPartitions.replace`.

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
