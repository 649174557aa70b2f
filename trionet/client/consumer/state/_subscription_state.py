"""The subscription of a consumer, its assignment, and its position in each partition.

(Kafka: SubscriptionState.) Pure: ``now`` is a parameter, in seconds of the loop's clock. Partitions
are assigned by the user (:meth:`SubscriptionState.assign`) or by a group, for the topics that the
user names (:meth:`SubscriptionState.subscribe`) or that match a pattern.
"""

# Compiled by mypyc.

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Iterable, Mapping

from ..._topic_partition import TopicPartition
from ...metadata._cluster import Cluster
from ._partition_state import FetchPosition, FetchState, PartitionState
from ._reset_strategy import ResetStrategy


class SubscriptionType(enum.Enum):
    """How partitions are assigned."""

    NONE = "none"
    TOPICS = "topics"
    PATTERN = "pattern"
    USER = "user"


class SubscriptionState:
    """The subscription, the assignment and the positions.

    More than 25 methods, as Kafka's class: every part of the consumer reads or changes this one
    state, and splitting it would only add names for its parts.

    Args:
        default_reset: where to begin without an offset (``auto.offset.reset``).

    Attributes:
        default_reset: as above.
        type: how partitions are assigned.
        topics: the topics of the subscription: the user's, or the last that matched the pattern.
        pattern: the pattern of topics; None without one.
        assignment_id: counts the changes of the assignment.
        on_change: called when a partition may have become fetchable, or stopped being so.
    """

    def __init__(self, default_reset: ResetStrategy) -> None:
        self.default_reset = default_reset
        self.type = SubscriptionType.NONE
        self.topics: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        self.assignment_id = 0
        self.on_change: Callable[[], None] = _nobody
        self._group_topics: frozenset[str] = frozenset()
        self._partitions: dict[TopicPartition, PartitionState] = {}

    # The user's subscription.

    def subscribe(self, topics: Iterable[str]) -> bool:
        """Have a group assign partitions of these topics.

        Returns:
            Whether the topics have changed.

        Raises:
            ValueError: partitions were assigned manually, or a pattern is subscribed to.
        """
        self._become(SubscriptionType.TOPICS)
        return self._change_topics(frozenset(topics))

    def subscribe_pattern(self, pattern: re.Pattern[str]) -> None:
        """Have a group assign partitions of all topics whose whole name matches the pattern.

        Raises:
            ValueError: partitions were assigned manually, or topics are subscribed to.
        """
        self._become(SubscriptionType.PATTERN)
        self.pattern = pattern

    def subscribe_matching(self, topics: Iterable[str]) -> bool:
        """Update the topics of a pattern from all topics of the cluster.

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
        return self._set_assignment(partitions)

    def unsubscribe(self) -> None:
        """Drop the subscription and the assignment."""
        self.type = SubscriptionType.NONE
        self.topics = self._group_topics = frozenset()
        self.pattern = None
        self._set_assignment(())

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
        """Whether there is nothing to read."""
        if self.type is SubscriptionType.USER:
            return not self._partitions
        return self.type is SubscriptionType.NONE

    # The group.

    def subscribe_group(self, topics: Iterable[str]) -> bool:
        """As the group's leader, follow the metadata of all topics that its members subscribe to.

        Returns:
            Whether there are new ones among them.
        """
        before = self._group_topics
        self._group_topics = before | frozenset(topics)
        return self._group_topics != before

    def reset_group_subscription(self) -> None:
        """Follow only the topics of this member: it is not the leader any more."""
        self._group_topics = self.topics

    def assign_from_group(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign the partitions that the group gave; those assigned before keep their positions.

        Raises:
            ValueError: there is no subscription.
        """
        if not self.is_group_managed:
            raise ValueError("a group can assign partitions only to a subscribed consumer")
        self._set_assignment(partitions)

    def fits_subscription(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether the current subscription includes the topics of all these partitions."""
        if self.type is SubscriptionType.PATTERN:
            return all(self.matches(each.topic) for each in partitions)
        return all(each.topic in self.topics for each in partitions)

    def mark_revocation_pending(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand out nothing of these, which are about to be given up, while callbacks run."""
        for each in partitions:
            self._state(each).is_revocation_pending = True
        self.on_change()

    def _set_assignment(self, partitions: Iterable[TopicPartition]) -> bool:
        wanted = dict.fromkeys(partitions)
        if wanted.keys() == self._partitions.keys():
            return False
        for given_up in self._partitions.keys() - wanted.keys():
            self._partitions[given_up].give_up()
        self._partitions = {
            each: self._partitions[each] if each in self._partitions else PartitionState()
            for each in wanted
        }
        self.assignment_id += 1
        self.on_change()
        return True

    # The assignment.

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return frozenset(self._partitions)

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionState]:
        """The assigned partitions and their states, in the order in which they are fetched."""
        return self._partitions

    def is_assigned(self, partition: TopicPartition) -> bool:
        return partition in self._partitions

    def state(self, partition: TopicPartition) -> PartitionState | None:
        """The state of an assigned partition; None for others."""
        return self._partitions.get(partition)

    def move_to_end(self, partition: TopicPartition) -> None:
        """Fetch this partition last the next time, so that no other starves."""
        state = self._partitions.pop(partition, None)
        if state is not None:
            self._partitions[partition] = state

    @property
    def metadata_topics(self) -> frozenset[str] | None:
        """The topics whose metadata are needed; None for all of them, to match a pattern."""
        if self.type is SubscriptionType.PATTERN:
            return None
        if self.type is SubscriptionType.USER:
            return frozenset(each.topic for each in self._partitions)
        return self._group_topics | self.topics

    def _state(self, partition: TopicPartition) -> PartitionState:
        state = self._partitions.get(partition)
        if state is None:
            raise ValueError(f"{partition} is not assigned to this consumer")
        return state

    # Positions.

    def position(self, partition: TopicPartition) -> FetchPosition | None:
        """The position of the next record to be handed out; None if it is not known yet.

        Raises:
            ValueError: the partition is not assigned, as for the others.
        """
        return self._state(partition).position

    def positions(self) -> dict[TopicPartition, FetchPosition]:
        """The position after the last record handed out of each partition (Kafka: allConsumed)."""
        found = ((each, state.position) for each, state in self._partitions.items())
        return {each: position for each, position in found if position is not None}

    def finished_positions(self) -> dict[TopicPartition, FetchPosition]:
        """The position after the last finished record of each partition.

        This is what may be auto-committed; see :attr:`.PartitionState.finished`.
        """
        found = ((each, state.finished) for each, state in self._partitions.items())
        return {each: position for each, position in found if position is not None}

    def seek(
        self, partition: TopicPartition, position: FetchPosition, *, is_valid: bool = True
    ) -> None:
        """Continue at another position.

        Args:
            partition: an assigned one.
            position: where to continue.
            is_valid: the leader need not be asked whether it has the records before it. A committed
                position with an epoch has to be validated.
        """
        self._state(partition).seek(position, is_valid=is_valid)
        self.on_change()

    def request_reset(
        self, partition: TopicPartition, strategy: ResetStrategy | None = None
    ) -> None:
        """Continue where a strategy says (by default the configured one), once that is known."""
        self._state(partition).request_reset(strategy or self.default_reset)
        self.on_change()

    def pause(self, partition: TopicPartition) -> None:
        """Hand out and fetch nothing of it until :meth:`resume`."""
        self._state(partition).is_paused = True
        self.on_change()

    def resume(self, partition: TopicPartition) -> None:
        self._state(partition).is_paused = False
        self.on_change()

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(each for each, state in self._partitions.items() if state.is_paused)

    # Positions to fetch, reset or validate.

    def initializing(self) -> list[TopicPartition]:
        """Partitions whose committed offset has to be fetched."""
        return self._in_state(FetchState.INITIALIZING)

    def has_all_positions(self) -> bool:
        """Whether the position of every partition is known."""
        return all(state.position is not None for state in self._partitions.values())

    def to_reset(self, now: float) -> list[TopicPartition]:
        """Partitions whose reset is due."""
        return self._due(FetchState.AWAIT_RESET, now)

    def to_validate(self, now: float) -> list[TopicPartition]:
        """Partitions whose validation is due."""
        return self._due(FetchState.AWAIT_VALIDATION, now)

    def seconds_to_retry(self, now: float) -> float:
        """The seconds until the backoff of a partition ends."""
        waits = (state.retry_at - now for state in self._partitions.values())
        return min((each for each in waits if each > 0), default=math.inf)

    def validate_positions_of_new_leaders(self, cluster: Cluster) -> None:
        """Have positions validated whose leaders have changed (KIP-320)."""
        for partition, state in self._partitions.items():
            topic = cluster.topics.get(partition.topic)
            known = topic.partitions.get(partition.partition) if topic is not None else None
            if known is not None and known.leader in cluster.nodes:
                state.validate_for_leader(known.leader_epoch)

    def _due(self, wanted: FetchState, now: float) -> list[TopicPartition]:
        return [
            each
            for each in self._in_state(wanted)
            if not self._partitions[each].is_request_in_flight
            and self._partitions[each].retry_at <= now
        ]

    def _in_state(self, wanted: FetchState) -> list[TopicPartition]:
        return [each for each, state in self._partitions.items() if state.state is wanted]


def _nobody() -> None:
    """Do nothing on a change."""
