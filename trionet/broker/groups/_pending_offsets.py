"""The offsets that transactions have committed and that wait for their end (KIP-98, KIP-447).

(Kafka: OffsetMetadataManager.) Pending offsets are invisible until their transaction is committed,
but make their partitions unstable: a consumer that requires stable offsets waits for the end. They
are kept per producer id, since several transactions may have pending offsets for a partition.

Kafka compares the positions of commits in ``__consumer_offsets``: a pending offset becomes the
committed one unless a commit from after it has taken effect before. Here, such a commit marks the
pending offsets from before it as *superseded*, in memory and in the database. Between transactions,
the numbers of pending offsets say which was the earlier one.

The methods of :class:`PendingOffsets` change the state in memory as the statements of the same name
change the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..storage._database import ROWS_PER_TURN
from ..storage._tables import UINT63, Fields, Table, integer
from ..storage._write_queue import Statements, in_parts
from ._committed_offsets import KEYS, OFFSETS, VALUES, CommittedOffset, Partition

if TYPE_CHECKING:  # loaded when a database is opened
    from sqlite3 import Connection


@attrs.define
class PendingOffset:
    """An offset that a transaction has committed.

    Attributes:
        offset: what is committed with the transaction.
        number: greater than that of each earlier pending offset.
        is_superseded: whether a later commit of the partition has taken effect, so that this one
            never will.
    """

    offset: CommittedOffset
    number: int
    is_superseded: bool = False


class PendingOffsets:
    """The pending offsets of all groups and producers."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[Partition, dict[int, PendingOffset]]] = {}
        self._producers: dict[int, dict[tuple[str, Partition], PendingOffset]] = {}

    def of(self, group_id: str) -> Collection[Partition]:
        """Return the partitions for which a group has pending offsets."""
        return self._groups.get(group_id, {}).keys()

    def groups(self) -> Collection[str]:
        """Return the ids of the groups that have pending offsets."""
        return self._groups.keys()

    def producers(self) -> Collection[int]:
        """Return the ids of the producers that have pending offsets."""
        return self._producers.keys()

    def groups_of(self, producer_id: int) -> set[str]:
        """Return the ids of the groups for which a producer has pending offsets."""
        return {group_id for group_id, _ in self._producers.get(producer_id, ())}

    def put(
        self, producer_id: int, group_id: str, partition: Partition, pending: PendingOffset
    ) -> None:
        group = self._groups.setdefault(group_id, {})
        group.setdefault(partition, {})[producer_id] = pending
        self._producers.setdefault(producer_id, {})[group_id, partition] = pending

    def supersede(
        self, group_id: str, partitions: Iterable[Partition], before: int | None = None
    ) -> None:
        """Mark the pending offsets of some partitions: a later commit has taken effect.

        Args:
            group_id: the group id.
            partitions: the partitions that the commit has changed.
            before: the number of the later commit if it was a pending offset; None if it was a
                commit outside of transactions, which is later than all.
        """
        group = self._groups.get(group_id)
        if group is None:
            return
        for partition in partitions:
            for pending in group.get(partition, {}).values():
                if before is None or pending.number < before:
                    pending.is_superseded = True

    def end(
        self, producer_id: int, *, is_commit: bool
    ) -> dict[str, dict[Partition, CommittedOffset]]:
        """Remove a producer's pending offsets, and return by group those that are now committed."""
        committed: dict[str, dict[Partition, CommittedOffset]] = {}
        for (group_id, partition), each in self._producers.pop(producer_id, {}).items():
            self._drop(group_id, partition, producer_id)
            if is_commit and not each.is_superseded:
                committed.setdefault(group_id, {})[partition] = each.offset
                self.supersede(group_id, [partition], before=each.number)
        return committed

    def remove(self, group_id: str, partitions: Iterable[Partition]) -> None:
        """Remove the pending offsets of some partitions, so that they are never committed."""
        for partition in partitions:
            for producer_id in list(self._groups.get(group_id, {}).get(partition, ())):
                self._drop(group_id, partition, producer_id)
                mine = self._producers[producer_id]
                del mine[group_id, partition]
                if not mine:
                    del self._producers[producer_id]

    def remove_group(self, group_id: str) -> None:
        self.remove(group_id, list(self.of(group_id)))

    def remove_topic(self, topic: str) -> None:
        for group_id in list(self._groups):
            self.remove(group_id, [each for each in self.of(group_id) if each[0] == topic])

    def _drop(self, group_id: str, partition: Partition, producer_id: int) -> None:
        group = self._groups[group_id]
        producers = group[partition]
        del producers[producer_id]
        if not producers:
            del group[partition]
        if not group:
            del self._groups[group_id]


