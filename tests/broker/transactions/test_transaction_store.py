"""The rows of transactional ids."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest

from trionet.broker.storage._database import (
    DATABASE_NAME,
    Database,
    open_database,
)
from trionet.broker.transactions._transaction import StoredTransaction, TransactionState
from trionet.broker.transactions._transaction_store import (
    load_transactions,
    put_transaction,
    remove_transactions,
)

NEW = StoredTransaction(producer_id=0, producer_epoch=0, timeout_ms=1, changed_at_ms=0)
FULL = StoredTransaction(
    producer_id=2**62,
    producer_epoch=2**15 - 1,
    last_epoch=2**15 - 2,
    ended_producer_id=2**61,
    ended_epoch=7,
    timeout_ms=2**31 - 1,
    state=TransactionState.ONGOING,
    version=2,
    started_at_ms=1_700_000_000_000,
    changed_at_ms=1_700_000_000_001,
    partitions=((bytes(range(16)), 3), (b"\xff" * 16, 9999)),
    offsets_partitions=(0, 49),
)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(str(tmp_path / DATABASE_NAME)) as database:
        yield database


async def put(database: Database, **transactions: StoredTransaction) -> None:
    for id, stored in transactions.items():
        await database.transaction_in_steps(put_transaction(id, stored))


@pytest.mark.parametrize(
    "state",
    [
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
    ],
)
async def test_what_is_stored_can_be_loaded(database: Database, state: TransactionState) -> None:
    full = attrs.evolve(FULL, state=state)
    await put(database, new=NEW, full=full)
    await database.transaction_in_steps(put_transaction("ä " * 16_384, NEW))

    assert {"new": NEW, "full": full, "ä " * 16_384: NEW} == await load_transactions(database)


async def test_a_state_takes_the_place_of_the_one_before(database: Database) -> None:
    await put(database, x=FULL)
    await put(database, x=NEW)

    assert {"x": NEW} == await load_transactions(database)


async def test_partitions_are_added_to_those_of_an_ongoing_transaction(database: Database) -> None:
    one, other = (bytes(16), 1), (bytes(16), 0)
    await put(database, x=attrs.evolve(FULL, partitions=(one,)), y=FULL)
    await put(database, x=attrs.evolve(FULL, partitions=(other, one)))

    assert {one, other} == set((await load_transactions(database))["x"].partitions)


async def test_one_more_partition_costs_one_more_row_however_many_there_are(
    database: Database,
) -> None:
    async def rows(stored: StoredTransaction) -> int:
        return await database.transaction(lambda each: sum(put_transaction("x", stored)(each)))

    many = tuple((bytes(16), number) for number in range(1000))
    ongoing = attrs.evolve(FULL, partitions=many)
    assert 1001 == await rows(ongoing)
    assert 2 == await rows(attrs.evolve(FULL, partitions=((bytes(16), 1000),)))
    assert 1002 == await rows(attrs.evolve(FULL, state=TransactionState.EMPTY, partitions=()))


async def test_removed_ids_leave_no_partitions(database: Database) -> None:
    await put(database, x=FULL, y=FULL)
    await database.transaction_in_steps(remove_transactions(["x"]))
    await put(database, x=attrs.evolve(FULL, partitions=()))

    loaded = await load_transactions(database)
    assert ((), FULL.partitions) == (loaded["x"].partitions, loaded["y"].partitions)


async def test_partitions_that_earlier_versions_stored_stay_added(database: Database) -> None:
    await put(database, x=attrs.evolve(FULL, partitions=()))
    [(topic_id, number), _] = FULL.partitions
    added = json.dumps({"partitions": [[topic_id.hex(), number]], "offsets": [0, 49]})
    await database.transaction(
        lambda each: each.execute("UPDATE transactional_id SET added = ?", (added,))
    )
    assert FULL.partitions[:1] == (await load_transactions(database))["x"].partitions

    await put(database, x=attrs.evolve(FULL, partitions=FULL.partitions[1:]))

    assert FULL == (await load_transactions(database))["x"]


async def test_a_complete_state_is_not_stored() -> None:
    """It follows from the logs."""
    with pytest.raises(AssertionError):
        put_transaction("x", attrs.evolve(NEW, state=TransactionState.COMPLETE_COMMIT))


async def test_removed_ids_are_gone(database: Database) -> None:
    ids = [str(number) for number in range(250)]
    await put(database, **dict.fromkeys(ids, NEW), kept=NEW)

    steps: list[int] = []
    await database.transaction(
        lambda connection: steps.extend(remove_transactions(ids)(connection))
    )

    assert {"kept": NEW} == await load_transactions(database)
    assert len(ids) == sum(steps)
    assert len(steps) > 1


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("producer_id", -1),
        ("producer_epoch", -1),
        ("producer_epoch", 2**15),
        ("state", "CompleteCommit"),
        ("state", "Nothing"),
        ("timeout_ms", "soon"),
        ("added", "{"),
        ("added", "[]"),
        ("added", '{"partitions": [["xy", 0]], "offsets": []}'),
        ("added", '{"partitions": [], "offsets": ["a"]}'),
        ("added", "[" * 100_000),
    ],
)
async def test_a_damaged_row_is_ignored_and_reported_with_its_id(
    database: Database, column: str, value: object, caplog: pytest.LogCaptureFixture
) -> None:
    await put(database, x=FULL, y=NEW)

    def damage(connection: sqlite3.Connection) -> None:
        connection.execute(f"UPDATE transactional_id SET {column} = ? WHERE id = 'x'", (value,))

    await database.transaction(damage)

    assert {"y": NEW} == await load_transactions(database)
    assert "unreadable row of the database, in table transactional_id: 'x': " in caplog.text
