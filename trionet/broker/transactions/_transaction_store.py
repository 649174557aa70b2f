"""The storage of transactional ids in the broker's database.

(Kafka: the topic ``__transaction_state``, TransactionLog.) A row is replaced at each transition
that must survive a crash; :mod:`._transaction` says which those are. The partitions that are
explicitly added to a transaction have rows of their own, so that one more costs the same however
many there are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

import attrs

from ..storage._database import ROWS_PER_TURN, Database, Steps
from ..storage._tables import (
    INT64,
    TEXT,
    UINT31,
    UINT63,
    Fields,
    Table,
    blob_of,
    integer,
    one_of,
)
from ..storage._write_queue import in_parts
from ._transaction import (
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER,
    TV1,
    TV2,
    StoredTransaction,
    TransactionState,
)

if TYPE_CHECKING:  # loaded when a database is opened
    from sqlite3 import Connection

_REMOVE_SOME_ADDED: Final = (
    'DELETE FROM added_partition WHERE (transactional_id, topic_id, "partition") IN'
    ' (SELECT transactional_id, topic_id, "partition" FROM added_partition'
    " WHERE transactional_id = ? LIMIT ?)"
)

_STORED = frozenset(
    {
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
    }
)

_TRANSACTIONS: Final = Table(
    "transactional_id",
    1,
    Fields(
        id=TEXT,
        producer_id=UINT63,
        producer_epoch=integer(0, EPOCH_MAX),
        last_epoch=integer(NO_EPOCH, EPOCH_MAX),
        ended_producer_id=integer(NO_PRODUCER, 2**63 - 1),
        ended_epoch=integer(NO_EPOCH, EPOCH_MAX),
        timeout_ms=UINT31,
        state=one_of({each.value for each in _STORED}),
        version=integer(TV1, TV2),
        started_at_ms=INT64,
        changed_at_ms=INT64,
        added=TEXT,
    ),
)
_ADDED: Final = Table(
    "added_partition", 3, Fields(transactional_id=TEXT, topic_id=blob_of(16), partition=UINT31)
)
_OFFSETS_PARTITION: Final = Fields(partition=UINT31)


def put_transaction(id: str, stored: StoredTransaction) -> Steps:
    """Return the statements that store the state of a transactional id."""
    assert stored.state in _STORED, f"{stored.state} follows from the logs"
    row = (
        id,
        stored.producer_id,
        stored.producer_epoch,
        stored.last_epoch,
        stored.ended_producer_id,
        stored.ended_epoch,
        stored.timeout_ms,
        stored.state.value,
        stored.version,
        stored.started_at_ms,
        stored.changed_at_ms,
    )

    def statements(connection: Connection) -> Iterator[int]:
        _TRANSACTIONS.put(connection, [(*row, _encode_added(stored))])
        yield 1
        if stored.state is not TransactionState.ONGOING:
            yield from _remove_added(connection, id)
        for some in in_parts((id, *each) for each in stored.partitions):
            _ADDED.put(connection, some)
            yield len(some)

    return statements


def _remove_added(connection: Connection, id: str) -> Iterator[int]:
    """Remove the partitions that were added to the transaction of an id, in steps."""
    while removed := connection.execute(_REMOVE_SOME_ADDED, (id, ROWS_PER_TURN)).rowcount:
        yield removed


def remove_transactions(ids: Collection[str]) -> Steps:
    """Return the statements that remove transactional ids."""

    def statements(connection: Connection) -> Iterator[int]:
        for some in in_parts((id,) for id in ids):
            connection.executemany("DELETE FROM transactional_id WHERE id = ?", some)
            yield len(some)
        for id in ids:
            yield from _remove_added(connection, id)

    return statements


async def load_transactions(database: Database) -> dict[str, StoredTransaction]:
    """Load the states of all transactional ids.

    Raises:
        DatabaseError: the database cannot be read.
    """
    return await database.read(_load)


def _load(connection: Connection) -> dict[str, StoredTransaction]:
    partitions: dict[str, list[tuple[bytes, int]]] = {}
    for id, topic_id, number in _ADDED.read(connection, lambda *row: row):
        partitions.setdefault(id, []).append((topic_id, number))
    loaded: dict[str, StoredTransaction] = {}
    for id, stored in list(_TRANSACTIONS.read(connection, _decode)):
        # Earlier versions stored all of them in the row.
        _ADDED.put(connection, [(id, *each) for each in stored.partitions])
        added = dict.fromkeys((*stored.partitions, *partitions.get(id, ())))
        loaded[id] = attrs.evolve(stored, partitions=tuple(added))
    return loaded


def _decode(id: str, *row: Any) -> tuple[str, StoredTransaction]:
    *numbers, state, version, started_at_ms, changed_at_ms, added = row
    producer_id, epoch, last_epoch, ended_producer_id, ended_epoch, timeout_ms = numbers
    partitions, offsets_partitions = _decode_added(added)
    return id, StoredTransaction(
        producer_id=producer_id,
        producer_epoch=epoch,
        last_epoch=last_epoch,
        ended_producer_id=ended_producer_id,
        ended_epoch=ended_epoch,
        timeout_ms=timeout_ms,
        state=TransactionState(state),
        version=version,
        started_at_ms=started_at_ms,
        changed_at_ms=changed_at_ms,
        partitions=partitions,
        offsets_partitions=offsets_partitions,
    )


def _encode_added(stored: StoredTransaction) -> str:
    if not stored.offsets_partitions:
        return ""
    return json.dumps({"offsets": stored.offsets_partitions})


def _decode_added(text: str) -> tuple[tuple[tuple[bytes, int], ...], tuple[int, ...]]:
    if not text:
        return (), ()
    plain = json.loads(text)
    offsets_partitions = tuple(plain["offsets"])
    for number in offsets_partitions:
        _OFFSETS_PARTITION.checked([number])
    # Of earlier versions.
    partitions = [(bytes.fromhex(id), number) for id, number in plain.get("partitions", ())]
    for each in partitions:
        _ADDED.columns.checked(("", *each))
    return tuple(partitions), offsets_partitions
