"""The storage of groups and their offsets in the broker's database, and the offsets in memory.

(Kafka: the topic ``__consumer_offsets``, OffsetMetadataManager.) All changes are queued in the
cluster's :class:`.WriteQueue`, and are applied to the offsets in memory once they are stored.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from ..storage._database import ROWS_PER_TURN, Database, DatabaseError
from ..storage._storage_errors import commit_error
from ..storage._tables import BLOB, INT64, TEXT, UINT31, Fields, Table, nullable
from ..storage._write_queue import Done, Statements, WriteQueue, chain, in_parts
from ._committed_offsets import (
    CommittedOffset,
    CommittedOffsets,
    Partition,
    load_offsets,
    put_offsets,
)
from ._pending_offsets import (
    PendingOffset,
    PendingOffsets,
    end_pending,
    load_pending,
    put_pending,
    supersede_pending,
)
from ._stored_group import (
    StoredGroup,
    StoredMember,
    check_leader,
    decode_members,
    encode_members,
    stored_member,
)

if TYPE_CHECKING:  # loaded when a database is opened
    from sqlite3 import Connection

# The value of the column ``members`` if the members are in the table of chunks.
_IN_CHUNKS = ""

_GROUPS: Final = Table(
    "consumer_group",
    1,
    Fields(
        id=TEXT,
        generation=UINT31,
        protocol_type=nullable(TEXT),
        protocol_name=nullable(TEXT),
        leader_id=nullable(TEXT),
        changed_at_ms=INT64,
        members=TEXT,
    ),
)
_CHUNKS: Final = Table("group_piece", 2, Fields(group_id=TEXT, number=UINT31, data=BLOB))

_OFFSET_TABLES = ("committed_offset", "pending_offset")

# For the log, if a write fails.
_WHAT = "consumer groups"


class GroupStore:
    """The database tables of groups and their offsets, shared by all coordinators.

    Args:
        database: the database to load from.
        writes: the queue of writes to that database.

    Attributes:
        offsets: the committed offsets that are stored.
        pending: the offsets of open transactions that are stored.
        commits: the number of offset commits that are queued or being stored, by group id; those
            in transactions count, too.
        on_end: called after pending offsets have been committed or dropped; for tests.
    """

    def __init__(self, database: Database, writes: WriteQueue) -> None:
        self.offsets: CommittedOffsets = CommittedOffsets()
        self.pending: PendingOffsets = PendingOffsets()
        self.commits: Counter[str] = Counter()
        self.on_end: Callable[[], None] = lambda: None
        self._database = database
        self._writes = writes
        self._pends = 0  # the number of writes of pending offsets that are not applied yet
        self._last_number = 0  # of a pending offset

    def put_group(self, group: StoredGroup, done: Done) -> None:
        """Store a group, replacing its stored state, and then call ``done``."""
        self._writes.write(put_group(group), done, what=_WHAT)

    def commit(
        self,
        group_id: str,
        offsets: Mapping[Partition, CommittedOffset],
        done: Callable[[int], None],
    ) -> None:
        """Store committed offsets, and then call ``done`` with the error code.

        Pending offsets from before the commit never take effect. Their partitions stay unstable
        until their transactions end. :class:`.Group` checks whether a member may commit.
        """

        def stored(error: DatabaseError | None) -> None:
            self._note_commit(group_id, -1)
            if error is None:
                self.offsets.put(group_id, offsets)
                self.pending.supersede(group_id, offsets)
            done(commit_error(error))

        self._note_commit(group_id, 1)
        statements = put_offsets(group_id, offsets)
        if self._pends or self.pending.of(group_id):
            statements = chain(statements, supersede_pending(group_id, offsets.keys()))
        self._writes.write(statements, stored, what=_WHAT)

    def _note_commit(self, group_id: str, change: int) -> None:
        self.commits[group_id] += change
        if not self.commits[group_id]:
            del self.commits[group_id]

    def delete_offsets(
        self, group_id: str, partitions: Collection[Partition], done: Callable[[int], None]
    ) -> None:
        """Delete a group's offsets for the given partitions, and then call ``done``.

        Pending offsets are deleted, too, and are not restored when their transactions end.
        """

        def stored(error: DatabaseError | None) -> None:
            if error is None:
                self.offsets.remove(group_id, partitions)
                self.pending.remove(group_id, partitions)
            done(commit_error(error))

        self._writes.write(remove_offsets(group_id, partitions), stored, what=_WHAT)

    def delete_group(self, group_id: str, done: Done) -> None:
        """Delete a group with all its offsets, also pending ones, and then call ``done``."""

        def stored(error: DatabaseError | None) -> None:
            if error is None:
                self.offsets.remove_group(group_id)
                self.pending.remove_group(group_id)
            done(error)

        self._writes.write(remove_group(group_id), stored, what=_WHAT)

    def forget_topic(self, topic: str) -> None:
        """Queue the removal of a deleted topic's offsets, including those still queued."""

        def stored(error: DatabaseError | None) -> None:
            if error is None:
                self.offsets.remove_topic(topic)
                self.pending.remove_topic(topic)

        self._writes.write(remove_topic_offsets(topic), stored, what=_WHAT)

    # Offsets in transactions.

    def pend(
        self,
        producer_id: int,
        group_id: str,
        offsets: Mapping[Partition, CommittedOffset],
        done: Callable[[int], None],
    ) -> None:
        """Store offsets that wait for the end of their transaction, and then call ``done``.

        Args:
            producer_id: the producer id of the transaction.
            group_id: the group id.
            offsets: the offsets, which replace earlier ones of the same transaction. None of them
                has a retention of its own.
            done: called with the error code.
        """
        self._last_number += 1
        number = self._last_number

        def stored(error: DatabaseError | None) -> None:
            self._pends -= 1
            self._note_commit(group_id, -1)
            if error is None:
                for partition, offset in offsets.items():
                    pending = PendingOffset(offset, number)
                    self.pending.put(producer_id, group_id, partition, pending)
            done(commit_error(error))

        self._pends += 1
        self._note_commit(group_id, 1)
        statements = put_pending(producer_id, group_id, number, offsets)
        self._writes.write(statements, stored, what=f"offsets of producer {producer_id}")

    def end_pending(self, producer_id: int, is_commit: bool) -> Statements:
        """Return the statements that end a transaction's pending offsets.

        They include those that are still queued. Once the statements are stored, call
        :meth:`pending_ended` without a checkpoint in between.
        """
        return end_pending([producer_id], is_commit=is_commit)

    def pending_ended(self, producer_id: int, is_commit: bool) -> None:
        """Apply the end of a transaction to the offsets in memory."""
        for group_id, offsets in self.pending.end(producer_id, is_commit=is_commit).items():
            self.offsets.put(group_id, offsets)
        self.on_end()

    def drop_pending(self, producer_ids: Collection[int]) -> Statements:
        """Return the statements that drop pending offsets of producers without a transaction.

        Once they are stored, call :meth:`pending_ended` for each producer.
        """
        return end_pending(producer_ids, is_commit=False)

    def pending_producers(self) -> Collection[int]:
        """Return the ids of the producers that have stored pending offsets."""
        return self.pending.producers()

    async def load(self) -> tuple[list[StoredGroup], dict[str, dict[Partition, CommittedOffset]]]:
        """Load all groups and committed offsets, and :attr:`pending`.

        Raises:
            DatabaseError: the database cannot be read.
        """
        groups, offsets, pending = await self._database.read(_load)
        for each in pending:
            self.pending.put(*each)
            self._last_number = max(self._last_number, each[-1].number)
        return groups, offsets


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
        check_leader(group)
        _GROUPS.put(connection, [row])
        connection.execute("DELETE FROM group_piece WHERE group_id = ?", (group.id,))
        yield 2
        for number, data in enumerate(encode_members(group.members)):
            _CHUNKS.put(connection, [(group.id, number, data)])
            yield ROWS_PER_TURN  # a chunk takes as long as that many rows

    return statements


