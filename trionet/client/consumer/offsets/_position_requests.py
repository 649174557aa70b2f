"""Requests to partition leaders about positions: resets, and validation after leader changes.

(Kafka: OffsetFetcher, OffsetFetcherUtils, OffsetsForLeaderEpochClient.) A reset looks up the offset
for a reset strategy. A validation checks whether a new leader has the records that were read, since
its log may have been truncated (KIP-320). Nothing here is async or blocks: the network task calls
:meth:`PositionRequests.send` between polls.
"""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import trio

from ...._util._logging import get_logger
from ...._util._text import counted
from ....errors import LogTruncationError, NoOffsetForPartitionError, TrionetError
from ....protocol import api_keys, error_codes
from ....protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ....protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ..._api_errors import STALE_METADATA, api_error, is_retriable, offset_error
from ..._backoff import ExponentialBackoff
from ..._topic_partition import TopicPartition
from ...network._cluster import Cluster, Node
from ...network._kafka_client import KafkaClient
from ...network._responses import ClientResponse
from ..records._chunk import FetchPosition
from ..state._partition_state import PartitionLeader, PartitionState
from ..state._pending_errors import PendingErrors
from ..state._reset_strategy import LATEST, NONE
from ..state._subscription_state import SubscriptionState

logger = get_logger("trionet.client.consumer")

#: The first ListOffsets version that returns a single offset and its timestamp.
LIST_VERSION_MIN = 1
#: The first ListOffsets version with an isolation level.
LIST_VERSION_MIN_READ_COMMITTED = 2
#: Older versions of OffsetForLeaderEpoch require permissions for the whole cluster.
EPOCH_VERSION_MIN = 3

#: How often a leader that may have been replaced is asked again, which takes about 1.5 s.
_REPLACED_LEADER_TRIES = 4

UNKNOWN_OFFSET = -1
_UNDEFINED = -1
_CONSUMER = -1


def by_leader(
    cluster: Cluster, partitions: Iterable[TopicPartition]
) -> tuple[dict[Node, list[TopicPartition]], list[TopicPartition]]:
    """Group partitions by leader; return the groups, and the partitions without a leader."""
    found: dict[Node, list[TopicPartition]] = {}
    unknown: list[TopicPartition] = []
    for each in partitions:
        leader = cluster.leader(*each)
        if leader is None:
            unknown.append(each)
        else:
            found.setdefault(leader, []).append(each)
    return found, unknown


def leader_epoch(cluster: Cluster, partition: TopicPartition) -> int:
    """Return the leader epoch of a partition; -1 if it is unknown."""
    topic = cluster.topics.get(partition.topic)
    known = topic.partitions.get(partition.partition) if topic is not None else None
    return known.leader_epoch if known is not None else -1


def is_gone(cluster: Cluster, partition: TopicPartition) -> bool:
    """Whether the topic is known to have no such partition, for example after its deletion."""
    topic = cluster.topics.get(partition.topic)
    return topic is not None and partition.partition not in topic.partitions


def missing_partition(cluster: Cluster, partitions: Iterable[TopicPartition]) -> str:
    """Return which of the partitions does not exist, for messages; empty if none is missing.

    Partitions of topics without metadata are not missing.
    """
    for each in partitions:
        if is_gone(cluster, each):
            known = cluster.topics[each.topic]
            if known.partitions:
                there = counted(len(known.partitions), "partition")
                return f"partition {each.partition} does not exist; topic {each.topic} has {there}"
            name = error_codes.name_of(known.error_code)
            return f"topic {each.topic} has no partitions; the brokers returned {name}"
    return ""


class InFlight(NamedTuple):
    """The state of a partition at the time of the request to its leader."""

    state: PartitionState
    jumps: int
    leader: PartitionLeader
    position: FetchPosition | None


#: A leader's response for one partition.
P = TypeVar("P", ListOffsetsPartitionResponse, EpochEndOffset)


