"""What all requests to partition leaders have in common (Kafka: OffsetFetcherUtils)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import trio

from ..._api_errors import STALE_METADATA, api_error, is_retriable
from ..._backoff import ExponentialBackoff
from ..._topic_partition import TopicPartition
from ...network._cluster import Cluster, Node
from ...network._kafka_client import KafkaClient
from ...network._responses import ClientResponse
from ..state._partition_state import PartitionState
from ..state._pending_errors import PendingErrors


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


class InFlightPartition(Protocol):
    """The state of a partition at the time of the request to its leader."""

    @property
    def state(self) -> PartitionState: ...

    @property
    def jumps(self) -> int: ...


class LeaderPartition(Protocol):
    """A leader's response for one partition."""

    error_code: int


A = TypeVar("A", bound=InFlightPartition)
B = TypeVar("B", bound=LeaderPartition)


class Ready(NamedTuple):
    """The leaders that are ready for a request.

    Attributes:
        leaders: each ready leader, with its partitions.
        seconds: the seconds until another leader may be ready.
    """

    leaders: dict[Node, list[TopicPartition]]
    seconds: float


class LeaderRequests:
    """Finds the leaders of partitions, and handles their responses.

    Args:
        client: sends the requests.
        errors: collects errors, which the user's next request for a record raises.
        retry: the backoff before the retry of a partition.
        rng: jitters the backoff.
    """

    def __init__(
        self,
        client: KafkaClient,
        errors: PendingErrors,
        retry: ExponentialBackoff,
        rng: random.Random,
    ) -> None:
        self._client = client
        self._errors = errors
        self._retry = retry
        self._rng = rng

    def ready(self, names: Iterable[TopicPartition]) -> Ready:
        """Return the leaders that are ready for a request, and start connecting to the others."""
        metadata = self._client.metadata
        leaders, unknown = by_leader(metadata.cluster, names)
        if unknown:
            metadata.request_update()
        found: dict[Node, list[TopicPartition]] = {}
        seconds = math.inf
        for node, partitions in leaders.items():
            if self._client.ready(node):
                found[node] = partitions
            else:
                connection = self._client.connection(node)
                seconds = min(seconds, connection.poll_delay(trio.current_time()) or math.inf)
                self._errors.add_if_final(connection.authentication_error)
        return Ready(found, seconds)

    def handle_response(
        self,
        in_flight: Mapping[TopicPartition, A],
        response: ClientResponse,
        partitions_of: Callable[[Any], Mapping[TopicPartition, B]],
        on_success: Callable[[TopicPartition, A, B], None],
    ) -> None:
        """Handle a response, ignoring partitions whose position has changed since the request.

        Args:
            in_flight: the partitions in the request.
            response: the leader's response.
            partitions_of: extracts the response for each partition from the body.
            on_success: called for each partition that has no error.
        """
        found: Mapping[TopicPartition, B] = {}
        if response.error is None:
            found = partitions_of(response.body)
        else:
            self._errors.add_if_final(response.error)
        for name, each in in_flight.items():
            if each.state.jumps != each.jumps:
                continue
            each.state.is_request_in_flight = False
            partition = found.get(name)
            if partition is not None and not partition.error_code:
                on_success(name, each, partition)
            else:
                self._retry_later(
                    name, each.state, 0 if partition is None else partition.error_code
                )

    def _retry_later(self, name: TopicPartition, state: PartitionState, error_code: int) -> None:
        state.put_off(trio.current_time(), self._retry, self._rng)
        if not error_code:
            return
        if error_code in STALE_METADATA:
            self._client.metadata.request_update()
        error = api_error(error_code, f"the position in {name}")
        if not is_retriable(error):
            self._errors.add_partition(name, state, error)