def remove_offsets(group_id: str, partitions: Collection[Partition]) -> Statements:
    """Return the statements that remove a group's offsets for the given partitions."""

    def statements(connection: Connection) -> Iterator[int]:
        for some in in_parts((group_id, *partition) for partition in partitions):
            for table in _OFFSET_TABLES:
                connection.executemany(
                    f"DELETE FROM {table}"  # noqa: S608 - ours
                    ' WHERE group_id = ? AND topic = ? AND "partition" = ?',
                    some,
                )
                yield len(some)

    return statements


def remove_topic_offsets(topic: str) -> Statements:
    """Return the statements that remove all groups' offsets for a topic."""

    def statements(connection: Connection) -> Iterator[int]:
        for table in _OFFSET_TABLES:
            query = f"DELETE FROM {table} WHERE topic = ?"  # noqa: S608 - ours
            connection.execute(query, (topic,))
            yield ROWS_PER_TURN

    return statements


def remove_group(group_id: str) -> Statements:
    """Return the statements that remove a group and its offsets."""

    def statements(connection: Connection) -> Iterator[int]:
        for table in _OFFSET_TABLES:
            query = f"DELETE FROM {table} WHERE group_id = ?"  # noqa: S608 - ours
            connection.execute(query, (group_id,))
            yield ROWS_PER_TURN
        connection.execute("DELETE FROM group_piece WHERE group_id = ?", (group_id,))
        connection.execute("DELETE FROM consumer_group WHERE id = ?", (group_id,))
        yield 2

    return statements


def _group(
    connection: Connection,
    id: str,
    generation: int,
    protocol_type: str | None,
    protocol_name: str | None,
    leader_id: str | None,
    changed_at_ms: int,
    text: str,
) -> StoredGroup:
    if text != _IN_CHUNKS:
        members = tuple(map(_member, json.loads(text)))
    else:
        chunks = _CHUNKS.read(
            connection, lambda *row: row[-1], "WHERE group_id = ? ORDER BY number", (id,)
        )
        members = decode_members(b"".join(chunks))
    return check_leader(
        StoredGroup(id, generation, protocol_type, protocol_name, leader_id, changed_at_ms, members)
    )


def _member(plain: dict[str, str]) -> StoredMember:
    """Decode a member in the format of earlier versions, JSON with bytes in base64."""
    of_bytes = {name: base64.b64decode(plain[name]) for name in ("metadata", "assignment")}
    return stored_member({**plain, **of_bytes})


def _load(
    connection: Connection,
) -> tuple[
    list[StoredGroup],
    dict[str, dict[Partition, CommittedOffset]],
    list[tuple[int, str, Partition, PendingOffset]],
]:
    groups = list(_GROUPS.read(connection, partial(_group, connection)))
    return groups, load_offsets(connection), load_pending(connection)
