"""ListOffsets, versions 1 to 11: offsets at the ends of a partition, or by time.

Times that are not times: -1 latest, -2 earliest, -3 the record with the largest timestamp
(KIP-734), -4 earliest on this broker (KIP-405: the same here), -5 and -6 ends of a remote tier,
which there is none of.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from ...errors import ApiError
from ...protocol import error_codes
from ...protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ..call import Call
from ..log import Log, OffsetAndTimestamp
from ..state import BrokerState

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

# The lowest version in which each of these may be asked for.
_SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}


async def handle(
    broker: BrokerState, request: ListOffsetsRequest, call: Call
) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    await _list(broker, request, call, topic.name, partition)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def _list(
    broker: BrokerState,
    request: ListOffsetsRequest,
    call: Call,
    topic: str,
    wanted: ListOffsetsPartition,
) -> ListOffsetsPartitionResponse:
    answer = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
    try:
        log = broker.find_log(topic, wanted.partition_index)
        if wanted.current_leader_epoch > 0:
            raise ApiError(error_codes.UNKNOWN_LEADER_EPOCH, "the leader epoch is 0")
        if call.version < _SINCE.get(wanted.timestamp, 0):
            raise ApiError(
                error_codes.UNSUPPORTED_VERSION,
                f"timestamp {wanted.timestamp} needs version {_SINCE[wanted.timestamp]}",
            )
        found = await _find(broker, request, log, wanted.timestamp)
    except ApiError as error:
        answer.error_code = error.error_code
        return answer
    if found is not None:
        answer.offset = found.offset
        answer.timestamp = found.timestamp
        answer.leader_epoch = 0
    return answer


async def _find(
    broker: BrokerState, request: ListOffsetsRequest, log: Log, timestamp: int
) -> OffsetAndTimestamp | None:
    up_to = log.last_stable_offset if request.isolation_level else log.high_watermark
    match timestamp:
        case -1:
            return OffsetAndTimestamp(up_to, -1)
        case -2 | -4:
            return OffsetAndTimestamp(log.start_offset, -1)
        case -3:
            return await _search(broker, log.max_timestamp_offset)
        case _ if timestamp < 0:
            return None
    return await _search(broker, lambda: log.offset_for_timestamp(timestamp, up_to))


async def _search(
    broker: BrokerState, search: Callable[[], OffsetAndTimestamp | None]
) -> OffsetAndTimestamp | None:
    """A search reads batches, from a disk that may be slow: not on the loop."""
    if broker.is_in_memory:
        return search()
    return await trio.to_thread.run_sync(search)
