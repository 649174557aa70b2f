"""OffsetFetch, versions 0 to 10: what a group has committed; many groups from version 8 on.

There are no transactions, so that no offset is ever pending and ``require_stable`` changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

import trio

from ...protocol import error_codes
from ...protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ..call import Call
from ..groups.offsets import CommittedOffset
from ..state import BrokerState

# Before, there is no place for an error but that of each partition.
TOP_LEVEL_ERROR_VERSION = 2
MANY_GROUPS_VERSION = 8
TOPIC_ID_VERSION = 10
# What is told of a partition without a committed offset.
_NONE = CommittedOffset(-1, -1, "", 0)


async def handle(
    broker: BrokerState, request: OffsetFetchRequest, call: Call
) -> OffsetFetchResponse:
    if call.version < MANY_GROUPS_VERSION:
        return _one_group(broker, request, call.version)
    groups = []
    for group in request.groups:
        await trio.lowlevel.checkpoint()  # there may be thousands
        groups.append(_group(broker, group, call.version))
    return OffsetFetchResponse(groups=groups)


def _one_group(
    broker: BrokerState, request: OffsetFetchRequest, version: int
) -> OffsetFetchResponse:
    error_code = broker.groups.elsewhere(request.group_id)
    if error_code:
        if version < TOP_LEVEL_ERROR_VERSION:
            return _refused(request, error_code)
        return OffsetFetchResponse(error_code=error_code)
    offsets = broker.groups.offsets.of(request.group_id)
    wanted: Iterable[tuple[str, Iterable[int]]]
    if request.topics is None:
        wanted = _by_topic(offsets)
    else:
        wanted = ((topic.name, topic.partition_indexes) for topic in request.topics)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index,
                        committed_offset=committed.offset,
                        committed_leader_epoch=committed.leader_epoch,
                        metadata=committed.metadata,
                    )
                    for index in partitions
                    for committed in [offsets.get((name, index), _NONE)]
                ],
            )
            for name, partitions in wanted
        ]
    )


def _refused(request: OffsetFetchRequest, error_code: int) -> OffsetFetchResponse:
    """The error, said of each partition."""
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


def _group(
    broker: BrokerState, group: OffsetFetchRequestGroup, version: int
) -> OffsetFetchResponseGroup:
    error_code = broker.groups.elsewhere(group.group_id)
    if error_code:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error_code)
    offsets = broker.groups.offsets.of(group.group_id)
    topics = []
    if group.topics is None:
        for name, partitions in _by_topic(offsets):
            known = broker.topics.get(name)
            if version < TOPIC_ID_VERSION or known is not None:
                topic = OffsetFetchResponseTopics(name=name)
                if known is not None:
                    topic.topic_id = known.id
                topic.partitions = [_partition(index, offsets[name, index]) for index in partitions]
                topics.append(topic)
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)
    for asked in group.topics:
        topic = OffsetFetchResponseTopics(name=asked.name, topic_id=asked.topic_id)
        name = asked.name
        error_code = error_codes.NONE
        if version >= TOPIC_ID_VERSION:
            known = broker.topics.by_id(asked.topic_id)
            if known is None:
                error_code = error_codes.UNKNOWN_TOPIC_ID
            else:
                name = known.name
        topic.partitions = [
            _partition(index, offsets.get((name, index), _NONE), error_code)
            for index in asked.partition_indexes
        ]
        topics.append(topic)
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


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


def _by_topic(partitions: Iterable[tuple[str, int]]) -> Iterator[tuple[str, list[int]]]:
    for topic, group in groupby(sorted(partitions), key=itemgetter(0)):
        yield topic, [index for _, index in group]
