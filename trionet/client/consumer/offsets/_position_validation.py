"""Asks new leaders whether they have what was read before: a log may have been cut (KIP-320).

(Kafka: OffsetsForLeaderEpochClient, SubscriptionState.maybeCompleteValidation.) Nothing here waits.
Whoever polls the client calls :meth:`Validation.send` between two polls.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import NamedTuple

from ....errors import LogTruncationError
from ....protocol import api_keys
from ....protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ..._node import Node
from ..._topic_partition import TopicPartition
from ...network._kafka_client import KafkaClient
from ...requests._response import ClientResponse
from ..state._partition_state import FetchPosition, PartitionState
from ..state._pending_errors import Failures
from ..state._reset_strategy import NONE
from ..state._subscription_state import SubscriptionState
from ._leader_requests import LeaderQuestions
from ._leaders import leader_epoch

logger = logging.getLogger("trionet.client.consumer")

#: Before it a consumer would have needed rights on the whole cluster.
VERSION_MIN = 3
_UNDEFINED = -1
_CONSUMER = -1


class _Asked(NamedTuple):
    """A partition when its leader was asked."""

    state: PartitionState
    jumps: int
    position: FetchPosition
    leader_epoch: int


class Validation:
    """See the module.

    Args:
        client: sends.
        subscriptions: whose positions are validated.
        failures: what the user has to be told.
        questions: what asks leaders.
    """

    def __init__(
        self,
        client: KafkaClient,
        subscriptions: SubscriptionState,
        failures: Failures,
        questions: LeaderQuestions,
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._failures = failures
        self._questions = questions

    def send(self, now: float) -> float:
        """Ask what is to be asked; seconds until this has to be called again."""
        due = [
            each
            for each in self._subscriptions.to_validate(now)
            if not self._failures.has(each, self._subscriptions.partitions[each])
        ]
        ready = self._questions.ready(due)
        for node, names in ready.leaders.items():
            self._ask(node, names)
        return min(ready.seconds, self._subscriptions.seconds_to_retry(now))

    def _ask(self, node: Node, names: list[TopicPartition]) -> None:
        asked = {name: self._asked(name) for name in names}
        versions = self._client.versions(node)
        if versions is not None and VERSION_MIN not in versions.versions(
            api_keys.OFFSET_FOR_LEADER_EPOCH
        ):
            for each in asked.values():  # nobody can tell
                each.state.validated(each.leader_epoch)
            return
        topics: dict[str, OffsetForLeaderTopic] = {}
        for name, each in asked.items():
            each.state.is_asking = True
            topic = topics.setdefault(name.topic, OffsetForLeaderTopic(topic=name.topic))
            topic.partitions.append(
                OffsetForLeaderPartition(
                    partition=name.partition,
                    current_leader_epoch=each.leader_epoch,
                    leader_epoch=each.position.epoch,
                )
            )
        request = OffsetForLeaderEpochRequest(replica_id=_CONSUMER, topics=list(topics.values()))
        self._client.send(
            node,
            request,
            partial(self._answered, asked),
            version_min=VERSION_MIN,
        )

    def _asked(self, name: TopicPartition) -> _Asked:
        state = self._subscriptions.partitions[name]
        position = state.position
        assert position is not None
        epoch = leader_epoch(self._client.metadata.cluster, name)
        return _Asked(state, state.jumps, position, epoch)

    # Answers.

    def _answered(self, asked: dict[TopicPartition, _Asked], response: ClientResponse) -> None:
        self._questions.answered(asked, response, _ends, self._compare)

    def _compare(self, name: TopicPartition, asked: _Asked, answer: EpochEndOffset) -> None:
        """Look whether the log goes as far in the position's epoch as was read of it."""
        position = asked.position
        is_unknown = _UNDEFINED in {answer.end_offset, answer.leader_epoch}
        if not is_unknown and answer.end_offset >= position.offset:
            asked.state.validated(asked.leader_epoch)
            self._subscriptions.on_change()
            return
        if self._subscriptions.default_reset == NONE:
            divergent = None if is_unknown else answer.end_offset
            self._failures.add_partition(name, asked.state, _truncated(name, position, divergent))
        elif is_unknown:
            logger.warning("%s has nothing of epoch %d any more", name, position.epoch)
            self._subscriptions.request_reset(name)
        else:
            logger.warning(
                "%s was cut: going on at offset %d, not %d",
                name,
                answer.end_offset,
                position.offset,
            )
            asked.state.leader_epoch = max(asked.state.leader_epoch, asked.leader_epoch)
            self._subscriptions.seek(name, FetchPosition(answer.end_offset, answer.leader_epoch))


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
        f"{name} was cut{where}, behind what was read up to offset {position.offset}, "
        "and auto.offset.reset is none; seek() to where to go on",
        *name,
        position.offset,
        divergent_offset,
    )
