"""A consumer's subscription, and its assigned partitions with their positions.

(Kafka: SubscriptionState, PartitionStates.) Either the user assigns partitions
(:meth:`SubscriptionState.assign`); or the user subscribes to topic names
(:meth:`SubscriptionState.subscribe`) or to a pattern (:meth:`SubscriptionState.subscribe_pattern`),
and a group assigns the partitions. Nothing here reads a clock: ``now`` is the current time on the
event loop's clock, in seconds.
"""

# Compiled by mypyc.

from __future__ import annotations

import enum
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from ...._util.patterns._name_pattern import NamePattern
from ..._argument_checks import TOPIC_LENGTH_MAX
from ..._topic_partition import EVENTS, TopicPartition
from ...network._cluster import Cluster
from ..records._chunk import FetchPosition
from ._partition_state import FetchState, PartitionLeader, PartitionState
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
        looked_up: the topics of pending look-ups of offsets and partitions, with the number of
            look-ups for each.
        lost_at: the number of the event (see :data:`.EVENTS`) at which a partition was last given
            up whose records had been handed out, and not been committed by the program since; 0 if
            that has not happened, and infinity if no callback announced it to the program.
    """

    def __init__(self, default_reset: ResetStrategy) -> None:
        self.type = SubscriptionType.NONE
        self.topics: frozenset[str] = frozenset()
        self.pattern: NamePattern | None = None
        self.assignment = AssignedPartitions(default_reset)
        self.looked_up: Counter[str] = Counter()
        self.lost_at = 0.0
        self._group_topics: frozenset[str] = frozenset()  # includes this member's topics

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
        self.pattern = NamePattern(pattern)

    def subscribe_matching(self, topics: Iterable[str]) -> bool:
        """Update the topics that match the pattern, given all topics of the cluster.

        Returns:
            Whether the topics have changed.
        """
        return self._change_topics(frozenset(filter(self.matches, topics)))

    def matches(self, topic: str) -> bool:
        """Whether a topic matches the pattern; False without a pattern."""
        # A name that no topic can have, which a broker may make up, can take a pattern very long.
        if self.pattern is None or len(topic) > TOPIC_LENGTH_MAX:
            return False
        return self.pattern.matches(topic)

    def assign(self, partitions: Iterable[TopicPartition]) -> bool:
        """Assign exactly these partitions; partitions that stay assigned keep their positions.

        Returns:
            Whether the assignment has changed.

        Raises:
            ValueError: there is a subscription.
        """
        self._become(SubscriptionType.USER)
        return self._replace(partitions, is_announced=True)

    def unsubscribe(self) -> None:
        """Drop the subscription and the assignment."""
        self.type = SubscriptionType.NONE
        self.topics = self._group_topics = frozenset()
        self.pattern = None
        self._replace((), is_announced=True)

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

    def subscribe_group(self, topics: Iterable[str]) -> None:
        """As the leader, include the topics of all members in metadata requests, and no others.

        A request for a topic to which no member subscribes any more could create it after its
        deletion (``allow.auto.create.topics``).
        """
        self._group_topics = self.topics.union(topics)

    def reset_group_subscription(self) -> None:
        """Include only this member's topics in metadata requests, since it is not the leader."""
        self._group_topics = self.topics

    def assign_from_group(
        self, partitions: Iterable[TopicPartition], *, is_announced: bool
    ) -> None:
        """Assign the partitions that the group assigned; see :meth:`.AssignedPartitions.replace`.

        Args:
            partitions: the partitions.
            is_announced: whether the program knew beforehand that it gives up partitions, and so
                could end a transaction.

        Raises:
            ValueError: there is no subscription.
        """
        if not self.is_group_managed:
            raise ValueError("a group can assign partitions only to a subscribed consumer")
        self._replace(partitions, is_announced=is_announced)

    def _replace(self, partitions: Iterable[TopicPartition], *, is_announced: bool) -> bool:
        wanted = dict.fromkeys(partitions)
        states = self.assignment.states
        if any(state.is_uncommitted for each, state in states.items() if each not in wanted):
            self.lost_at = next(EVENTS) if is_announced else math.inf
        return self.assignment.replace(wanted)

    def fits_subscription(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether the current subscription includes the topics of all these partitions."""
        if self.type is SubscriptionType.PATTERN:
            return all(self.matches(each.topic) for each in partitions)
        return all(each.topic in self.topics for each in partitions)

    @property
    def metadata_topics(self) -> frozenset[str] | None:
        """The topics whose metadata is needed; None for all topics, to match a pattern."""
        topics = self.subscribed_topics
        return None if topics is None else topics.union(self.looked_up)

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """The :attr:`metadata_topics` without those of pending look-ups."""
        if self.type is SubscriptionType.PATTERN:
            return None
        if self.type is SubscriptionType.USER:
            return frozenset(each.topic for each in self.assignment.states)
        return self._group_topics


class AssignedPartitions:
    """The assigned partitions and their states.

    Args:
        default_reset: the default reset strategy (``auto.offset.reset``).

    Attributes:
        default_reset: the default reset strategy.
        on_change: called when a partition may have become fetchable or unfetchable.
    """

    def __init__(self, default_reset: ResetStrategy) -> None:
        self.default_reset = default_reset
        self.on_change: Callable[[], None] = _do_nothing
        self._states: dict[TopicPartition, PartitionState] = {}
        # The partitions that may lack a valid position, so that the network task, which looks for
        # them in each turn, need not visit all partitions.
        self._without_position: dict[TopicPartition, PartitionState] = {}

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return frozenset(self._states)

    @property
    def states(self) -> Mapping[TopicPartition, PartitionState]:
        """The assigned partitions and their states, in fetch order."""
        return self._states

    def state(self, partition: TopicPartition) -> PartitionState | None:
        """Return the state of a partition; None if it is not assigned."""
        return self._states.get(partition)

    def move_to_end(self, partition: TopicPartition) -> None:
        """Move a partition to the end of the fetch order, so that no other partition starves."""
        state = self._states.pop(partition, None)
        if state is not None:
            self._states[partition] = state

    def _state(self, partition: TopicPartition) -> PartitionState:
        state = self._states.get(partition)
        if state is None:
            raise ValueError(f"{partition} is not assigned to this consumer")
        return state

    def require(self, partitions: Iterable[TopicPartition]) -> None:
        """Check that all these partitions are assigned, before any of them is changed.

        Raises:
            ValueError: a partition is not assigned.
        """
        for each in partitions:
            self._state(each)

    # Changes.

    def replace(self, partitions: Iterable[TopicPartition]) -> bool:
        """Assign exactly these partitions; partitions that stay assigned keep their positions.

        Returns:
            Whether the assignment has changed.
        """
        wanted = dict.fromkeys(partitions)
        if wanted.keys() == self._states.keys():
            return False
        for given_up in self._states.keys() - wanted.keys():
            self._states[given_up].give_up()
        self._states = {
            each: self._states[each] if each in self._states else PartitionState()
            for each in wanted
        }
        self._without_position = {
            each: state
            for each, state in self._states.items()
            if state.state is not FetchState.FETCHING
        }
        self.on_change()
        return True

    def mark_revocation_pending(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop handing out records of partitions that are about to be revoked."""
        for each in partitions:
            self._state(each).is_revocation_pending = True
        self.on_change()

    # Positions.

    def position(self, partition: TopicPartition) -> FetchPosition | None:
        """Return the position of the next record to hand out; None if it is unknown.

        Raises:
            ValueError: the partition is not assigned.
        """
        return self._state(partition).position

    def positions(self) -> dict[TopicPartition, FetchPosition]:
        """Return the positions after the records that were handed out (Kafka: allConsumed)."""
        found = ((each, state.position) for each, state in self._states.items())
        return {each: position for each, position in found if position is not None}

    def finished_positions(self) -> dict[TopicPartition, FetchPosition]:
        """Return the positions after the finished records.

        These positions are safe to auto-commit; see :attr:`.PartitionState.finished`.
        """
        found = ((each, state.finished) for each, state in self._states.items())
        return {each: position for each, position in found if position is not None}

    def seek(
        self, partition: TopicPartition, position: FetchPosition, *, is_valid: bool = True
    ) -> None:
        """Set the position in a partition.

        Args:
            partition: an assigned partition.
            position: the new position.
            is_valid: whether the leader need not validate the position. A committed offset with a
                leader epoch must be validated.
        """
        state = self._state(partition)
        state.seek(position, is_valid=is_valid)
        if not is_valid:
            self._without_position[partition] = state
        self.on_change()

    def request_reset(
        self, partition: TopicPartition, strategy: ResetStrategy | None = None
    ) -> None:
        """Start resetting a position, by default with the default strategy."""
        state = self._state(partition)
        state.request_reset(strategy or self.default_reset)
        self._without_position[partition] = state
        self.on_change()

    def pause(self, partition: TopicPartition) -> None:
        """Stop handing out and fetching records of a partition until :meth:`resume`."""
        self._state(partition).is_paused = True
        self.on_change()

    def resume(self, partition: TopicPartition) -> None:
        self._state(partition).is_paused = False
        self.on_change()

    def stop_at(self, partition: TopicPartition, offset: int) -> None:
        """Stop reading a partition at an offset."""
        self._state(partition).stop_at(offset)
        self.on_change()

    @property
    def are_all_stopped(self) -> bool:
        """Whether reading has stopped in every partition; False if none is assigned."""
        states = self._states.values()
        return bool(states) and all(state.is_stopped for state in states)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(each for each, state in self._states.items() if state.is_paused)

    # Positions to fetch, reset or validate.

    def initializing(self) -> list[TopicPartition]:
        """Return the partitions that have no initial position yet."""
        return self._in_state(FetchState.INITIALIZING)

    def reset_initial_positions(self) -> None:
        """Reset the positions of partitions that have none yet, and no committed offset either."""
        for each in self.initializing():
            self.request_reset(each)

    def to_reset(self, now: float) -> list[TopicPartition]:
        """Return the partitions whose reset is due."""
        return self._due(FetchState.AWAIT_RESET, now)

    def to_validate(self, now: float) -> list[TopicPartition]:
        """Return the partitions whose validation is due."""
        return self._due(FetchState.AWAIT_VALIDATION, now)

    def seconds_to_retry(self, now: float) -> float:
        """Return the seconds until the first backoff of a reset or validation ends."""
        waits = (state.retry_at - now for state in self._without_position.values())
        return min((each for each in waits if each > 0), default=math.inf)

    def validate_positions_of_new_leaders(self, cluster: Cluster) -> None:
        """Mark positions for validation in partitions that have a new leader (KIP-320)."""
        for partition, state in self._states.items():
            topic = cluster.topics.get(partition.topic)
            known = topic.partitions.get(partition.partition) if topic is not None else None
            if known is not None and known.leader in cluster.nodes:
                state.validate_for_leader(PartitionLeader(known.leader, known.leader_epoch))
                if state.state is FetchState.AWAIT_VALIDATION:
                    self._without_position[partition] = state

    def _due(self, wanted: FetchState, now: float) -> list[TopicPartition]:
        return [
            each
            for each in self._in_state(wanted)
            if not self._states[each].is_request_in_flight and self._states[each].retry_at <= now
        ]

    def _in_state(self, wanted: FetchState) -> list[TopicPartition]:
        states = self._without_position
        for found in [each for each, s in states.items() if s.state is FetchState.FETCHING]:
            del states[found]
        return [each for each, state in states.items() if state.state is wanted]


def _do_nothing() -> None:
    """Do nothing. The default of :attr:`AssignedPartitions.on_change`."""
