"""Groups with their members, offsets and lag: fetched, computed, and shown as tables and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from trionet.client._topic_partition import TopicPartition, offset_lag, total_lag
from trionet.client.admin._admin import Admin
from trionet.client.admin._calls import Results
from trionet.client.admin._group_descriptions import GroupDescription, GroupMember
from trionet.client.admin._groups import CommittedOffset
from trionet.errors import ApiError, TrionetError, UnsupportedVersionError
from trionet.protocol.error_codes import GROUP_ID_NOT_FOUND

from .arguments._topic_partitions import assignment_text
from .clients._partition_offsets import start_and_end, with_leader
from .terminal._output import Table, facts

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
    metadata = "" if committed is None else committed.metadata
    member: tuple[str | None, str | None, str | None] = (None, None, None)
    if owner is not None:
        member = (owner.id, owner.client_id, owner.client_host)
    return PartitionLag(*key, offset, start, end, offset_lag(offset, end), *member, metadata)


class Group(NamedTuple):
    """A snapshot of a group.

    Attributes:
        about: the state and the members.
        partitions: the committed offsets, assignments and lag.
    """

    about: GroupDescription
    partitions: list[PartitionLag]


async def take_snapshot(
    admin: Admin, names: Sequence[str]
) -> tuple[list[Group], list[TrionetError]]:
    """Return snapshots of the groups with these names, and the errors of failed groups.

    Raises:
        TrionetError: a request as a whole failed.
    """
    described = await _described(admin, names)
    found = {name: each for name, each in described.items() if isinstance(each, GroupDescription)}
    results = await admin.list_group_offsets(list(found))
    committed: dict[str, dict[TopicPartition, CommittedOffset | None]] = {}
    errors = list(described.errors.values())
    for name, offsets in results.items():
        if isinstance(offsets, TrionetError):
            errors.append(offsets)
            continue
        errors += offsets.errors.values()
        committed[name] = {
            key: each for key, each in offsets.items() if not isinstance(each, TrionetError)
        }
    limits, failed = await _limits(admin, found, committed)
    groups = [
        Group(group, partition_lags(group, committed.get(name, {}), limits))
        for name, group in found.items()
    ]
    return groups, [*errors, *failed]


async def _described(admin: Admin, names: Sequence[str]) -> Results[str, GroupDescription]:
    """Describe consumer groups and share groups, which require different requests."""
    results = await admin.describe_groups(names)
    missing = [name for name, error in results.errors.items() if _is_not_found(error)]
    if not missing:
        return results
    try:
        others = await admin.describe_share_groups(missing)
    except UnsupportedVersionError:
        return results
    results.update(
        {name: each for name, each in others.items() if isinstance(each, GroupDescription)}
    )
    return results


def _is_not_found(error: TrionetError) -> bool:
    return isinstance(error, ApiError) and error.error_code == GROUP_ID_NOT_FOUND


async def _limits(
    admin: Admin,
    groups: Mapping[str, GroupDescription],
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset | None]],
) -> tuple[dict[TopicPartition, Limits], list[TrionetError]]:
    """Return the start and end offsets of the groups' partitions that have a leader."""
    keys = {key for offsets in committed.values() for key in offsets}
    keys |= {key for group in groups.values() for each in group.members for key in each.assignment}
    topics = await admin.describe_topics(sorted({key.topic for key in keys}))
    led, _ = with_leader(sorted(keys), topics)
    limits, failed = await start_and_end(admin, led)
    return {**limits}, [*topics.errors.values(), *failed]


def summaries(groups: Iterable[Group]) -> Table:
    """Return a table with one row per group."""
    rows = [tuple(_summary(group).values()) for group in groups]
    return Table(_SUMMARY, rows)


def members(groups: Iterable[Group]) -> Table:
    """Return a table with one row per member."""
    fields = ("group", "member", "instance", "client_id", "host", "partitions", "assignment")
    rows = [
        (
            group.about.id,
            each.id,
            each.instance_id,
            each.client_id,
            each.client_host,
            len(each.assignment),
            assignment_text(each.assignment),
        )
        for group in groups
        for each in group.about.members
    ]
    return Table(fields, rows)


def topics(groups: Iterable[Group]) -> Table:
    """Return a table with one row per topic of each group."""
    rows = [(group.about.id, *each) for group in groups for each in topic_lags(group.partitions)]
    return Table(("group", *TopicLag._fields), rows)


def partitions(groups: Iterable[Group]) -> Table:
    """Return a table with one row per partition of each group."""
    rows = [(group.about.id, *each) for group in groups for each in group.partitions]
    return Table(("group", *PartitionLag._fields), rows)


#: The functions that make the tables, keyed by the value of ``--only``.
TABLES: Final[Mapping[str, Callable[[Iterable[Group]], Table]]] = MappingProxyType(
    {"summary": summaries, "members": members, "topics": topics, "partitions": partitions}
)


def group_tables(group: Group) -> list[Table]:
    """Return all tables of a group, for the text form."""
    by_topic = topics([group])
    shown = [members([group]), by_topic if len(by_topic.rows) > 1 else None, partitions([group])]
    return [
        facts(_summary(group)),
        *(table.without_first_column() for table in shown if table is not None and table.rows),
    ]


def document(group: Group) -> dict[str, Any]:
    """Return a group as a JSON document."""
    assignments = [
        [{"topic": key.topic, "partition": key.partition} for key in sorted(each.assignment)]
        for each in group.about.members
    ]
    rows = [
        {**row, "assignment": assignment}
        for row, assignment in zip(
            members([group]).without_first_column().documents(), assignments, strict=True
        )
    ]
    return {
        **_summary(group),
        "members": rows,
        "topics": [each._asdict() for each in topic_lags(group.partitions)],
        "partitions": [each._asdict() for each in group.partitions],
    }


_SUMMARY: Final = ("group", "type", "state", "coordinator", "assignor", "members", "lag")


def _summary(group: Group) -> dict[str, Any]:
    about = group.about
    values = (
        about.id,
        about.type,
        about.state,
        str(about.coordinator),
        about.assignor or None,
        len(about.members),
        committed_lag(group.partitions),
    )
    return dict(zip(_SUMMARY, values, strict=True))
