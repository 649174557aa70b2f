"""Implements ListOffsets, versions 0 to 11, which finds the offset for a timestamp.

Special timestamps are -1 for the latest offset, -2 for the earliest offset, -3 for the record with
the greatest timestamp (KIP-734), and -4 for the earliest offset on this broker (KIP-405), which is
the same as -2. Timestamps -5 and -6 request offsets of tiered storage, which does not exist.

In version 0, a timestamp selects segments that were last written before it. The response contains
their base offsets, newest first, up to the requested number (Kafka: KafkaApis, before 4.0).
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

# The special timestamps, and the lowest version in which each is valid.
_SINCE = {
    LATEST: 0,
    EARLIEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_NEVER = 2**15
# Before this version, a timestamp is compared with file times, and the response is a list.
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
    requested: ListOffsetsPartition,
    twice: set[tuple[str, int]],
) -> ListOffsetsPartitionResponse:
    if call.must_pause():
        await call.pause()
    result = ListOffsetsPartitionResponse(partition_index=requested.partition_index)
    try:
        if (topic, requested.partition_index) in twice:
            raise ApiError(error_codes.INVALID_REQUEST, "the partition is requested more than once")
        log = broker.find_log(topic, requested.partition_index, requested.current_leader_epoch)
        if requested.timestamp < 0 and call.version < _SINCE.get(requested.timestamp, _NEVER):
            raise ApiError(
                error_codes.UNSUPPORTED_VERSION,
                f"timestamp {requested.timestamp} is not supported in version {call.version}",
            )
        if call.version < RECORD_TIMES_SINCE:
            result.old_style_offsets = await _find_beginnings(broker, log, requested)
            return result
        found = await _find(broker, request, log, requested.timestamp)
    except ApiError as error:
        result.error_code = error.error_code
        return result
    if found is not None:
        result.offset = found.offset
        result.timestamp = found.timestamp
        result.leader_epoch = log.epochs.at(found.offset)
    return result


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
    broker: BrokerState, log: Log, requested: ListOffsetsPartition
) -> list[int]:
    if requested.timestamp < EARLIEST:
        raise ApiError(error_codes.UNSUPPORTED_VERSION, f"invalid timestamp {requested.timestamp}")
    now_ms = broker.now_ms()
    count = max(0, requested.max_num_offsets)
    if requested.timestamp < 0:
        offsets = log.beginnings_before(inf, now_ms)
        return offsets[-1:][:count] if requested.timestamp == EARLIEST else offsets[:count]
    time = requested.timestamp
    offsets = await _search(broker, lambda: log.beginnings_before(time, now_ms))
    return offsets[:count]


async def _search(broker: BrokerState, search: Callable[[], T]) -> T:
    """Run a search in a worker thread, since it reads files; if in memory, run it directly."""
    with storage_errors():
        if broker.is_in_memory:
            return search()
        return await broker.folder.directory.in_thread(search)