class PositionRequests(ABC, Generic[P]):
    """The base of the requests to leaders about positions.

    Args:
        client: sends the requests.
        subscriptions: holds the assigned partitions.
        errors: collects errors, which the user's next request for a record raises.
        retry: the backoff before the retry of a partition.
        rng: jitters the backoff.
    """

    def __init__(
        self,
        client: KafkaClient,
        subscriptions: SubscriptionState,
        errors: PendingErrors,
        retry: ExponentialBackoff,
        rng: random.Random,
    ) -> None:
        self._client = client
        self._assignment = subscriptions.assignment
        self._errors = errors
        self._retry = retry
        self._rng = rng

    @abstractmethod
    def _due(self, now: float) -> list[TopicPartition]:
        """Return the partitions for which a request is due."""

    @abstractmethod
    def _request(self, node: Node, in_flight: dict[TopicPartition, InFlight]) -> None:
        """Send a request for these partitions to their leader."""

    @staticmethod
    @abstractmethod
    def _offset(partition: P) -> int:
        """Return the offset that a leader returned for one partition."""

    @abstractmethod
    def _succeeded(self, name: TopicPartition, in_flight: InFlight, partition: P) -> None:
        """Handle a leader's response for one partition, which has no error."""

    def send(self, now: float) -> float:
        """Send the requests that are due; return the seconds until the next call is due."""
        metadata = self._client.metadata
        states = self._assignment.states
        due = [each for each in self._due(now) if not self._errors.has(each, states[each])]
        leaders, unknown = by_leader(metadata.cluster, due)
        if unknown:
            metadata.request_topics(each.topic for each in unknown)
        seconds = math.inf
        for node, names in leaders.items():
            if self._client.ready(node):
                self._request(node, {each: self._in_flight(each, node) for each in names})
            else:
                connection = self._client.connection(node)
                seconds = min(seconds, connection.poll_delay(now) or math.inf)
                self._errors.add_if_final(connection.authentication_error)
        return min(seconds, self._assignment.seconds_to_retry(now))

    def _in_flight(self, name: TopicPartition, node: Node) -> InFlight:
        state = self._assignment.states[name]
        epoch = leader_epoch(self._client.metadata.cluster, name)
        # From now on, a change of the leader makes the response obsolete.
        state.leader = leader = PartitionLeader(node.id, epoch)
        return InFlight(state, state.jumps, leader, state.position)

    def _handle_response(
        self,
        in_flight: Mapping[TopicPartition, InFlight],
        partitions_of: Callable[[Any], Mapping[TopicPartition, P]],
        response: ClientResponse,
    ) -> None:
        """Handle a response, ignoring partitions whose position has changed since the request."""
        self._errors.add_if_final(response.error)
        found: Mapping[TopicPartition, P] = {}
        if response.error is None:
            found = partitions_of(response.body)
        for name, each in in_flight.items():
            if each.state.jumps != each.jumps:
                continue
            each.state.is_request_in_flight = False
            partition = found.get(name)
            invalid: TrionetError | None = None
            if partition is not None and not partition.error_code:
                invalid = offset_error(self._offset(partition), name)
                if invalid is None:
                    self._succeeded(name, each, partition)
                    continue
            each.state.put_off(trio.current_time(), self._retry, self._rng)
            if invalid is not None:
                logger.warning("%s; retrying", invalid)
            elif partition is not None:
                self._failed(name, each.state, partition.error_code)

    def _failed(self, name: TopicPartition, state: PartitionState, error_code: int) -> None:
        if error_code in STALE_METADATA:
            self._client.metadata.request_update()
        error = api_error(error_code, f"the position in {name}")
        if not is_retriable(error):
            self._errors.add_partition(name, state, error)


