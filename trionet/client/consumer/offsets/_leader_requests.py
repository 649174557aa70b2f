"""What is the same whatever leaders are asked about partitions (Kafka: OffsetFetcherUtils)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

import trio

from ..._api_errors import STALE_METADATA, api_error, is_retriable
from ..._backoff import ExponentialBackoff
from ..._node import Node
from ..._topic_partition import TopicPartition
from ...network._kafka_client import KafkaClient
from ...requests._response import ClientResponse
from ..state._partition_state import PartitionState
from ..state._pending_errors import Failures
from ._leaders import by_leader


class Asked(Protocol):
    """A partition when its leader was asked."""

    @property
    def state(self) -> PartitionState: ...

    @property
    def jumps(self) -> int: ...


class Answer(Protocol):
    """What a leader says of a partition."""

    error_code: int


A = TypeVar("A", bound=Asked)
B = TypeVar("B", bound=Answer)


class Ready(NamedTuple):
    """Who can be asked now.

    Attributes:
        leaders: about which partitions.
        seconds: until another one may be.
    """

    leaders: dict[Node, list[TopicPartition]]
    seconds: float


class LeaderQuestions:
    """See the module.

    Args:
        client: sends.
        failures: what the user has to be told.
        retry: the waits before a partition is asked about again.
        chance: what blurs those.
    """

    def __init__(
        self,
        client: KafkaClient,
        failures: Failures,
        retry: ExponentialBackoff,
        chance: random.Random,
    ) -> None:
        self._client = client
        self._failures = failures
        self._retry = retry
        self._chance = chance

    def ready(self, names: Iterable[TopicPartition]) -> Ready:
        """The leaders of partitions that can be asked now; the others are connected to."""
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
                seconds = min(seconds, self._client.poll_delay(node) or math.inf)
                self._failures.add_if_final(self._client.authentication_error(node))
        return Ready(found, seconds)

    def answered(
        self,
        asked: Mapping[TopicPartition, A],
        response: ClientResponse,
        answers: Callable[[Any], Mapping[TopicPartition, B]],
        take: Callable[[TopicPartition, A, B], None],
    ) -> None:
        """Take what a leader says of partitions whose positions have not moved since.

        Args:
            asked: the partitions.
            response: the leader's.
            answers: what a body says of each partition.
            take: called with each good answer.
        """
        found: Mapping[TopicPartition, B] = {}
        if response.error is None:
            found = answers(response.body)
        else:
            self._failures.add_if_final(response.error)
        for name, each in asked.items():
            if each.state.jumps != each.jumps:
                continue
            each.state.is_asking = False
            answer = found.get(name)
            if answer is not None and not answer.error_code:
                take(name, each, answer)
            else:
                self._ask_again(name, each.state, 0 if answer is None else answer.error_code)

    def _ask_again(self, name: TopicPartition, state: PartitionState, error_code: int) -> None:
        state.put_off(trio.current_time(), self._retry, self._chance)
        if not error_code:
            return
        if error_code in STALE_METADATA:
            self._client.metadata.request_update()
        error = api_error(error_code, f"the position in {name}")
        if not is_retriable(error):
            self._failures.add_partition(name, state, error)
