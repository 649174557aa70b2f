"""ListOffsets, versions 0 to 11: offsets at the ends of a partition, or by time.

Times that are not times: -1 latest, -2 earliest, -3 the record with the largest timestamp
(KIP-734), -4 earliest on this broker (KIP-405: the same here), -5 and -6 ends of a remote tier,
which there is none of. In version 0 a time gives the beginnings of the segments that were written
last before it, the newest first, and as many as asked for (Kafka: KafkaApis, before 4.0).
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TypeVar

from ...errors import ApiError
from ...protocol import api_keys, error_codes
from ...protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..log import Log, OffsetAndTimestamp
from ..model._broker_state import BrokerState
from ..storage._storage_errors import storage_errors

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6

# The times that are none, and the lowest version in which each may be asked for.
_SINCE = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_NEVER = 2**15
# Before, a time is that of a file, and the answer a list.
RECORD_TIMES_SINCE = 1

T = TypeVar("T")


@serves(api_keys.LIST_OFFSETS, 0, 11, only_responds=True)
async def handle(
    broker: BrokerState, request: ListOffsetsRequest, call: Call
) -> ListOffsetsResponse:
    call.expect(len(request.topics) + sum(len(topic.partitions) for topic in request.topics))
    seen: set[tuple[str, int]] = set()
    twice: set[tuple[str, int]] = set()
    for topic in request.topics:
        for partition in topic.partitions:
            if call.must_pause():
                await call.pause()
            key = topic.name, partition.partition_index
            (twice if key in seen else seen).add(key)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    await _list(broker, request, call, topic.name, partition, twice)
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
    twice: set[tuple[str, int]],
) -> ListOffsetsPartitionResponse:
    if call.must_pause():
        await call.pause()
    answer = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
    try:
        if (topic, wanted.partition_index) in twice:
            raise ApiError(error_codes.INVALID_REQUEST, "the partition is in the request twice")
        log = broker.find_log(topic, wanted.partition_index, wanted.current_leader_epoch)
        if wanted.timestamp < 0 and call.version < _SINCE.get(wanted.timestamp, _NEVER):
            raise ApiError(
                error_codes.UNSUPPORTED_VERSION,
                f"timestamp {wanted.timestamp} means nothing in version {call.version}",
            )
        if call.version < RECORD_TIMES_SINCE:
            answer.old_style_offsets = await _find_beginnings(broker, log, wanted)
            return answer
        found = await _find(broker, request, log, wanted.timestamp)
    except ApiError as error:
        answer.error_code = error.error_code
        return answer
    if found is not None:
        answer.offset = found.offset
        answer.timestamp = found.timestamp
        answer.leader_epoch = log.epochs.at(found.offset)
    return answer


async def _find(
    broker: BrokerState, request: ListOffsetsRequest, log: Log, timestamp: int
) -> OffsetAndTimestamp | None:
    up_to = log.last_stable_offset if request.isolation_level else log.high_watermark
    if timestamp == LATEST:
        return OffsetAndTimestamp(up_to, -1)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return OffsetAndTimestamp(log.start_offset, -1)
    if timestamp == MAX_TIMESTAMP:
        return await _search(broker, log.max_timestamp_offset)
    if timestamp < 0:
        return None
    return await _search(broker, lambda: log.offset_for_timestamp(timestamp, up_to))


async def _find_beginnings(
    broker: BrokerState, log: Log, wanted: ListOffsetsPartition
) -> list[int]:
    if wanted.timestamp < EARLIEST:
        raise ApiError(error_codes.UNSUPPORTED_VERSION, f"timestamp {wanted.timestamp} is none")
    now_ms = broker.now_ms()
    count = max(0, wanted.max_num_offsets)
    if wanted.timestamp < 0:
        offsets = log.beginnings_before(inf, now_ms)
        return offsets[-1:][:count] if wanted.timestamp == EARLIEST else offsets[:count]
    time = wanted.timestamp
    offsets = await _search(broker, lambda: log.beginnings_before(time, now_ms))
    return offsets[:count]


async def _search(broker: BrokerState, search: Callable[[], T]) -> T:
    """A search reads batches, from a disk that may be slow: not on the loop."""
    with storage_errors():
        if broker.is_in_memory:
            return search()
        return await broker.folder.directory.in_thread(search)
