"""OffsetForLeaderEpoch, versions 0 to 4: where the records of a leader epoch end (KIP-320).

A consumer asks after a change of the leader epoch whether what it has read is still in the log. The
epoch changes with the leader, and when a stop was not clean.
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


def _end(broker: BrokerState, topic: str, wanted: OffsetForLeaderPartition) -> EpochEndOffset:
    answer = EpochEndOffset(partition=wanted.partition)
    try:
        log = broker.find_log(topic, wanted.partition, wanted.current_leader_epoch)
        answer.leader_epoch, answer.end_offset = log.end_of_epoch(wanted.leader_epoch)
    except ApiError as error:
        answer.error_code = error.error_code
    return answer
