"""Implements the APIs about the logs of partitions.

ListOffsets and OffsetForLeaderEpoch look up offsets, DeleteRecords advances log start offsets, and
DescribeLogDirs returns disk space and replica sizes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import TypeVar

from ...errors import ApiError
from ...protocol import api_keys, error_codes
from ...protocol._partition_compaction import TAGS_SINCE, PartitionCompaction, encode_tag
from ...protocol.messages import delete_records, list_offsets
from ...protocol.messages import describe_log_dirs as log_dirs
from ...protocol.messages import offset_for_leader_epoch as leader_epoch
from ..api._call import Call
from ..api._dispatch import serves
from ..log import Log, OffsetAndTimestamp
from ..log.compaction._cleaner import LogCleaner
from ..log.files._directory import run_blocking
from ..model._broker_state import BrokerState
from ..model._topic_registry import is_internal
from ..storage._storage_errors import storage_errors

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4

# The special timestamps, and the lowest version in which each is valid. The last two request
# offsets of tiered storage, which does not exist: the latest one there, and the earliest one that
# is not there yet.
_SINCE = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, -5: 9, -6: 11}
_NEVER = 2**15
# Before this version, a timestamp is compared with file times, and the response is a list.
RECORD_TIMES_SINCE = 1

T = TypeVar("T")


@serves(api_keys.LIST_OFFSETS, 0, 11, only_responds=True)
async def handle_list_offsets(
    broker: BrokerState, request: list_offsets.ListOffsetsRequest, call: Call
) -> list_offsets.ListOffsetsResponse:
    """Handle ListOffsets, versions 0 to 11, which finds the offset for a timestamp.

    Special timestamps are -1 for the latest offset, -2 for the earliest offset, -3 for the record
    with the greatest timestamp (KIP-734), and -4 for the earliest offset on this broker (KIP-405),
    which is the same as -2. Timestamps -5 and -6 request offsets of tiered storage, which does not
    exist.

    In version 0, a timestamp selects segments that were last written before it. The response
    contains their base offsets, newest first, up to the requested number (Kafka: KafkaApis, before
    4.0).
    """
    call.expect(len(request.topics) + sum(len(topic.partitions) for topic in request.topics))
    seen: set[tuple[str, int]] = set()
    twice: set[tuple[str, int]] = set()
    for topic in request.topics:
        for partition in topic.partitions:
            if call.must_pause():
                await call.pause()
            key = topic.name, partition.partition_index
            (twice if key in seen else seen).add(key)
    topics = []
    for topic in request.topics:
        results = []
        for partition in topic.partitions:
            if call.must_pause():
                await call.pause()
            result = list_offsets.ListOffsetsPartitionResponse(
                partition_index=partition.partition_index
            )
            try:
                if (topic.name, partition.partition_index) in twice:
                    raise ApiError(
                        error_codes.INVALID_REQUEST, "the partition is requested more than once"
                    )
                await _list_offset(broker, request, call, topic.name, partition, result)
            except ApiError as error:
                result.error_code = error.error_code
            results.append(result)
        topics.append(list_offsets.ListOffsetsTopicResponse(name=topic.name, partitions=results))
    return list_offsets.ListOffsetsResponse(topics=topics)


async def _list_offset(
    broker: BrokerState,
    request: list_offsets.ListOffsetsRequest,
    call: Call,
    topic: str,
    requested: list_offsets.ListOffsetsPartition,
    result: list_offsets.ListOffsetsPartitionResponse,
) -> None:
    log = broker.find_log(topic, requested.partition_index, requested.current_leader_epoch)
    if requested.timestamp < 0 and call.version < _SINCE.get(requested.timestamp, _NEVER):
        raise ApiError(
            error_codes.UNSUPPORTED_VERSION,
            f"timestamp {requested.timestamp} is not supported in version {call.version}",
        )
    if call.version < RECORD_TIMES_SINCE:
        result.old_style_offsets = await _find_beginnings(broker, log, requested)
        return
    found = await _find_offset(broker, request, log, requested.timestamp)
    if found is not None:
        result.offset = found.offset
        result.timestamp = found.timestamp
        result.leader_epoch = log.epochs.at(found.offset)


async def _find_offset(
    broker: BrokerState, request: list_offsets.ListOffsetsRequest, log: Log, timestamp: int
) -> OffsetAndTimestamp | None:
    up_to = _limit(request, log)
    if timestamp == LATEST:
        return OffsetAndTimestamp(up_to, -1)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return OffsetAndTimestamp(log.start_offset, -1)
    if timestamp == MAX_TIMESTAMP:
        found = await _search(broker, log.max_timestamp_offset)
        # As in Kafka, a record that the client cannot read yet hides older ones.
        return None if found is None or found.offset >= _limit(request, log) else found
    if timestamp < 0:
        return None
    return await _search(broker, lambda: log.offset_for_timestamp(timestamp, up_to))


def _limit(request: list_offsets.ListOffsetsRequest, log: Log) -> int:
    """Return the first offset that the client cannot read."""
    return log.last_stable_offset if request.isolation_level else log.high_watermark


async def _find_beginnings(
    broker: BrokerState, log: Log, requested: list_offsets.ListOffsetsPartition
) -> list[int]:
    time = requested.timestamp
    if time < EARLIEST:
        raise ApiError(error_codes.UNSUPPORTED_VERSION, f"invalid timestamp {time}")
    now_ms = broker.now_ms()
    count = max(0, requested.max_num_offsets)
    if time < 0:
        offsets = log.beginnings_before(inf, now_ms)
        return offsets[-1:][:count] if time == EARLIEST else offsets[:count]
    offsets = await _search(broker, lambda: log.beginnings_before(time, now_ms))
    return offsets[:count]


async def _search(broker: BrokerState, search: Callable[[], T]) -> T:
    """Run a search in a worker thread, since it reads files; if in memory, run it directly."""
    with storage_errors():
        if broker.is_in_memory:
            return search()
        return await broker.folder.directory.in_thread(search)


@serves(api_keys.OFFSET_FOR_LEADER_EPOCH, 0, 4, only_responds=True)
async def handle_offset_for_leader_epoch(
    broker: BrokerState, request: leader_epoch.OffsetForLeaderEpochRequest, call: Call
) -> leader_epoch.OffsetForLeaderEpochResponse:
    """Handle OffsetForLeaderEpoch, versions 0 to 4, which finds where an epoch ends (KIP-320).

    After a change of the leader epoch, a consumer checks whether the records that it has read are
    still in the log. The leader epoch increases when the leader changes, and after an unclean
    shutdown.
    """
    topics = (
        leader_epoch.OffsetForLeaderTopicResult(
            topic=topic.topic,
            partitions=call.elements(
                map(partial(_end_of_epoch, broker, topic.topic), topic.partitions),
                len(topic.partitions),
            ),
        )
        for topic in request.topics
    )
    return leader_epoch.OffsetForLeaderEpochResponse(
        topics=call.elements(topics, len(request.topics))
    )


def _end_of_epoch(
    broker: BrokerState, topic: str, requested: leader_epoch.OffsetForLeaderPartition
) -> leader_epoch.EpochEndOffset:
    result = leader_epoch.EpochEndOffset(partition=requested.partition)
    try:
        log = broker.find_log(topic, requested.partition, requested.current_leader_epoch)
        result.leader_epoch, result.end_offset = log.end_of_epoch(requested.leader_epoch)
    except ApiError as error:
        result.error_code = error.error_code
    return result


HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1


@serves(api_keys.DELETE_RECORDS, 0, 2)
async def handle_delete_records(
    broker: BrokerState, request: delete_records.DeleteRecordsRequest, call: Call
) -> delete_records.DeleteRecordsResponse | None:
    """Handle DeleteRecords, versions 0 to 2, which advances log start offsets (KIP-107).

    The response contains the new log start offset. It is sent only once that offset has been
    written to disk, so that deleted records do not reappear if the broker is killed. (Kafka writes
    the offset once per minute.)
    """
    call.expect(len(request.topics) + sum(len(topic.partitions) for topic in request.topics))
    if call.is_long:
        return await _delete_records(broker, request, call)
    # Removing many segments takes time and must not occupy a handler.
    broker.nursery.start_soon(_delete_and_respond, broker, request, call, name="delete-records")
    return None


async def _delete_and_respond(
    broker: BrokerState, request: delete_records.DeleteRecordsRequest, call: Call
) -> None:
    try:
        call.respond(await _delete_records(broker, request, call))
    except Exception as error:  # boundary: one call, in a task of its own
        call.fail(error)


async def _delete_records(
    broker: BrokerState, request: delete_records.DeleteRecordsRequest, call: Call
) -> delete_records.DeleteRecordsResponse:
    # If a partition is repeated, the last offset is used, as in Kafka.
    requested: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets = requested.setdefault(topic.name, {})
        for each in topic.partitions:
            if call.must_pause():
                await call.pause()
            offsets[each.partition_index] = each.offset
    response = delete_records.DeleteRecordsResponse()
    deleted: list[tuple[delete_records.DeleteRecordsPartitionResult, Log]] = []
    for name, offsets in requested.items():
        results = []
        for index, offset in offsets.items():
            if call.must_pause():
                await call.pause()
            result = delete_records.DeleteRecordsPartitionResult(
                partition_index=index, low_watermark=NO_LOW_WATERMARK
            )
            try:
                deleted.append((result, await _delete_before(broker, name, index, offset)))
            except ApiError as error:
                result.error_code = error.error_code
            results.append(result)
        response.topics.append(
            delete_records.DeleteRecordsTopicResult(name=name, partitions=results)
        )
    if deleted:
        error_code = error_codes.NONE
        try:
            with storage_errors():
                await broker.folder.write_start_offsets()
        except ApiError as error:
            error_code = error.error_code
        for result, log in deleted:
            result.error_code = error_code
            result.low_watermark = NO_LOW_WATERMARK if error_code else log.start_offset
    return response


async def _delete_before(broker: BrokerState, topic: str, partition: int, offset: int) -> Log:
    log = broker.find_log(topic, partition)
    if is_internal(topic):
        raise ApiError(
            error_codes.INVALID_TOPIC_EXCEPTION,
            f"records of the internal topic {topic} cannot be deleted",
        )
    broker.check_not_exclusive(topic)
    if not log.config.removes_old_segments:
        raise ApiError(
            error_codes.POLICY_VIOLATION,
            f"cleanup.policy of {topic} is {log.config.cleanup_policy}; records can only be deleted"
            " if it contains delete",
        )
    if offset == HIGH_WATERMARK:
        offset = log.high_watermark
    if offset < 0:
        raise ApiError(error_codes.OFFSET_OUT_OF_RANGE, f"invalid offset {offset}")
    with storage_errors():
        await broker.cluster.delete_records(log, offset)
    return log


IN_MEMORY = "memory"
# An error may quote what it found in a file.
REASON_CHARS_MAX = 500
NOT_KNOWN = -1


@serves(api_keys.DESCRIBE_LOG_DIRS, 0, 4, only_responds=True)
async def handle_describe_log_dirs(
    broker: BrokerState, request: log_dirs.DescribeLogDirsRequest, call: Call
) -> log_dirs.DescribeLogDirsResponse:
    """Handle DescribeLogDirs, versions 0 to 4, which returns disk space and replica sizes.

    (KIP-113, KIP-827.) A broker that keeps its data in memory reports a directory named ``memory``
    with an unknown amount of disk space. Partitions of compacted topics have a tagged field of
    trionet's own, which says how they are cleaned; see :class:`.PartitionCompaction`.

    Gap: there is a single directory, so replicas never move between directories.
    """
    call.expect(len(broker.folder.logs))
    directory = broker.folder.directory
    result = log_dirs.DescribeLogDirsResult(log_dir=directory.path or IN_MEMORY)
    try:
        with storage_errors():
            result.total_bytes, result.usable_bytes = await run_blocking(
                directory, _disk_usage, directory.path
            )
        result.topics = await _replicas(broker, request, call)
    except ApiError:
        result.error_code = error_codes.KAFKA_STORAGE_ERROR
    return log_dirs.DescribeLogDirsResponse(results=[result])


def _disk_usage(path: str | None) -> tuple[int, int]:
    """Return the file system's size and the space available to this user, in bytes."""
    if path is None or not hasattr(os, "statvfs"):
        return NOT_KNOWN, NOT_KNOWN
    found = os.statvfs(path)
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize


