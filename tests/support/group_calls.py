"""The requests of consumer groups in short; all their other fields are defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from support.client import Client
from trionet.protocol import error_codes
from trionet.protocol.messages.heartbeat import HeartbeatRequest
from trionet.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from trionet.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from trionet.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from trionet.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

# The highest versions.
JOIN, SYNC, HEARTBEAT, LEAVE, COMMIT, FETCH, DESCRIBE = 9, 5, 4, 5, 10, 10, 6
COMMIT_BY_NAME = 9


def join_request(
    member_id: str = "",
    *,
    group: str = "g",
    protocols: Mapping[str, bytes] | None = None,
    protocol_type: str = "consumer",
    session_ms: int = 10_000,
    rebalance_ms: int = 60_000,
    instance: str | None = None,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type=protocol_type,
        protocols=[
            JoinGroupRequestProtocol(name=name, metadata=metadata)
            for name, metadata in ({"range": b"m"} if protocols is None else protocols).items()
        ],
    )


async def join(
    client: Client, member_id: str = "", *, version: int = JOIN, **fields: Any
) -> JoinGroupResponse:
    """The response; who is told to come again with an id does so."""
    response = await client.call(join_request(member_id, **fields), version)
    if response.error_code == error_codes.MEMBER_ID_REQUIRED:
        response = await client.call(join_request(response.member_id, **fields), version)
    assert isinstance(response, JoinGroupResponse)
    return response


def sync_request(
    joined: JoinGroupResponse,
    assignments: Mapping[str, bytes] | None = None,
    *,
    group: str = "g",
    instance: str | None = None,
    version: int = SYNC,
) -> SyncGroupRequest:
    """A SyncGroup of who has joined with this answer."""
    return SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=instance,
        protocol_type="consumer" if version >= 5 else None,
        protocol_name=joined.protocol_name if version >= 5 else None,
        assignments=[
            SyncGroupRequestAssignment(member_id=id, assignment=assignment)
            for id, assignment in (assignments or {}).items()
        ],
    )


async def sync(
    client: Client,
    joined: JoinGroupResponse,
    assignments: Mapping[str, bytes] | None = None,
    *,
    version: int = SYNC,
    **fields: Any,
) -> SyncGroupResponse:
    request = sync_request(joined, assignments, version=version, **fields)
    response = await client.call(request, version)
    assert isinstance(response, SyncGroupResponse)
    return response


async def join_alone(
    client: Client, assignment: bytes = b"all", *, group: str = "g", **fields: Any
) -> JoinGroupResponse:
    """Be the only member of a stable group."""
    joined = await join(client, group=group, **fields)
    assert (0, joined.member_id) == (joined.error_code, joined.leader)
    instance = fields.get("instance")
    synced = await sync(
        client, joined, {joined.member_id: assignment}, group=group, instance=instance
    )
    assert (0, assignment) == (synced.error_code, synced.assignment)
    return joined


async def heartbeat(
    client: Client,
    joined: JoinGroupResponse,
    *,
    group: str = "g",
    instance: str | None = None,
    version: int = HEARTBEAT,
) -> int:
    request = HeartbeatRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=instance,
    )
    response = await client.call(request, version)
    error_code: int = response.error_code
    return error_code


def commit_request(
    offsets: Mapping[str | bytes, Mapping[int, int]],
    *,
    group: str = "g",
    joined: JoinGroupResponse | None = None,
    instance: str | None = None,
    metadata: str | None = "",
    leader_epoch: int = -1,
    retention_ms: int = -1,
) -> OffsetCommitRequest:
    """An OffsetCommit: by topic, named or by id, an offset for each partition."""
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1 if joined is None else joined.generation_id,
        member_id="" if joined is None else joined.member_id,
        group_instance_id=instance,
        retention_time_ms=retention_ms,
        topics=[
            OffsetCommitRequestTopic(
                **_named(topic),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_leader_epoch=leader_epoch,
                        committed_metadata=metadata,
                    )
                    for index, offset in partitions.items()
                ],
            )
            for topic, partitions in offsets.items()
        ],
    )


async def commit(
    client: Client,
    offsets: Mapping[str | bytes, Mapping[int, int]],
    *,
    version: int | None = None,
    **fields: Any,
) -> dict[tuple[str | bytes, int], int]:
    """The error code of each partition; the version is the highest that names topics so."""
    has_ids = any(isinstance(topic, bytes) for topic in offsets)
    if version is None:
        version = COMMIT if has_ids else COMMIT_BY_NAME
    response = await client.call(commit_request(offsets, **fields), version)
    return {
        (topic.topic_id if has_ids else topic.name, each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }


async def committed(
    client: Client, wanted: Mapping[str, Sequence[int]] | None = None, *, group: str = "g"
) -> dict[tuple[str, int], int]:
    """What a group has committed: of these partitions, or of all."""
    topics: Iterable[OffsetFetchRequestTopics] | None = None
    if wanted is not None:
        topics = [
            OffsetFetchRequestTopics(name=name, partition_indexes=list(indexes))
            for name, indexes in wanted.items()
        ]
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(group_id=group, topics=None if topics is None else list(topics))
        ]
    )
    [answer] = (await client.call(request, 9)).groups
    assert (0, group) == (answer.error_code, answer.group_id)
    return {
        (topic.name, each.partition_index): each.committed_offset
        for topic in answer.topics
        for each in topic.partitions
    }


def _named(topic: str | bytes) -> dict[str, Any]:
    return {"topic_id": topic} if isinstance(topic, bytes) else {"name": topic}