class OffsetReset(PositionRequests[ListOffsetsPartitionResponse]):
    """Looks up offsets with ListOffsets, and resets positions to them.

    Args:
        client: sends the requests.
        subscriptions: holds the assigned partitions.
        errors: collects errors, which the user's next request for a record raises.
        retry: the backoff before the retry of a partition.
        rng: jitters the backoff.
        is_read_committed: whether a log is taken to end where its first open transaction starts.
        now_ms: returns the wall-clock time in milliseconds since the epoch.
    """

    def __init__(
        self,
        client: KafkaClient,
        subscriptions: SubscriptionState,
        errors: PendingErrors,
        retry: ExponentialBackoff,
        rng: random.Random,
        *,
        is_read_committed: bool,
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(client, subscriptions, errors, retry, rng)
        self._is_read_committed = is_read_committed
        self._now_ms = now_ms

    def _due(self, now: float) -> list[TopicPartition]:
        due = self._assignment.to_reset(now)
        for name in due:
            state = self._assignment.states[name]
            if state.strategy == NONE and not self._errors.has(name, state):
                self._errors.add_partition(name, state, _no_offset(name))
        return due

    def _request(self, node: Node, in_flight: dict[TopicPartition, InFlight]) -> None:
        now_ms = self._now_ms()
        timestamps: dict[TopicPartition, int] = {}
        for name, each in in_flight.items():
            assert each.state.strategy is not None
            each.state.is_request_in_flight = True
            timestamps[name] = each.state.strategy.timestamp(now_ms)
        self._client.send(
            node,
            list_offsets_request(
                timestamps, self._client.metadata.cluster, is_read_committed=self._is_read_committed
            ),
            partial(self._handle_response, in_flight, _offsets),
            version_min=list_version_min(self._is_read_committed),
        )

    @staticmethod
    def _offset(partition: ListOffsetsPartitionResponse) -> int:
        return partition.offset

    def _succeeded(
        self, name: TopicPartition, in_flight: InFlight, partition: ListOffsetsPartitionResponse
    ) -> None:
        if partition.offset == UNKNOWN_OFFSET:  # all records are older: begin at the end (KIP-1106)
            self._assignment.request_reset(name, LATEST)
            return
        strategy = in_flight.state.strategy
        assert strategy is not None
        logger.info("resetting %s to offset %d (%s)", name, partition.offset, strategy.name)
        self._assignment.seek(name, FetchPosition(partition.offset, partition.leader_epoch))


def _offsets(body: ListOffsetsResponse) -> dict[TopicPartition, ListOffsetsPartitionResponse]:
    return {
        TopicPartition(topic.name, each.partition_index): each
        for topic in body.topics
        for each in topic.partitions
    }


def list_version_min(is_read_committed: bool) -> int:
    """Return the oldest ListOffsets version that can carry the request."""
    return LIST_VERSION_MIN_READ_COMMITTED if is_read_committed else LIST_VERSION_MIN


def list_offsets_request(
    timestamps: dict[TopicPartition, int], cluster: Cluster, *, is_read_committed: bool
) -> ListOffsetsRequest:
    """Build a ListOffsets request.

    Args:
        timestamps: the timestamp to look up in each partition; see :class:`.ListOffsetsPartition`.
        cluster: the metadata of the cluster.
        is_read_committed: whether a log is taken to end where its first open transaction starts.
    """
    topics: dict[str, ListOffsetsTopic] = {}
    for name, timestamp in timestamps.items():
        topic = topics.setdefault(name.topic, ListOffsetsTopic(name=name.topic))
        topic.partitions.append(
            ListOffsetsPartition(
                partition_index=name.partition,
                current_leader_epoch=leader_epoch(cluster, name),
                timestamp=timestamp,
            )
        )
    return ListOffsetsRequest(
        replica_id=_CONSUMER, isolation_level=int(is_read_committed), topics=list(topics.values())
    )


def _no_offset(name: TopicPartition) -> NoOffsetForPartitionError:
    return NoOffsetForPartitionError(
        f"no committed offset for {name}, and auto.offset.reset is none; seek() to an offset, or"
        " set auto.offset.reset to earliest or latest",
        *name,
    )


class PositionValidator(PositionRequests[EpochEndOffset]):
    """Checks whether new leaders have the records that were read; if not, resets the position."""

    def _due(self, now: float) -> list[TopicPartition]:
        return self._assignment.to_validate(now)

    def _request(self, node: Node, in_flight: dict[TopicPartition, InFlight]) -> None:
        versions = self._client.versions(node)
        if versions is not None and EPOCH_VERSION_MIN not in versions.versions(
            api_keys.OFFSET_FOR_LEADER_EPOCH
        ):
            for each in in_flight.values():  # the node is too old to check it
                each.state.validated()
            return
        topics: dict[str, OffsetForLeaderTopic] = {}
        for name, each in in_flight.items():
            assert each.position is not None
            each.state.is_request_in_flight = True
            topic = topics.setdefault(name.topic, OffsetForLeaderTopic(topic=name.topic))
            topic.partitions.append(
                OffsetForLeaderPartition(
                    partition=name.partition,
                    current_leader_epoch=each.leader.epoch,
                    leader_epoch=each.position.epoch,
                )
            )
        self._client.send(
            node,
            OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(topics.values())),
            partial(self._handle_response, in_flight, _ends),
            version_min=EPOCH_VERSION_MIN,
        )

    @staticmethod
    def _offset(partition: EpochEndOffset) -> int:
        return partition.end_offset

    def _succeeded(
        self, name: TopicPartition, in_flight: InFlight, partition: EpochEndOffset
    ) -> None:
        """Validate a position against the end offset of its leader epoch in the leader's log."""
        position, end = in_flight.position, partition.end_offset
        assert position is not None
        is_unknown = _UNDEFINED in {end, partition.leader_epoch}
        if is_unknown and self._may_be_replaced(in_flight):
            self._client.metadata.request_update()
            in_flight.state.put_off(trio.current_time(), self._retry, self._rng)
        elif not is_unknown and end >= position.offset:
            in_flight.state.validated()
            self._assignment.on_change()
        elif self._assignment.default_reset == NONE:
            error = _truncated(name, position, None if is_unknown else end)
            self._errors.add_partition(name, in_flight.state, error)
        elif is_unknown:
            logger.warning(
                "%s no longer has records of epoch %d; resetting the position", name, position.epoch
            )
            self._assignment.request_reset(name)
        else:
            logger.warning(
                "%s was truncated: continuing at offset %d instead of %d",
                name,
                end,
                position.offset,
            )
            self._assignment.seek(name, FetchPosition(end, partition.leader_epoch))

    @staticmethod
    def _may_be_replaced(in_flight: InFlight) -> bool:
        """Whether the leader may be one that does not know yet that it was replaced.

        The position is of a newer epoch, as a committed offset can be (Kafka:
        Metadata.updateLastSeenEpochIfNewer). Or the topic was created anew, whose epochs begin
        anew: after some tries, the leader is taken at its word.
        """
        position, epoch = in_flight.position, in_flight.leader.epoch
        return (
            position is not None
            and 0 <= epoch < position.epoch
            and in_flight.state.failures < _REPLACED_LEADER_TRIES
        )


def _ends(body: OffsetForLeaderEpochResponse) -> dict[TopicPartition, EpochEndOffset]:
    return {
        TopicPartition(topic.topic, each.partition): each
        for topic in body.topics
        for each in topic.partitions
    }


def _truncated(
    name: TopicPartition, position: FetchPosition, divergent_offset: int | None
) -> LogTruncationError:
    where = "" if divergent_offset is None else f" at offset {divergent_offset}"
    return LogTruncationError(
        f"{name} was truncated{where} after it was read up to offset {position.offset}, and"
        " auto.offset.reset is none; seek() to an existing offset",
        *name,
        position.offset,
        divergent_offset,
    )
