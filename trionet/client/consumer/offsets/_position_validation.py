"""Validation of positions against new leaders, whose logs may have been truncated (KIP-320).

(Kafka: OffsetsForLeaderEpochClient, SubscriptionState.maybeCompleteValidation.) Nothing here is
async or blocks: the network task calls :meth:`PositionValidator.send` between polls.
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
from ..._topic_partition import TopicPartition
from ...network._cluster import Node
from ...network._kafka_client import KafkaClient
from ...network._responses import ClientResponse
from ..state._partition_state import FetchPosition, PartitionState
from ..state._pending_errors import PendingErrors
from ..state._reset_strategy import NONE
from ..state._subscription_state import SubscriptionState
from ._leader_requests import LeaderRequests, leader_epoch

logger = logging.getLogger("trionet.client.consumer")

#: Older versions require permissions for the whole cluster.
VERSION_MIN = 3
_UNDEFINED = -1
_CONSUMER = -1


class _InFlight(NamedTuple):
    """The state of a partition at the time of the request."""

    state: PartitionState
    jumps: int
    position: FetchPosition
    leader_epoch: int


class PositionValidator:
    """Checks whether new leaders have the records that were read; if not, resets the position.

    Args:
        client: sends the requests.
        subscriptions: holds the assigned partitions.
        errors: collects errors, which the user's next request for a record raises.
        requests: finds leaders and handles their responses.
    """

    def __init__(
        self,
        client: KafkaClient,
        subscriptions: SubscriptionState,
        errors: PendingErrors,
        requests: LeaderRequests,
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._errors = errors
        self._requests = requests

    def send(self, now: float) -> float:
        """Send requests to validate positions; return the seconds until the next call is due."""
        due = [
            each
            for each in self._subscriptions.assignment.to_validate(now)
            if not self._errors.has(each, self._subscriptions.assignment.states[each])
        ]
        ready = self._requests.ready(due)
        for node, names in ready.leaders.items():
            self._send_requests(node, names)
        return min(ready.seconds, self._subscriptions.assignment.seconds_to_retry(now))

    def _send_requests(self, node: Node, names: list[TopicPartition]) -> None:
        in_flight = {name: self._in_flight(name) for name in names}
        versions = self._client.versions(node)
        if versions is not None and VERSION_MIN not in versions.versions(
            api_keys.OFFSET_FOR_LEADER_EPOCH
        ):
            for each in in_flight.values():  # the node is too old to check it
                each.state.validated(each.leader_epoch)
            return
        topics: dict[str, OffsetForLeaderTopic] = {}
        for name, each in in_flight.items():
            each.state.is_request_in_flight = True
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
            partial(self._handle_response, in_flight),
            version_min=VERSION_MIN,
        )

    def _in_flight(self, name: TopicPartition) -> _InFlight:
        state = self._subscriptions.assignment.states[name]
        position = state.position
        assert position is not None
        epoch = leader_epoch(self._client.metadata.cluster, name)
        return _InFlight(state, state.jumps, position, epoch)

    # Responses.

    def _handle_response(
        self, in_flight: dict[TopicPartition, _InFlight], response: ClientResponse
    ) -> None:
        self._requests.handle_response(in_flight, response, _ends, self._compare)

    def _compare(
        self, name: TopicPartition, in_flight: _InFlight, partition: EpochEndOffset
    ) -> None:
        """Validate a position against the end offset of its leader epoch in the leader's log."""
        position = in_flight.position
        is_unknown = _UNDEFINED in {partition.end_offset, partition.leader_epoch}
        if not is_unknown and partition.end_offset >= position.offset:
            in_flight.state.validated(in_flight.leader_epoch)
            self._subscriptions.assignment.on_change()
            return
        if self._subscriptions.assignment.default_reset == NONE:
            divergent = None if is_unknown else partition.end_offset
            self._errors.add_partition(name, in_flight.state, _truncated(name, position, divergent))
        elif is_unknown:
            logger.warning(
                "%s no longer has records of epoch %d; resetting the position", name, position.epoch
            )
            self._subscriptions.assignment.request_reset(name)
        else:
            logger.warning(
                "%s was truncated: continuing at offset %d instead of %d",
                name,
                partition.end_offset,
                position.offset,
            )
            in_flight.state.leader_epoch = max(in_flight.state.leader_epoch, in_flight.leader_epoch)
            self._subscriptions.assignment.seek(
                name, FetchPosition(partition.end_offset, partition.leader_epoch)
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
