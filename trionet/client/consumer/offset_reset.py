"""Asks logs where to begin, for partitions that have no position (Kafka: OffsetFetcher).

Nothing here waits. Whoever polls the client calls :meth:`OffsetReset.send` between two polls.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable
from typing import NamedTuple

import trio

from ...errors import AuthenticationError, NoOffsetForPartitionError, UnsupportedVersionError
from ...protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from ..api_errors import STALE_METADATA, api_error, is_retriable
from ..backoff import ExponentialBackoff
from ..cluster import Cluster
from ..network_client import NetworkClient
from ..response import ClientResponse
from ..topic_partition import TopicPartition
from .failures import Failures
from .leaders import by_leader, leader_epoch
from .partition_state import FetchPosition, PartitionState
from .reset_strategy import LATEST, NONE, ResetStrategy
from .subscription_state import SubscriptionState

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
        is_read_committed: the end of a log is where its first open transaction begins.
        retry: the wait before a partition is asked for again.
        chance: what blurs that.
        now_ms: the time of day in milliseconds since 1970.
    """

    def __init__(
        self,
        client: NetworkClient,
        subscriptions: SubscriptionState,
        failures: Failures,
        *,
        is_read_committed: bool,
        retry: ExponentialBackoff,
        chance: random.Random,
        now_ms: Callable[[], int],
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._failures = failures
        self._is_read_committed = is_read_committed
        self._retry = retry
        self._chance = chance
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
        metadata = self._client.metadata
        leaders, unknown = by_leader(metadata.cluster, names)
        if unknown:
            metadata.request_update()
        seconds = math.inf
        for node, partitions in leaders.items():
            if not self._client.ready(node):
                seconds = min(seconds, self._client.poll_delay(node) or math.inf)
                self._look_at_authentication(self._client.authentication_error(node))
                continue
            asked = {each: self._asked(each) for each in partitions}
            now_ms = self._now_ms()
            request = list_offsets_request(
                {each: asked[each].strategy.timestamp(now_ms) for each in partitions},
                metadata.cluster,
                is_read_committed=self._is_read_committed,
            )
            self._client.send(
                node,
                request,
                _Answer(self, asked),
                version_min=version_min(self._is_read_committed),
            )
        return seconds

    def _asked(self, name: TopicPartition) -> _Asked:
        state = self._subscriptions.partitions[name]
        assert state.strategy is not None
        state.is_asking = True
        epoch = leader_epoch(self._client.metadata.cluster, name)
        return _Asked(state, state.jumps, state.strategy, epoch)

    def _look_at_authentication(self, error: AuthenticationError | None) -> None:
        if error is not None:
            self._failures.add(error)

    # Answers.

    def answered(self, asked: dict[TopicPartition, _Asked], response: ClientResponse) -> None:
        """Take what a log says."""
        now = trio.current_time()
        found: dict[TopicPartition, ListOffsetsPartitionResponse] = {}
        if response.error is not None:
            if isinstance(response.error, (AuthenticationError, UnsupportedVersionError)):
                self._failures.add(response.error)
        else:
            found = {
                TopicPartition(topic.name, each.partition_index): each
                for topic in response.body.topics
                for each in topic.partitions
            }
        for name, each in asked.items():
            if each.state.jumps == each.jumps:
                each.state.is_asking = False
                self._take(name, each, found.get(name), now)

    def _take(
        self,
        name: TopicPartition,
        asked: _Asked,
        answer: ListOffsetsPartitionResponse | None,
        now: float,
    ) -> None:
        state = asked.state
        if answer is not None and not answer.error_code:
            if answer.offset == UNKNOWN_OFFSET:  # no record is so new: begin behind all (KIP-1106)
                self._subscriptions.request_reset(name, LATEST)
                return
            logger.info("%s begins at offset %d (%s)", name, answer.offset, asked.strategy.name)
            state.leader_epoch = max(state.leader_epoch, asked.leader_epoch)
            self._subscriptions.seek(name, FetchPosition(answer.offset, answer.leader_epoch))
            return
        state.retry_at = now + self._retry.seconds(1, self._chance)
        if answer is None:
            return
        if answer.error_code in STALE_METADATA:
            self._client.metadata.request_update()
        error = api_error(answer.error_code, f"the offsets of {name}")
        if not is_retriable(error):
            self._failures.add_partition(name, state, error)


class _Answer:
    """The callback of one request."""

    def __init__(self, reset: OffsetReset, asked: dict[TopicPartition, _Asked]) -> None:
        self._reset = reset
        self._asked = asked

    def __call__(self, response: ClientResponse) -> None:
        self._reset.answered(self._asked, response)


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
