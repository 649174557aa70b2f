"""Implements OffsetForLeaderEpoch, versions 0 to 4, which finds where an epoch ends (KIP-320).

After a change of the leader epoch, a consumer checks whether the records that it has read are still
in the log. The leader epoch increases when the leader changes, and after an unclean shutdown.
"""

from __future__ import annotations

from functools import partial

from ...errors import ApiError
from ...protocol import api_keys
from ...protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..model._broker_state import BrokerState


@serves(api_keys.OFFSET_FOR_LEADER_EPOCH, 0, 4, only_responds=True)
async def handle(
    broker: BrokerState, request: OffsetForLeaderEpochRequest, call: Call
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=call.elements(
            (
                OffsetForLeaderTopicResult(
                    topic=topic.topic,
                    partitions=call.elements(
                        map(partial(_end, broker, topic.topic), topic.partitions),
                        len(topic.partitions),
                    ),
                )
                for topic in request.topics
            ),
            len(request.topics),
        )
    )


def _end(broker: BrokerState, topic: str, requested: OffsetForLeaderPartition) -> EpochEndOffset:
    result = EpochEndOffset(partition=requested.partition)
    try:
        log = broker.find_log(topic, requested.partition, requested.current_leader_epoch)
        result.leader_epoch, result.end_offset = log.end_of_epoch(requested.leader_epoch)
    except ApiError as error:
        result.error_code = error.error_code
    return result
