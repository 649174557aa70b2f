"""Builds OffsetCommit and OffsetFetch requests, and parses their responses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ....errors import TrionetError
from ....protocol import error_codes
from ....protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ....protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ..._api_errors import api_error
from ..._topic_partition import OffsetAndMetadata, TopicPartition, by_topic
from ._classic_member import Generation
from ._group_settings import GroupSettings

NAMES_VERSION_MAX: Final = 9
"""The newest version of both APIs that uses topic names. Names are used so that offsets can be
committed for topics whose ids this client does not know."""

_GROUPS_VERSION: Final = 8  # of OffsetFetch: from here on for several groups
_STABLE_VERSION: Final = 7  # of OffsetFetch: KIP-447
_NO_OFFSET: Final = -1

_ABOUT_GROUP: Final = frozenset(
    {
        error_codes.GROUP_AUTHORIZATION_FAILED,
        error_codes.COORDINATOR_LOAD_IN_PROGRESS,
        error_codes.COORDINATOR_NOT_AVAILABLE,
        error_codes.NOT_COORDINATOR,
        error_codes.UNKNOWN_MEMBER_ID,
        error_codes.ILLEGAL_GENERATION,
        error_codes.FENCED_INSTANCE_ID,
        error_codes.REBALANCE_IN_PROGRESS,
    }
)
"""Errors that concern the group, although the coordinator returns them for each partition."""


def commit_request(
    settings: GroupSettings,
    generation: Generation,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
) -> OffsetCommitRequest:
    """Build an OffsetCommit request."""
    return OffsetCommitRequest(
        group_id=settings.group_id,
        generation_id_or_member_epoch=generation.id,
        member_id=generation.member_id,
        group_instance_id=settings.instance_id if generation.member_id else None,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    _partition(each, offsets[TopicPartition(topic, each)]) for each in partitions
                ],
            )
            for topic, partitions in by_topic(offsets).items()
        ],
    )


def _partition(number: int, offset: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=offset.offset,
        committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
        committed_metadata=offset.metadata,
    )


def refusal(response: OffsetCommitResponse) -> tuple[int, str] | None:
    """Return an error code in an OffsetCommit response and its partition; None if there is none.

    Errors that concern the whole group take precedence over errors of single partitions.
    """
    found = [
        (each.error_code, str(TopicPartition(topic.name, each.partition_index)))
        for topic in response.topics
        for each in topic.partitions
        if each.error_code
    ]
    return min(found, key=lambda error: error[0] not in _ABOUT_GROUP, default=None)


def fetch_request(
    settings: GroupSettings, partitions: Iterable[TopicPartition], version: int
) -> OffsetFetchRequest:
    """Build an OffsetFetch request, which requires stable offsets from version 7 on (KIP-447)."""
    wanted = by_topic(partitions).items()
    if version >= _GROUPS_VERSION:
        topics = [OffsetFetchRequestTopics(name=t, partition_indexes=p) for t, p in wanted]
        group = OffsetFetchRequestGroup(group_id=settings.group_id, topics=topics)
        return OffsetFetchRequest(groups=[group], require_stable=True)
    return OffsetFetchRequest(
        group_id=settings.group_id,
        topics=[OffsetFetchRequestTopic(name=t, partition_indexes=p) for t, p in wanted],
        require_stable=version >= _STABLE_VERSION,
    )


def fetched(
    response: OffsetFetchResponse,
) -> tuple[dict[TopicPartition, OffsetAndMetadata | None], dict[TopicPartition, TrionetError]]:
    """Return each partition's committed offset, or None, and the errors of the other partitions.

    Raises:
        ApiError: the request was rejected.
    """
    group = response.groups[0] if response.groups else response
    if group.error_code:
        raise api_error(group.error_code, "committed offsets")
    offsets: dict[TopicPartition, OffsetAndMetadata | None] = {}
    errors: dict[TopicPartition, TrionetError] = {}
    for topic in group.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if each.error_code:
                errors[partition] = api_error(each.error_code, f"committed offset of {partition}")
            elif each.committed_offset <= _NO_OFFSET:
                offsets[partition] = None
            else:
                epoch = each.committed_leader_epoch
                offsets[partition] = OffsetAndMetadata(
                    each.committed_offset, each.metadata or "", epoch if epoch >= 0 else None
                )
    return offsets, errors
