"""The committed offsets of groups, in memory and as rows of the database.

(Kafka: OffsetMetadataManager.)
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import attrs

from ..storage._tables import INT32, INT64, TEXT, UINT31, Fields, Table, nullable
from ..storage._write_queue import Statements, in_parts

if TYPE_CHECKING:  # loaded when a database is opened
    from sqlite3 import Connection

Partition = tuple[str, int]
"""A topic name and a partition number."""


@attrs.frozen
class CommittedOffset:
    """A committed offset with its metadata.

    Attributes:
        offset: the offset of the next record to read.
        leader_epoch: the leader epoch of the preceding record; -1 if the client did not send it.
        metadata: the text that the client committed with the offset.
        committed_at_ms: the time of the commit, in ms since the epoch.
        expires_at_ms: the time at which the offset expires, if the client set its own retention
            (OffsetCommit up to version 4).
    """

    offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int
    expires_at_ms: int | None = None


class CommittedOffsets:
    """The committed offsets of all groups."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[Partition, CommittedOffset]] = {}
        # The topics of each group and the groups of each topic, so that the deletion of a topic
        # concerns its own groups only. A group keeps a topic until one of them is removed.
        self._topics_of: dict[str, set[str]] = {}
        self._groups_of: dict[str, set[str]] = {}

    def of(self, group_id: str) -> Mapping[Partition, CommittedOffset]:
        """Return a group's committed offsets by partition."""
        return self._groups.get(group_id, {})

    def put(self, group_id: str, offsets: Mapping[Partition, CommittedOffset]) -> None:
        if not offsets:
            return
        mine = self._groups.setdefault(group_id, {})
        before = len(mine)
        mine.update(offsets)
        if len(mine) > before:
            topics = {topic for topic, _ in offsets}
            self._topics_of.setdefault(group_id, set()).update(topics)
            for topic in topics:
                self._groups_of.setdefault(topic, set()).add(group_id)

    def remove(self, group_id: str, partitions: Iterable[Partition]) -> None:
        offsets = self._groups.get(group_id)
        if offsets is None:
            return
        for partition in partitions:
            offsets.pop(partition, None)
        if not offsets:
            self.remove_group(group_id)

    def remove_group(self, group_id: str) -> None:
        self._groups.pop(group_id, None)
        for topic in self._topics_of.pop(group_id, ()):
            groups = self._groups_of[topic]
            groups.remove(group_id)
            if not groups:
                del self._groups_of[topic]

    def remove_topic(self, topic: str) -> None:
        for group_id in self._groups_of.pop(topic, ()):
            self._topics_of[group_id].remove(topic)
            offsets = self._groups[group_id]
            self.remove(group_id, [partition for partition in offsets if partition[0] == topic])


def expired(
    offsets: Mapping[Partition, CommittedOffset],
    now_ms: int,
    retention_ms: int,
    *,
    empty_since_ms: int | None,
    in_use: frozenset[str] | None,
    pending: Container[Partition] = frozenset(),
) -> list[Partition]:
    """Return the partitions of a group whose offsets have expired (KIP-211).

    Args:
        offsets: the group's committed offsets.
        now_ms: the current time, in ms since the epoch.
        retention_ms: the value of ``offsets.retention.minutes``, in ms.
        empty_since_ms: the time at which the last member left; None if the group has members or
            never had any.
        in_use: the topics that members are subscribed to, whose offsets do not expire. If None,
            the subscriptions are unknown and no offsets expire.
        pending: the partitions with pending offsets, whose committed offsets do not expire.
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
        if partition[0] not in in_use and partition not in pending and is_due(each)
    ]


KEYS: Final = {"group_id": TEXT, "topic": TEXT, "partition": UINT31}
"""The checks of what identifies an offset in a table."""

# The client's numbers are stored and given back as they are, even if they make no sense.
VALUES: Final = {"offset": INT64, "leader_epoch": INT32, "metadata": TEXT, "committed_at_ms": INT64}
"""The checks of the values that all tables of offsets have."""

OFFSETS: Final = Table(
    "committed_offset", len(KEYS), Fields(**KEYS, **VALUES, expires_at_ms=nullable(INT64))
)

# Faster than attrs.astuple, which takes as long as storing a row.
_columns = attrgetter(*(field.name for field in attrs.fields(CommittedOffset)))


def put_offsets(group_id: str, offsets: Mapping[Partition, CommittedOffset]) -> Statements:
    """Return the statements that store a group's committed offsets."""

    def statements(connection: Connection) -> Iterator[int]:
        for some in in_parts(offsets.items()):
            OFFSETS.put(
                connection, [(group_id, *partition, *_columns(each)) for partition, each in some]
            )
            yield len(some)

    return statements


def load_offsets(connection: Connection) -> dict[str, dict[Partition, CommittedOffset]]:
    """Return the committed offsets by group and partition."""
    offsets: dict[str, dict[Partition, CommittedOffset]] = {}
    for group_id, topic, partition, *columns in OFFSETS.read(connection, lambda *row: row):
        offsets.setdefault(group_id, {})[topic, partition] = CommittedOffset(*columns)
    return offsets
