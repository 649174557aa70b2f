"""What a consumer is subscribed to, what is assigned to it, and where it stands in each partition.

(Kafka: SubscriptionState.) Pure: ``now`` is a parameter, in seconds of the loop's clock. What is
assigned is the user's choice (:meth:`SubscriptionState.assign`) or that of a group, for the topics
that the user names (:meth:`SubscriptionState.subscribe`) or that a pattern matches.
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
    """Who decides what is assigned."""

    NONE = "none"
    TOPICS = "topics"
    PATTERN = "pattern"
    USER = "user"


class SubscriptionState:
    """See the module.

    Args:
        default_reset: where to begin without an offset (``auto.offset.reset``).

    Attributes:
        default_reset: as above.
        type: who decides what is assigned.
        topics: those subscribed to: the user's, or what the pattern matched last.
        pattern: the pattern of topics, if one was given.
        assignment_id: counts the changes of the assignment.
        on_change: called when a partition may have become fetchable, or ceased to be.
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

    # What the user wants.

    def subscribe(self, topics: Iterable[str]) -> bool:
        """Have a group assign partitions of these topics.

        Returns:
            Whether that is something new.

        Raises:
            ValueError: partitions were assigned by hand, or a pattern is subscribed to.
        """
        self._become(SubscriptionType.TOPICS)
        return self._change_topics(frozenset(topics))

    def subscribe_pattern(self, pattern: re.Pattern[str]) -> None:
        """Have a group assign partitions of all topics whose name the pattern matches, from start
        to end.

        Raises:
            ValueError: partitions were assigned by hand, or topics are subscribed to.
        """
        self._become(SubscriptionType.PATTERN)
        self.pattern = pattern

    def subscribe_matching(self, topics: Iterable[str]) -> bool:
        """Take those of the cluster's topics that the pattern matches.

        Returns:
            Whether they are others than before.
        """
        return self._change_topics(frozenset(filter(self.matches, topics)))

    def matches(self, topic: str) -> bool:
        """Whether the pattern matches a topic; False without one."""
        return self.pattern is not None and self.pattern.fullmatch(topic) is not None

    def assign(self, partitions: Iterable[TopicPartition]) -> bool:
        """Take exactly these partitions; those that were there before keep their positions.

        Returns:
            Whether they are others than before.

        Raises:
            ValueError: topics or a pattern are subscribed to.
        """
        self._become(SubscriptionType.USER)
        return self._set_assignment(partitions)

    def unsubscribe(self) -> None:
        """Want nothing any more."""
        self.type = SubscriptionType.NONE
        self.topics = self._group_topics = frozenset()
        self.pattern = None
        self._set_assignment(())

    def _become(self, type: SubscriptionType) -> None:
        if self.type not in {SubscriptionType.NONE, type}:
            raise ValueError(
                "a consumer either subscribes to topics, or to a pattern, or assigns itself "
                f"partitions: this one has {self.type.value}; unsubscribe() before"
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
        """Whether nothing is wanted at all."""
        if self.type is SubscriptionType.USER:
            return not self._partitions
        return self.type is SubscriptionType.NONE

    # What the group says.

    def subscribe_group(self, topics: Iterable[str]) -> bool:
        """As a group's leader, follow the metadata of all topics that its members want.

        Returns:
            Whether there are new ones among them.
        """
        before = self._group_topics
        self._group_topics = before | frozenset(topics)
        return self._group_topics != before

    def reset_group_subscription(self) -> None:
        """Follow nothing but what this member wants: it leads no more."""
        self._group_topics = self.topics

    def assign_from_group(self, partitions: Iterable[TopicPartition]) -> None:
        """Take what the group gave; those that were there before keep their positions.

        Raises:
            ValueError: no group is asked to assign anything.
        """
        if not self.is_group_managed:
            raise ValueError("partitions come from a group only when topics are subscribed to")
        self._set_assignment(partitions)

    def fits_subscription(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether all of an assignment is of topics that are subscribed to now."""
        if self.type is SubscriptionType.PATTERN:
            return all(self.matches(each.topic) for each in partitions)
        return all(each.topic in self.topics for each in partitions)

    def mark_revocation_pending(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand out nothing of these, which are to be given up, while callbacks run."""
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

    # What is assigned.

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return frozenset(self._partitions)

    @property
    def partitions(self) -> Mapping[TopicPartition, PartitionState]:
        """The assigned partitions in the order in which they are fetched, and their states."""
        return self._partitions

    def is_assigned(self, partition: TopicPartition) -> bool:
        return partition in self._partitions

    def state(self, partition: TopicPartition) -> PartitionState | None:
        """Of an assigned partition; None of others."""
        return self._partitions.get(partition)

    def move_to_end(self, partition: TopicPartition) -> None:
        """Fetch this one last the next time, so that no other starves."""
        state = self._partitions.pop(partition, None)
        if state is not None:
            self._partitions[partition] = state

    @property
    def metadata_topics(self) -> frozenset[str] | None:
        """The topics whose metadata are followed; None for all of them, to match a pattern."""
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
        """Where the next record to be handed out is; None if that is not known yet.

        Raises:
            ValueError: the partition is not assigned, as for the others.
        """
        return self._state(partition).position

    def positions(self) -> dict[TopicPartition, FetchPosition]:
        """Behind the last record that was handed out of each partition (Kafka: allConsumed)."""
        found = ((each, state.position) for each, state in self._partitions.items())
        return {each: position for each, position in found if position is not None}

    def finished_positions(self) -> dict[TopicPartition, FetchPosition]:
        """Behind the last record of each partition that the user has finished with.

        What may be committed without being asked for; see :attr:`.PartitionState.finished`.
        """
        found = ((each, state.finished) for each, state in self._partitions.items())
        return {each: position for each, position in found if position is not None}

    def seek(
        self, partition: TopicPartition, position: FetchPosition, *, is_valid: bool = True
    ) -> None:
        """Go on elsewhere.

        Args:
            partition: an assigned one.
            position: from where on.
            is_valid: the leader need not be asked whether it has what is before it. A committed
                position with an epoch has to be validated.
        """
        self._state(partition).seek(position, is_valid=is_valid)
        self.on_change()

    def request_reset(
        self, partition: TopicPartition, strategy: ResetStrategy | None = None
    ) -> None:
        """Go on where a strategy says, or the default one, once the log was asked."""
        self._state(partition).request_reset(strategy or self.default_reset)
        self.on_change()

    def pause(self, partition: TopicPartition) -> None:
        """Hand out nothing of it, and fetch nothing, until :meth:`resume`."""
        self._state(partition).is_paused = True
        self.on_change()

    def resume(self, partition: TopicPartition) -> None:
        self._state(partition).is_paused = False
        self.on_change()

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(each for each, state in self._partitions.items() if state.is_paused)

    # What has to be found out.

    def initializing(self) -> list[TopicPartition]:
        """Partitions whose committed offset has to be asked for."""
        return self._in_state(FetchState.INITIALIZING)

    def has_all_positions(self) -> bool:
        """Whether it is known of every partition where to go on."""
        return all(state.position is not None for state in self._partitions.values())

    def to_reset(self, now: float) -> list[TopicPartition]:
        """Partitions whose offset for their strategy is to be asked for now."""
        return self._due(FetchState.AWAIT_RESET, now)

    def to_validate(self, now: float) -> list[TopicPartition]:
        """Partitions whose leader is to be asked now whether it has what was read."""
        return self._due(FetchState.AWAIT_VALIDATION, now)

    def seconds_to_retry(self, now: float) -> float:
        """How long until a partition that has to wait may be asked for again."""
        waits = (state.retry_at - now for state in self._partitions.values())
        return min((each for each in waits if each > 0), default=math.inf)

    def look_at_leaders(self, cluster: Cluster) -> None:
        """Have the positions validated whose leaders have changed (KIP-320)."""
        for partition, state in self._partitions.items():
            topic = cluster.topics.get(partition.topic)
            known = topic.partitions.get(partition.partition) if topic is not None else None
            if known is not None and known.leader in cluster.nodes:
                state.look_at_leader(known.leader_epoch)

    def _due(self, wanted: FetchState, now: float) -> list[TopicPartition]:
        return [
            each
            for each in self._in_state(wanted)
            if not self._partitions[each].is_asking and self._partitions[each].retry_at <= now
        ]

    def _in_state(self, wanted: FetchState) -> list[TopicPartition]:
        return [each for each, state in self._partitions.items() if state.state is wanted]


def _nobody() -> None:
    """Nobody wants to know."""
