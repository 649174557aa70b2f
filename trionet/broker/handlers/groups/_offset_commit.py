"""Implements OffsetCommit, versions 0 to 10; version 10 uses topic ids.

The response is sent once the offsets are stored, so that they are not lost if the broker is killed.
Version 0, with which Kafka stored offsets in ZooKeeper, is treated like the other versions.
"""

from __future__ import annotations

from ....protocol import api_keys, error_codes
from ....protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ...api._call import Call
from ...api._dispatch import serves
from ...groups._committed_offsets import CommittedOffset, Partition
from ...groups._group_calls import Caller
from ...model._broker_state import BrokerState
from ...model._topic_store import Topic

# From this version on, there is a specific error for unknown groups (KIP-848).
GROUP_NOT_FOUND_VERSION = 9
TOPIC_ID_VERSION = 10
# The maximum timestamp of 64 bits.
_NEVER_MS = 2**63 - 1
_UNKNOWN = (error_codes.UNKNOWN_TOPIC_ID, error_codes.UNKNOWN_TOPIC_OR_PARTITION)


@serves(api_keys.OFFSET_COMMIT, 0, 10)
async def handle(broker: BrokerState, request: OffsetCommitRequest, call: Call) -> None:
    call.expect(len(request.topics) + sum(len(topic.partitions) for topic in request.topics))
    now_ms = broker.now_ms()
    metadata_bytes_max = broker.config.integer("offset.metadata.max.bytes")
    retention_ms = request.retention_time_ms
    expires_at_ms = min(now_ms + retention_ms, _NEVER_MS) if retention_ms >= 0 else None
    offsets: dict[Partition, CommittedOffset] = {}
    topics = []
    found: dict[str, Topic | None] = {}
    has_known = False
    for topic in request.topics:
        name = _name_of(broker, topic, call.version)
        if name is not None:
            found[name] = broker.topics.get(name)
        partitions = []
        if call.must_pause():
            await call.pause()
        for each in topic.partitions:
            if call.must_pause():
                await call.pause()
            error_code = _check(broker, name, each, metadata_bytes_max)
            has_known = has_known or error_code not in _UNKNOWN
            if not error_code and name is not None:
                offsets[name, each.partition_index] = CommittedOffset(
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata or "",
                    each.commit_timestamp if each.commit_timestamp >= 0 else now_ms,
                    expires_at_ms,
                )
            partitions.append(
                OffsetCommitResponsePartition(
                    partition_index=each.partition_index, error_code=error_code
                )
            )
        topics.append(
            OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=partitions
            )
        )
    response = OffsetCommitResponse(topics=topics)
    if not has_known:
        call.respond(response)
        return
    if call.is_long:
        # Topics may have been deleted during the pauses. Respond as if it happened later.
        gone = {name for name, topic in found.items() if _is_gone(broker, name, topic)}
        offsets = {each: offset for each, offset in offsets.items() if each[0] not in gone}
    caller = Caller(
        request.member_id, request.group_instance_id, request.generation_id_or_member_epoch
    )
    new = call.version >= GROUP_NOT_FOUND_VERSION
    broker.groups.commit(
        request.group_id,
        caller,
        offsets,
        lambda code: _respond(call, response, code),
        missing=error_codes.GROUP_ID_NOT_FOUND if new else error_codes.ILLEGAL_GENERATION,
    )


def _is_gone(broker: BrokerState, name: str, before: Topic | None) -> bool:
    now = broker.topics.get(name)
    return before is None or now is None or now.id != before.id


def _name_of(broker: BrokerState, topic: OffsetCommitRequestTopic, version: int) -> str | None:
    if version < TOPIC_ID_VERSION:
        return topic.name
    known = broker.topics.by_id(topic.topic_id)
    return known.name if known is not None else None


def _check(
    broker: BrokerState,
    name: str | None,
    each: OffsetCommitRequestPartition,
    metadata_bytes_max: int,
) -> int:
    if name is None:
        return error_codes.UNKNOWN_TOPIC_ID
    if broker.get_log(name, each.partition_index) is None:
        return error_codes.UNKNOWN_TOPIC_OR_PARTITION
    if len(each.committed_metadata or "") > metadata_bytes_max:
        return error_codes.OFFSET_METADATA_TOO_LARGE
    return error_codes.NONE


def _respond(call: Call, response: OffsetCommitResponse, error_code: int) -> None:
    if error_code:
        topics = response.topics
        response.topics = call.elements(
            (_failed(call, topic, error_code) for topic in topics), len(topics)
        )
    call.respond(response)


def _failed(
    call: Call, topic: OffsetCommitResponseTopic, error_code: int
) -> OffsetCommitResponseTopic:
    """Return the error response for a topic whose offsets could not be committed."""
    partitions = (
        OffsetCommitResponsePartition(
            partition_index=each.partition_index,
            error_code=each.error_code if each.error_code in _UNKNOWN else error_code,
        )
        for each in topic.partitions
    )
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=call.elements(partitions, len(topic.partitions)),
    )
