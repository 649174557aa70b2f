"""The storage of transactional ids in the broker's database.

(Kafka: the topic ``__transaction_state``, TransactionLog.) A row is replaced at each transition
that must survive a crash; :mod:`._transaction` says which those are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from ..storage._database import Database, Steps
from ..storage._write_queue import in_parts
from ._transaction import StoredTransaction, TransactionState

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
        connection.execute(
            "INSERT OR REPLACE INTO transactional_id VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, _encode_added(stored)),
        )
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
        DatabaseError: the database cannot be read, or a row is invalid.
    """
    return await database.read(_load)


def _load(connection: Connection) -> dict[str, StoredTransaction]:
    return {
        id: _decode(id, row) for id, *row in connection.execute("SELECT * FROM transactional_id")
    }


def _decode(id: str, row: list[int | str]) -> StoredTransaction:
    *numbers, timeout_ms, state, version, started_at_ms, changed_at_ms, added = row
    try:
        producer_id, epoch, last_epoch, ended_producer_id, ended_epoch = map(int, numbers)
        partitions, offsets_partitions = _decode_added(str(added))
        stored = StoredTransaction(
            producer_id=producer_id,
            producer_epoch=epoch,
            last_epoch=last_epoch,
            ended_producer_id=ended_producer_id,
            ended_epoch=ended_epoch,
            timeout_ms=int(timeout_ms),
            state=TransactionState(state),
            version=int(version),
            started_at_ms=int(started_at_ms),
            changed_at_ms=int(changed_at_ms),
            partitions=partitions,
            offsets_partitions=offsets_partitions,
        )
        if producer_id < 0 or not 0 <= epoch < 2**15 or stored.state not in _STORED:
            raise ValueError(f"producer id {producer_id}, epoch {epoch}, state {state}")
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"cannot decode the transactional id {id!r}: {error}") from error
    return stored


def _encode_added(stored: StoredTransaction) -> str:
    if not stored.partitions and not stored.offsets_partitions:
        return ""
    partitions = [[id.hex(), number] for id, number in stored.partitions]
    return json.dumps({"partitions": partitions, "offsets": stored.offsets_partitions})


def _decode_added(text: str) -> tuple[tuple[tuple[bytes, int], ...], tuple[int, ...]]:
    if not text:
        return (), ()
    plain = json.loads(text)
    partitions = tuple((bytes.fromhex(id), int(number)) for id, number in plain["partitions"])
    return partitions, tuple(map(int, plain["offsets"]))
