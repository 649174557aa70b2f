"""The committed offsets of groups, and their expiry.

(Kafka: OffsetMetadataManager, OffsetExpirationConditionImpl.) In memory only; a change is stored
before it is applied here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

Partition = tuple[str, int]
"""The name of a topic and the number of a partition."""

NO_EPOCH: Final = -1


@attrs.frozen
class CommittedOffset:
    """One committed offset.

    Attributes:
        offset: the offset of the next record to read.
        leader_epoch: the leader epoch of the record before it, -1 if the client stated none.
        metadata: the text that the client committed with the offset.
        committed_at_ms: when it was committed, in ms since the epoch.
        expires_at_ms: when it expires regardless of the retention, if the client set that
            (OffsetCommit up to version 4).
    """

    offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int
    expires_at_ms: int | None = None


class CommittedOffsets:
    """All committed offsets, by group."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[Partition, CommittedOffset]] = {}

    def of(self, group_id: str) -> Mapping[Partition, CommittedOffset]:
        """Return the offsets of a group by partition; empty if it has none."""
        return self._groups.get(group_id, {})

    def put(self, group_id: str, offsets: Mapping[Partition, CommittedOffset]) -> None:
        if offsets:
            self._groups.setdefault(group_id, {}).update(offsets)

    def remove(self, group_id: str, partitions: Iterable[Partition]) -> None:
        offsets = self._groups.get(group_id)
        if offsets is None:
            return
        for partition in partitions:
            offsets.pop(partition, None)
        if not offsets:
            del self._groups[group_id]

    def remove_group(self, group_id: str) -> None:
        self._groups.pop(group_id, None)

    def remove_topic(self, topic: str) -> None:
        for group_id, offsets in list(self._groups.items()):
            self.remove(group_id, [partition for partition in offsets if partition[0] == topic])


def expired(
    offsets: Mapping[Partition, CommittedOffset],
    now_ms: int,
    retention_ms: int,
    *,
    empty_since_ms: int | None,
    in_use: frozenset[str] | None,
) -> list[Partition]:
    """Return the partitions of a group whose offsets have expired (KIP-211).

    Args:
        offsets: the offsets of the group.
        now_ms: the time, in ms since the epoch.
        retention_ms: ``offsets.retention.minutes``.
        empty_since_ms: when the last member of a group with a protocol left; None while it has
            members, and for a group that never had any.
        in_use: the topics that members are subscribed to; None if unknown: nothing expires then.
    """
    if in_use is None:
        return []

    def is_due(each: CommittedOffset) -> bool:
        if each.expires_at_ms is not None:
            return now_ms >= each.expires_at_ms
        return now_ms - max(each.committed_at_ms, empty_since_ms or 0) >= retention_ms

    return [
        partition
        for partition, each in offsets.items()
        if partition[0] not in in_use and is_due(each)
    ]
