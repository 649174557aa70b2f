"""Fetches group descriptions, committed offsets and end offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from trionet.client._topic_partition import TopicPartition
from trionet.client.admin._admin import Admin
from trionet.client.admin._calls import Results
from trionet.client.admin._group_descriptions import GroupDescription
from trionet.client.admin._groups import CommittedOffset
from trionet.errors import ApiError, TrionetError, UnsupportedVersionError
from trionet.protocol.error_codes import GROUP_ID_NOT_FOUND

from ..clients._partition_offsets import start_and_end
from ._lag import Limits, PartitionLag, partition_lags


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
    errors = list(topics.errors.values())
    led = [
        key
        for key in sorted(keys)
        if (topic := topics.get(key.topic)) is not None
        and not isinstance(topic, TrionetError)
        and (part := topic.partitions.get(key.partition)) is not None
        and part.leader >= 0
    ]
    limits, failed = await start_and_end(admin, led)
    return {**limits}, [*errors, *failed]
