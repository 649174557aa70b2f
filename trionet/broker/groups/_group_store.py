"""The storage of groups and committed offsets in the broker's database, and the offsets in memory.

(Kafka: the topic ``__consumer_offsets``, OffsetMetadataManager.) A transaction stores all writes
that were queued during the previous transaction, so that a thousand offset commits per second need
only a few dozen fsyncs. Each write has a callback, which is called once the write is stored or has
failed, and completes the client's request. A change is stored in the database before it is applied
to the offsets in memory.
"""

from __future__ import annotations

import base64
import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar

import attrs
import trio

from ..storage._database import ROWS_PER_TURN, Database, DatabaseError, Steps
from ..storage._storage_errors import commit_error
from ._stored_group import StoredGroup, StoredMember, decode_members, encode_members

if TYPE_CHECKING:  # loaded when a database is opened
    from sqlite3 import Connection

logger = logging.getLogger("trionet.broker")

Partition = tuple[str, int]
"""A topic name and a partition number."""

NO_EPOCH: Final = -1


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

    def of(self, group_id: str) -> Mapping[Partition, CommittedOffset]:
        """Return a group's committed offsets by partition."""
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
        offsets: the group's committed offsets.
        now_ms: the current time, in ms since the epoch.
        retention_ms: the value of ``offsets.retention.minutes``, in ms.
        empty_since_ms: the time at which the last member left; None if the group has members or
            never had any.
        in_use: the topics that members are subscribed to, whose offsets do not expire. If None,
            the subscriptions are unknown and no offsets expire.
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


R = TypeVar("R")

# The value of the column ``members`` if the members are in the table of chunks.
_IN_CHUNKS = ""

# Faster than attrs.astuple, which takes as long as storing a row.
_columns = attrgetter(*(field.name for field in attrs.fields(CommittedOffset)))

Statements = Steps
"""Executes statements in a worker thread; must not access the event loop's state."""

Done = Callable[[DatabaseError | None], None]
"""Called in the event loop's thread with a write's error, or None if the write is stored."""


class GroupStore:
    """The database tables of groups and committed offsets, shared by all coordinators.

    Attributes:
        offsets: the committed offsets that are stored.
        commits: the number of offset commits that are queued or being stored, by group id.
    """

    def __init__(self, database: Database) -> None:
        self.offsets: CommittedOffsets = CommittedOffsets()
        self.commits: Counter[str] = Counter()
        self._database = database
        self._queue: list[tuple[Statements, Done]] = []
        self._has_work = trio.Event()

    def write(self, statements: Statements, done: Done) -> None:
        """Queue a write; ``done`` is called when it is stored or has failed."""
        self._queue.append((statements, done))
        self._has_work.set()

    def commit(
        self,
        group_id: str,
        offsets: Mapping[Partition, CommittedOffset],
        done: Callable[[int], None],
    ) -> None:
        """Store committed offsets, and then call ``done`` with the error code.

        :class:`.Group` checks whether a member may commit.
        """

        def stored(error: DatabaseError | None) -> None:
            self.commits[group_id] -= 1
            if not self.commits[group_id]:
                del self.commits[group_id]
            if error is None:
                self.offsets.put(group_id, offsets)
            done(commit_error(error))

        self.commits[group_id] += 1
        self.write(put_offsets(group_id, offsets), stored)

    def delete_offsets(
        self, group_id: str, partitions: Collection[Partition], done: Callable[[int], None]
    ) -> None:
        """Delete a group's offsets for the given partitions, and then call ``done``."""

        def stored(error: DatabaseError | None) -> None:
            if error is None:
                self.offsets.remove(group_id, partitions)
            done(commit_error(error))

        self.write(remove_offsets(group_id, partitions), stored)

    def forget_topic(self, topic: str) -> None:
        """Queue the removal of a deleted topic's offsets, including those still queued."""

        def stored(error: DatabaseError | None) -> None:
            if error is None:
                self.offsets.remove_topic(topic)

        self.write(remove_topic_offsets(topic), stored)

    async def flush(self) -> None:
        """Wait until all queued writes have been processed. :meth:`run` must be running."""
        has_ended = trio.Event()
        self.write(lambda _: iter(()), lambda _: has_ended.set())
        await has_ended.wait()

    async def run(self) -> None:
        """Execute queued writes until cancelled.

        Cancellation: a transaction in progress is completed.
        """
        while True:
            await self._has_work.wait()
            self._has_work = trio.Event()
            queue, self._queue = self._queue, []
            error = await self._commit([statements for statements, _ in queue])
            if error is not None and len(queue) > 1:
                # A single write may have failed the transaction, so retry each separately.
                for statements, done in queue:
                    done(await self._commit([statements]))
                continue
            for _, done in queue:
                done(error)

    async def _commit(self, writes: list[Statements]) -> DatabaseError | None:
        def work(connection: Connection) -> Iterator[int]:
            for statements in writes:
                yield from statements(connection)

        try:
            await self._database.transaction_in_steps(work)
        except DatabaseError as error:
            logger.warning("cannot store consumer groups: %s", error)
            return error
        return None

    async def load(self) -> tuple[list[StoredGroup], dict[str, dict[Partition, CommittedOffset]]]:
        """Load all groups and offsets.

        Raises:
            DatabaseError: the database cannot be read.
        """
        return await self._database.read(_load)


