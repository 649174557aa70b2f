"""How far behind a group is: its commits and assignments beside the ends of the partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from trionet.client._topic_partition import TopicPartition
from trionet.client.admin.groups._group_descriptions import GroupDescription, GroupMember
from trionet.client.admin.groups._group_offsets import CommittedOffset

Limits = tuple[int | None, int | None]
"""The first offset that is left, and the one of the next record; None where it is not known."""


class PartitionLag(NamedTuple):
    """A partition that a group has committed in, or that a member of it has.

    Attributes:
        topic: its topic.
        partition: its number.
        offset: what was committed: the next record to be read; None for nothing.
        start_offset: the first record that is left.
        end_offset: where the next record will be.
        lag: how many offsets are not read; None where nothing is committed, as Kafka's tool has it.
        member: who has it.
        client_id: what that member calls itself.
        host: where it connects from.
        metadata: what was committed beside the offset.
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
    """All partitions of a topic.

    Attributes:
        topic: the topic.
        partitions: how many the group has committed in or reads.
        uncommitted: how many of these without a commit.
        lag: of all together.
    """

    topic: str
    partitions: int
    uncommitted: int
    lag: int


FIELDS: Final = PartitionLag._fields


def partition_lags(
    group: GroupDescription | None,
    committed: Mapping[TopicPartition, CommittedOffset | None],
    limits: Mapping[TopicPartition, Limits],
) -> list[PartitionLag]:
    """What is known of each partition, by topic and number.

    Args:
        group: its members; None if it has none.
        committed: its offsets.
        limits: where the partitions begin and end.
    """
    owners = _owners(group.members if group is not None else ())
    keys = sorted({*owners, *(key for key, each in committed.items() if each is not None)})
    return [_lag(key, owners.get(key), committed.get(key), limits.get(key)) for key in keys]


def topic_lags(partitions: Iterable[PartitionLag]) -> list[TopicLag]:
    """The same by topic."""
    by_topic: dict[str, list[PartitionLag]] = {}
    for each in partitions:
        by_topic.setdefault(each.topic, []).append(each)
    return [
        TopicLag(topic, len(rows), sum(row.offset is None for row in rows), total_lag(rows))
        for topic, rows in by_topic.items()
    ]


def total_lag(partitions: Iterable[PartitionLag]) -> int:
    """Of all partitions whose lag is known."""
    return sum(each.lag or 0 for each in partitions)


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
    # A log that was cut, or made anew, ends before what was committed: nothing is unread there.
    lag = None if offset is None or end is None else max(0, end - offset)
    return PartitionLag(
        key.topic,
        key.partition,
        offset,
        start,
        end,
        lag,
        None if owner is None else owner.id,
        None if owner is None else owner.client_id,
        None if owner is None else owner.client_host,
        "" if committed is None else committed.metadata,
    )
