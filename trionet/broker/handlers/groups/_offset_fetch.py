"""Implements OffsetFetch, versions 0 to 10, which returns the committed offsets of groups.

Without transactions, offsets are never pending, so ``require_stable`` has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ....protocol import api_keys, error_codes
from ....protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ...api._call import Call
from ...api._dispatch import serves
from ...groups._committed_offsets import CommittedOffset, Partition
from ...model._broker_state import BrokerState

# Before this version, only partitions have an error code.
TOP_LEVEL_ERROR_VERSION = 2
MANY_GROUPS_VERSION = 8
TOPIC_ID_VERSION = 10
# The value for a partition without a committed offset.
_NONE = CommittedOffset(-1, -1, "", 0)


@serves(api_keys.OFFSET_FETCH, 0, 10, only_responds=True)
async def handle(
    broker: BrokerState, request: OffsetFetchRequest, call: Call
) -> OffsetFetchResponse:
    if call.version < MANY_GROUPS_VERSION:
        return await _one_group(broker, request, call)
    call.expect(len(request.groups))
    requested = []
    whole = set()
    for group in request.groups:
        if call.must_pause():
            await call.pause()
        if group.topics is None:
            if group.group_id in whole:
                continue  # all offsets of a group only once (Kafka: as often as requested)
            whole.add(group.group_id)
        requested.append(group)
    call.expect(sum(len(broker.groups.offsets.of(group_id)) for group_id in whole))
    groups = [await _group(broker, group, call) for group in requested]
    return OffsetFetchResponse(groups=groups)


async def _one_group(
    broker: BrokerState, request: OffsetFetchRequest, call: Call
) -> OffsetFetchResponse:
    error_code = broker.groups.coordinator_error(request.group_id)
    if error_code:
        if call.version < TOP_LEVEL_ERROR_VERSION:
            return _failed(request, error_code)
        return OffsetFetchResponse(error_code=error_code)
    offsets = broker.groups.offsets.of(request.group_id)
    requested: list[tuple[str, list[int]]]
    if request.topics is None:
        call.expect(len(offsets))
        requested = await _by_topic(offsets, call)
    else:
        requested = [(topic.name, topic.partition_indexes) for topic in request.topics]
    topics = (
        OffsetFetchResponseTopic(
            name=name,
            partitions=call.elements(
                (_old_partition(i, offsets.get((name, i), _NONE)) for i in partitions),
                len(partitions),
            ),
        )
        for name, partitions in requested
    )
    return OffsetFetchResponse(topics=call.elements(topics, len(requested)))


def _old_partition(index: int, committed: CommittedOffset) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _failed(request: OffsetFetchRequest, error_code: int) -> OffsetFetchResponse:
    """Return a response that reports the error for each partition."""
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index,
                        committed_offset=_NONE.offset,
                        metadata=_NONE.metadata,
                        error_code=error_code,
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
    )


async def _group(
    broker: BrokerState, group: OffsetFetchRequestGroup, call: Call
) -> OffsetFetchResponseGroup:
    if call.must_pause():
        await call.pause()
    error_code = broker.groups.coordinator_error(group.group_id)
    if error_code:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error_code)
    offsets = broker.groups.offsets.of(group.group_id)
    topics: Iterable[OffsetFetchResponseTopics]
    if group.topics is None:
        known_topics = [
            each
            for each in await _by_topic(offsets, call)
            if call.version < TOPIC_ID_VERSION or broker.topics.get(each[0]) is not None
        ]
        count = len(known_topics)
        topics = (_whole_topic(broker, call, offsets, *each) for each in known_topics)
    else:
        count = len(group.topics)
        topics = (_topic(broker, call, offsets, requested) for requested in group.topics)
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=call.elements(topics, count))


def _whole_topic(
    broker: BrokerState,
    call: Call,
    offsets: Mapping[Partition, CommittedOffset],
    name: str,
    partitions: list[int],
) -> OffsetFetchResponseTopics:
    topic = OffsetFetchResponseTopics(name=name)
    known = broker.topics.get(name)
    if known is not None:
        topic.topic_id = known.id
    topic.partitions = call.elements(
        (_partition(index, offsets.get((name, index), _NONE)) for index in partitions),
        len(partitions),
    )
    return topic


def _topic(
    broker: BrokerState,
    call: Call,
    offsets: Mapping[Partition, CommittedOffset],
    requested: OffsetFetchRequestTopics,
) -> OffsetFetchResponseTopics:
    name = requested.name
    error_code = error_codes.NONE
    if call.version >= TOPIC_ID_VERSION:
        known = broker.topics.by_id(requested.topic_id)
        if known is None:
            error_code = error_codes.UNKNOWN_TOPIC_ID
        else:
            name = known.name
    return OffsetFetchResponseTopics(
        name=requested.name,
        topic_id=requested.topic_id,
        partitions=call.elements(
            (
                _partition(index, offsets.get((name, index), _NONE), error_code)
                for index in requested.partition_indexes
            ),
            len(requested.partition_indexes),
        ),
    )


def _partition(
    index: int, committed: CommittedOffset, error_code: int = error_codes.NONE
) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=error_code,
    )


async def _by_topic(
    offsets: Mapping[Partition, CommittedOffset], call: Call
) -> list[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for name, index in list(offsets):
        if call.must_pause():
            await call.pause()
        topics.setdefault(name, []).append(index)
    return [(name, sorted(topics[name])) for name in sorted(topics)]
