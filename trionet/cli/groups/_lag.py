"""Computes the lag of groups from committed offsets and end offsets; performs no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from trionet.client._topic_partition import TopicPartition, offset_lag, total_lag
from trionet.client.admin._group_descriptions import GroupDescription, GroupMember
from trionet.client.admin._groups import CommittedOffset

Limits = tuple[int | None, int | None]
"""Log start offset and end offset of a partition, or None where unknown."""


class PartitionLag(NamedTuple):
    """The lag of a group in a partition that has a committed offset or is assigned to a member.

    Attributes:
        topic: the topic.
        partition: the number of the partition.
        offset: the committed offset; None if there is none.
        start_offset: the log start offset; None if unknown.
        end_offset: the end offset; None if unknown.
        lag: the number of unread offsets; None if there is no committed offset, as in Kafka's tool,
            or if the end offset is unknown.
        member: the id of the member that owns the partition; None if it is unassigned.
        client_id: the client id of the member.
        host: the host of the member.
        metadata: the metadata committed with the offset.
    """

    topic: str
    partition: int
    offset: int | None
    start_offset: int | None
    end_offset: int | None
    lag: int | None
    member: str | None
    client_id: str | None
    host: str | None
    metadata: str


class TopicLag(NamedTuple):
    """The totals over the partitions of a topic.

    Attributes:
        topic: the topic.
        partitions: the number of partitions that have a committed offset or are assigned.
        uncommitted: the number of assigned partitions without a committed offset.
        lag: the total lag; None if the lag of a partition with a committed offset is unknown.
    """

    topic: str
    partitions: int
    uncommitted: int
    lag: int | None


FIELDS: Final = PartitionLag._fields


def partition_lags(
    group: GroupDescription | None,
    committed: Mapping[TopicPartition, CommittedOffset | None],
    limits: Mapping[TopicPartition, Limits],
) -> list[PartitionLag]:
    """Return the lag of each partition of a group, sorted by topic and number.

    Args:
        group: the description of the group, including the members; None if unknown.
        committed: the committed offsets of the group.
        limits: the start and end offsets of the partitions.
    """
    owners = _owners(group.members if group is not None else ())
    keys = sorted({*owners, *(key for key, each in committed.items() if each is not None)})
    return [_lag(key, owners.get(key), committed.get(key), limits.get(key)) for key in keys]


def topic_lags(partitions: Iterable[PartitionLag]) -> list[TopicLag]:
    """Return the totals for each topic."""
    by_topic: dict[str, list[PartitionLag]] = {}
    for each in partitions:
        by_topic.setdefault(each.topic, []).append(each)
    return [
        TopicLag(topic, len(rows), sum(row.offset is None for row in rows), committed_lag(rows))
        for topic, rows in by_topic.items()
    ]


def committed_lag(partitions: Iterable[PartitionLag]) -> int | None:
    """Return the total lag of the partitions with a committed offset, or None if one is unknown."""
    return total_lag(each.lag for each in partitions if each.offset is not None)


def _owners(members: Sequence[GroupMember]) -> dict[TopicPartition, GroupMember]:
    return {key: member for member in members for key in member.assignment}


def _lag(
    key: TopicPartition,
    owner: GroupMember | None,
    committed: CommittedOffset | None,
    limits: Limits | None,
) -> PartitionLag:
    start, end = limits or (None, None)
    offset = None if committed is None else committed.offset
    return PartitionLag(
        key.topic,
        key.partition,
        offset,
        start,
        end,
        offset_lag(offset, end),
        None if owner is None else owner.id,
        None if owner is None else owner.client_id,
        None if owner is None else owner.client_host,
        "" if committed is None else committed.metadata,
    )
