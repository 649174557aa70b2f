"""Asks logs where to begin, for partitions that have no position (Kafka: OffsetFetcher).

Nothing here waits. Whoever polls the client calls :meth:`OffsetReset.send` between two polls.
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
from ...metadata._cluster import Cluster
from ...network._kafka_client import KafkaClient
from ...requests._response import ClientResponse
from ..state._partition_state import FetchPosition, PartitionState
from ..state._pending_errors import Failures
from ..state._reset_strategy import LATEST, NONE, ResetStrategy
from ..state._subscription_state import SubscriptionState
from ._leader_requests import LeaderQuestions
from ._leaders import leader_epoch

logger = logging.getLogger("trionet.client.consumer")

#: The first version that answers with one offset and its time.
VERSION_MIN = 1
#: The first version that knows of transactions.
VERSION_MIN_READ_COMMITTED = 2
UNKNOWN_OFFSET = -1


class _Asked(NamedTuple):
    """A partition when its offset was asked for."""

    state: PartitionState
    jumps: int
    strategy: ResetStrategy
    leader_epoch: int


class OffsetReset:
    """See the module.

    Args:
        client: sends.
        subscriptions: whose positions are set.
        failures: what the user has to be told.
        questions: what asks leaders.
        is_read_committed: the end of a log is where its first open transaction begins.
        now_ms: the time of day in milliseconds since 1970.
    """

    def __init__(
        self,
        client: KafkaClient,
        subscriptions: SubscriptionState,
        failures: Failures,
        questions: LeaderQuestions,
        *,
        is_read_committed: bool,
        now_ms: Callable[[], int],
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._failures = failures
        self._questions = questions
        self._is_read_committed = is_read_committed
        self._now_ms = now_ms

    def send(self, now: float) -> float:
        """Ask for what is not known; seconds until this has to be called again."""
        due: list[TopicPartition] = []
        seconds = math.inf
        for name in self._subscriptions.to_reset(now):
            state = self._subscriptions.partitions[name]
            if self._failures.has(name, state):
                continue
            if state.strategy == NONE:
                self._failures.add_partition(name, state, _no_offset(name))
            else:
                due.append(name)
        if due:
            seconds = self._ask(due)
        return min(seconds, self._subscriptions.seconds_to_retry(now))

    def _ask(self, names: list[TopicPartition]) -> float:
        ready = self._questions.ready(names)
        now_ms = self._now_ms()
        for node, partitions in ready.leaders.items():
            asked = {each: self._asked(each) for each in partitions}
            request = list_offsets_request(
                {each: asked[each].strategy.timestamp(now_ms) for each in partitions},
                self._client.metadata.cluster,
                is_read_committed=self._is_read_committed,
            )
            self._client.send(
                node,
                request,
                partial(self._answered, asked),
                version_min=version_min(self._is_read_committed),
            )
        return ready.seconds

    def _asked(self, name: TopicPartition) -> _Asked:
        state = self._subscriptions.partitions[name]
        assert state.strategy is not None
        state.is_asking = True
        epoch = leader_epoch(self._client.metadata.cluster, name)
        return _Asked(state, state.jumps, state.strategy, epoch)

    # Answers.

    def _answered(self, asked: dict[TopicPartition, _Asked], response: ClientResponse) -> None:
        self._questions.answered(asked, response, _offsets, self._take)

    def _take(
        self, name: TopicPartition, asked: _Asked, answer: ListOffsetsPartitionResponse
    ) -> None:
        if answer.offset == UNKNOWN_OFFSET:  # no record is so new: begin behind all (KIP-1106)
            self._subscriptions.request_reset(name, LATEST)
            return
        logger.info("%s begins at offset %d (%s)", name, answer.offset, asked.strategy.name)
        asked.state.leader_epoch = max(asked.state.leader_epoch, asked.leader_epoch)
        self._subscriptions.seek(name, FetchPosition(answer.offset, answer.leader_epoch))


def _offsets(body: ListOffsetsResponse) -> dict[TopicPartition, ListOffsetsPartitionResponse]:
    return {
        TopicPartition(topic.name, each.partition_index): each
        for topic in body.topics
        for each in topic.partitions
    }


def version_min(is_read_committed: bool) -> int:
    """The oldest version of ListOffsets that can carry such a question."""
    return VERSION_MIN_READ_COMMITTED if is_read_committed else VERSION_MIN


def list_offsets_request(
    timestamps: dict[TopicPartition, int], cluster: Cluster, *, is_read_committed: bool
) -> ListOffsetsRequest:
    """A question for offsets.

    Args:
        timestamps: what to look for in each partition; see :class:`.ListOffsetsPartition`.
        cluster: as it is known.
        is_read_committed: the end of a log is where its first open transaction begins.
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
        f"there is no offset to begin at in {name}, and auto.offset.reset is none; "
        "seek() to one, or set auto.offset.reset to earliest or latest",
        *name,
    )
