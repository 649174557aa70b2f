"""The storage of transactional ids in the broker's database.

(Kafka: the topic ``__transaction_state``, TransactionLog.) A row is replaced at each transition
that must survive a crash; :mod:`._transaction` says which those are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

from ..storage._database import Database, Steps
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

_STORED = frozenset(
    {
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
    }
)

TRANSACTIONS: Final = Table(
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
_PARTITION: Final = Fields(topic_id=blob_of(16), partition=UINT31)
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
        TRANSACTIONS.put(connection, [(*row, _encode_added(stored))])
        yield 1

    return statements


def remove_transactions(ids: Collection[str]) -> Steps:
    """Return the statements that remove transactional ids."""

    def statements(connection: Connection) -> Iterator[int]:
        for some in in_parts((id,) for id in ids):
            connection.executemany("DELETE FROM transactional_id WHERE id = ?", some)
            yield len(some)

    return statements


async def load_transactions(database: Database) -> dict[str, StoredTransaction]:
    """Load the states of all transactional ids.

    Raises:
        DatabaseError: the database cannot be read.
    """
    return await database.read(lambda each: dict(TRANSACTIONS.read(each, _decode)))


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
    if not stored.partitions and not stored.offsets_partitions:
        return ""
    partitions = [[id.hex(), number] for id, number in map(_PARTITION.checked, stored.partitions)]
    return json.dumps({"partitions": partitions, "offsets": stored.offsets_partitions})


def _decode_added(text: str) -> tuple[tuple[tuple[bytes, int], ...], tuple[int, ...]]:
    if not text:
        return (), ()
    plain = json.loads(text)
    partitions = [(bytes.fromhex(id), number) for id, number in plain["partitions"]]
    for each in partitions:
        _PARTITION.checked(each)
    offsets_partitions = tuple(plain["offsets"])
    for number in offsets_partitions:
        _OFFSETS_PARTITION.checked([number])
    return tuple(partitions), offsets_partitions