def put_group(group: StoredGroup) -> Statements:
    """Return the statements that store a group, replacing its stored state."""
    row = (
        group.id,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader_id,
        group.changed_at_ms,
        _IN_CHUNKS,
    )

    def statements(connection: Connection) -> Iterator[int]:
        connection.execute(
            "INSERT OR REPLACE INTO consumer_group VALUES (?, ?, ?, ?, ?, ?, ?)", row
        )
        connection.execute("DELETE FROM group_piece WHERE group_id = ?", (group.id,))
        yield 2
        for number, data in enumerate(encode_members(group.members)):
            connection.execute("INSERT INTO group_piece VALUES (?, ?, ?)", (group.id, number, data))
            yield ROWS_PER_TURN  # a chunk takes as long as that many rows

    return statements


def put_offsets(group_id: str, offsets: Mapping[Partition, CommittedOffset]) -> Statements:
    """Return the statements that store a group's committed offsets."""

    def statements(connection: Connection) -> Iterator[int]:
        for some in _in_parts(offsets.items()):
            connection.executemany(
                "INSERT OR REPLACE INTO committed_offset VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [(group_id, *partition, *_columns(each)) for partition, each in some],
            )
            yield len(some)

    return statements


def remove_offsets(group_id: str, partitions: Collection[Partition]) -> Statements:
    """Return the statements that remove a group's offsets for the given partitions."""

    def statements(connection: Connection) -> Iterator[int]:
        for some in _in_parts((group_id, *partition) for partition in partitions):
            connection.executemany(
                'DELETE FROM committed_offset WHERE group_id = ? AND topic = ? AND "partition" = ?',
                some,
            )
            yield len(some)

    return statements


def remove_topic_offsets(topic: str) -> Statements:
    """Return the statements that remove all groups' committed offsets for a topic."""

    def statements(connection: Connection) -> Iterator[int]:
        connection.execute("DELETE FROM committed_offset WHERE topic = ?", (topic,))
        yield ROWS_PER_TURN

    return statements


def remove_group(group_id: str) -> Statements:
    """Return the statements that remove a group and its offsets."""

    def statements(connection: Connection) -> Iterator[int]:
        connection.execute("DELETE FROM committed_offset WHERE group_id = ?", (group_id,))
        yield ROWS_PER_TURN
        connection.execute("DELETE FROM group_piece WHERE group_id = ?", (group_id,))
        connection.execute("DELETE FROM consumer_group WHERE id = ?", (group_id,))
        yield 2

    return statements


def _in_parts(rows: Iterable[R]) -> Iterator[list[R]]:
    all_rows = iter(rows)
    while some := list(islice(all_rows, ROWS_PER_TURN)):
        yield some


def _members(
    connection: Connection, group_id: str, leader_id: str | None, text: str
) -> tuple[StoredMember, ...]:
    try:
        if text != _IN_CHUNKS:
            members = tuple(map(_member, json.loads(text)))
        else:
            rows = connection.execute(
                "SELECT data FROM group_piece WHERE group_id = ? ORDER BY number", (group_id,)
            )
            members = decode_members(b"".join(data for (data,) in rows))
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"cannot decode the members of group {group_id!r}: {error}") from error
    if members and leader_id not in {each.id for each in members}:
        raise ValueError(f"the leader of group {group_id!r} is not one of its members")
    return members


def _member(plain: dict[str, str]) -> StoredMember:
    """Decode a member in the format of earlier versions, JSON with bytes in base64."""
    of_bytes = {name: base64.b64decode(plain[name]) for name in ("metadata", "assignment")}
    return StoredMember(**{**plain, **of_bytes})  # type: ignore[arg-type]


def _load(
    connection: Connection,
) -> tuple[list[StoredGroup], dict[str, dict[Partition, CommittedOffset]]]:
    groups = [
        StoredGroup(
            id,
            _int32(generation),
            kind,
            name,
            leader,
            since,
            _members(connection, id, leader, members),
        )
        for id, generation, kind, name, leader, since, members in connection.execute(
            "SELECT id, generation, protocol_type, protocol_name, leader_id, changed_at_ms, members"
            " FROM consumer_group"
        ).fetchall()
    ]
    offsets: dict[str, dict[Partition, CommittedOffset]] = {}
    for group_id, topic, partition, offset, epoch, *row in connection.execute(
        "SELECT * FROM committed_offset"
    ):
        committed = CommittedOffset(offset, _int32(epoch), *row)
        offsets.setdefault(group_id, {})[topic, _int32(partition)] = committed
    return groups, offsets


def _int32(value: int) -> int:
    if not -1 <= value < 2**31:
        raise ValueError(f"stored value {value} is not between -1 and 2**31 - 1")
    return value