PENDING: Final = Table(
    "pending_offset",
    1 + len(KEYS),
    Fields(producer_id=UINT63, **KEYS, **VALUES, number=UINT63, is_superseded=integer(0, 1)),
)


def put_pending(
    producer_id: int, group_id: str, number: int, offsets: Mapping[Partition, CommittedOffset]
) -> Statements:
    """Return the statements that store pending offsets, replacing the producer's earlier ones."""

    def statements(connection: Connection) -> Iterator[int]:
        for some in in_parts(offsets.items()):
            PENDING.put(
                connection,
                [
                    (
                        producer_id,
                        group_id,
                        *partition,
                        each.offset,
                        each.leader_epoch,
                        each.metadata,
                        each.committed_at_ms,
                        number,
                        0,
                    )
                    for partition, each in some
                ],
            )
            yield len(some)

    return statements


def supersede_pending(group_id: str, partitions: Collection[Partition]) -> Statements:
    """Return the statements for a commit outside of transactions; see :class:`PendingOffset`."""

    def statements(connection: Connection) -> Iterator[int]:
        for some in in_parts((group_id, *partition) for partition in partitions):
            connection.executemany(
                "UPDATE pending_offset SET is_superseded = 1"
                ' WHERE group_id = ? AND topic = ? AND "partition" = ?',
                some,
            )
            yield len(some)

    return statements


def end_pending(producer_ids: Collection[int], *, is_commit: bool) -> Statements:
    """Return the statements that commit or remove all pending offsets of some producers."""

    def statements(connection: Connection) -> Iterator[int]:
        for producer_id in producer_ids:
            if is_commit:
                yield from _commit_pending(connection, producer_id)
            connection.execute("DELETE FROM pending_offset WHERE producer_id = ?", (producer_id,))
            yield ROWS_PER_TURN

    return statements


def _commit_pending(connection: Connection, producer_id: int) -> Iterator[int]:
    rows = PENDING.read(
        connection,
        lambda *row: row[1:-1],
        "WHERE producer_id = ? AND NOT is_superseded",
        (producer_id,),
    )
    for some in in_parts(rows):
        OFFSETS.put(connection, [(*row[:-1], None) for row in some])
        # Of other producers only, so the rows that are still to be read remain as they are.
        connection.executemany(
            "UPDATE pending_offset SET is_superseded = 1"
            ' WHERE group_id = ? AND topic = ? AND "partition" = ? AND number < ?',
            [(*row[:3], row[-1]) for row in some],
        )
        yield 2 * len(some)


def load_pending(connection: Connection) -> list[tuple[int, str, Partition, PendingOffset]]:
    """Return the stored pending offsets, as arguments of :meth:`PendingOffsets.put`."""
    return list(PENDING.read(connection, _pending))


def _pending(
    producer_id: int, group_id: str, topic: str, partition: int, *columns: Any
) -> tuple[int, str, Partition, PendingOffset]:
    *values, number, is_superseded = columns
    offset = PendingOffset(CommittedOffset(*values), number, bool(is_superseded))
    return producer_id, group_id, (topic, partition), offset
