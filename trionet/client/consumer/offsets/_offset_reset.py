"""Position resets, for which offsets are looked up by reset strategy (Kafka: OffsetFetcher).

Nothing here is async or blocks: the network task calls :meth:`OffsetReset.send` between polls.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ....errors import NoOffsetForPartitionError
from ....protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ..._topic_partition import TopicPartition
from ...network._cluster import Cluster
from ...network._kafka_client import KafkaClient
from ...network._responses import ClientResponse
from ..state._partition_state import FetchPosition, PartitionState
from ..state._pending_errors import PendingErrors
from ..state._reset_strategy import LATEST, NONE, ResetStrategy
from ..state._subscription_state import SubscriptionState
from ._leader_requests import LeaderRequests, leader_epoch

logger = logging.getLogger("trionet.client.consumer")

#: The first version that returns a single offset and its timestamp.
VERSION_MIN = 1
#: The first version with an isolation level.
VERSION_MIN_READ_COMMITTED = 2
UNKNOWN_OFFSET = -1


class _InFlight(NamedTuple):
    """The state of a partition at the time of the request."""

    state: PartitionState
    jumps: int
    strategy: ResetStrategy
    leader_epoch: int


class OffsetReset:
    """Looks up offsets with ListOffsets, and resets positions to them.

    Args:
        client: sends the requests.
        subscriptions: holds the assigned partitions.
        errors: collects errors, which the user's next request for a record raises.
        requests: finds leaders and handles their responses.
        is_read_committed: whether a log is taken to end where its first open transaction starts.
        now_ms: returns the wall-clock time in milliseconds since the epoch.
    """

    def __init__(
        self,
        client: KafkaClient,
        subscriptions: SubscriptionState,
        errors: PendingErrors,
        requests: LeaderRequests,
        *,
        is_read_committed: bool,
        now_ms: Callable[[], int],
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._errors = errors
        self._requests = requests
        self._is_read_committed = is_read_committed
        self._now_ms = now_ms

    def send(self, now: float) -> float:
        """Send requests to reset positions; return the seconds until the next call is due."""
        due: list[TopicPartition] = []
        seconds = math.inf
        for name in self._subscriptions.assignment.to_reset(now):
            state = self._subscriptions.assignment.states[name]
            if self._errors.has(name, state):
                continue
            if state.strategy == NONE:
                self._errors.add_partition(name, state, _no_offset(name))
            else:
                due.append(name)
        if due:
            seconds = self._send_requests(due)
        return min(seconds, self._subscriptions.assignment.seconds_to_retry(now))

    def _send_requests(self, names: list[TopicPartition]) -> float:
        ready = self._requests.ready(names)
        now_ms = self._now_ms()
        for node, partitions in ready.leaders.items():
            in_flight = {each: self._mark_in_flight(each) for each in partitions}
            request = list_offsets_request(
                {each: in_flight[each].strategy.timestamp(now_ms) for each in partitions},
                self._client.metadata.cluster,
                is_read_committed=self._is_read_committed,
            )
            self._client.send(
                node,
                request,
                partial(self._handle_response, in_flight),
                version_min=version_min(self._is_read_committed),
            )
        return ready.seconds

    def _mark_in_flight(self, name: TopicPartition) -> _InFlight:
        state = self._subscriptions.assignment.states[name]
        assert state.strategy is not None
        state.is_request_in_flight = True
        epoch = leader_epoch(self._client.metadata.cluster, name)
        return _InFlight(state, state.jumps, state.strategy, epoch)

    # Responses.

    def _handle_response(
        self, in_flight: dict[TopicPartition, _InFlight], response: ClientResponse
    ) -> None:
        self._requests.handle_response(in_flight, response, _offsets, self._reset)

    def _reset(
        self, name: TopicPartition, in_flight: _InFlight, partition: ListOffsetsPartitionResponse
    ) -> None:
        if partition.offset == UNKNOWN_OFFSET:  # all records are older: begin at the end (KIP-1106)
            self._subscriptions.assignment.request_reset(name, LATEST)
            return
        logger.info(
            "resetting %s to offset %d (%s)", name, partition.offset, in_flight.strategy.name
        )
        in_flight.state.leader_epoch = max(in_flight.state.leader_epoch, in_flight.leader_epoch)
        self._subscriptions.assignment.seek(
            name, FetchPosition(partition.offset, partition.leader_epoch)
        )


def _offsets(body: ListOffsetsResponse) -> dict[TopicPartition, ListOffsetsPartitionResponse]:
    return {
        TopicPartition(topic.name, each.partition_index): each
        for topic in body.topics
        for each in topic.partitions
    }


def version_min(is_read_committed: bool) -> int:
    """Return the oldest ListOffsets version that can carry the request."""
    return VERSION_MIN_READ_COMMITTED if is_read_committed else VERSION_MIN


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
        replica_id=-1, isolation_level=int(is_read_committed), topics=list(topics.values())
    )


def _no_offset(name: TopicPartition) -> NoOffsetForPartitionError:
    return NoOffsetForPartitionError(
        f"no committed offset for {name}, and auto.offset.reset is none; seek() to an offset, or"
        " set auto.offset.reset to earliest or latest",
        *name,
    )