async def _replicas(
    broker: BrokerState, request: log_dirs.DescribeLogDirsRequest, call: Call
) -> list[log_dirs.DescribeLogDirsTopic]:
    """Return the requested partitions (by default, all) that have a replica on this node."""
    logs = broker.folder.logs
    keys = dict.fromkeys(logs)
    if request.topics is not None:
        keys = {}
        for requested in request.topics:
            for partition in requested.partitions:
                if call.must_pause():
                    await call.pause()
                if (requested.topic, partition) in logs:
                    keys[requested.topic, partition] = None
    cleaner = broker.cluster.cleaner
    uncleanable = cleaner.uncleanable
    topics: dict[str, log_dirs.DescribeLogDirsTopic] = {}
    for name, partition in keys:
        if call.must_pause():
            await call.pause()
        log = logs.get((name, partition))
        replicas = broker.cluster.leadership.get((name, partition)).replicas
        if log is None or broker.node_id not in replicas:
            continue
        topic = topics.setdefault(name, log_dirs.DescribeLogDirsTopic(name=name))
        described = log_dirs.DescribeLogDirsPartition(
            partition_index=partition, partition_size=log.size, offset_lag=0
        )
        if log.config.is_compacted and call.version >= TAGS_SINCE:
            described.unknown_tags = (encode_tag(_compaction(cleaner, log, uncleanable)),)
        topic.partitions.append(described)
    return list(topics.values())


def _compaction(
    cleaner: LogCleaner, log: Log, uncleanable: Mapping[tuple[str, int], str]
) -> PartitionCompaction:
    key = log.topic, log.partition
    state = PartitionCompaction(dirty_ratio=cleaner.dirty_ratio(log) or 0.0)
    last = cleaner.last_cleanings.get(key)
    if last is not None:
        state.cleaned_ms, state.cleaning_ms = last.ended_ms, round(last.seconds * 1000)
        state.bytes_read, state.bytes_written = last.bytes_read, last.bytes_written
        state.records_read, state.records_written = last.messages_read, last.messages_written
    reason = uncleanable.get(key)
    if reason is not None:
        state.uncleanable = reason[:REASON_CHARS_MAX]
    return state
