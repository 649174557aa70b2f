"""Producer ids: ascending, and none of them twice."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import trio
import trio.testing

from trionet.broker.model._producer_ids import BLOCK_SIZE, ID_MAX, ProducerIds
from trionet.broker.storage._database import DATABASE_NAME, IN_MEMORY, DatabaseError, open_database


async def test_ids_ascend_across_blocks() -> None:
    async with open_database(IN_MEMORY) as database:
        producer_ids = ProducerIds(database)
        given = [await producer_ids.next_id() for _ in range(2 * BLOCK_SIZE + 1)]

    assert list(range(2 * BLOCK_SIZE + 1)) == given


async def test_a_restart_gives_none_of_the_ids_given_before(tmp_path: Path) -> None:
    path = str(tmp_path / DATABASE_NAME)
    given = []
    for _ in range(3):
        async with open_database(path) as database:
            producer_ids = ProducerIds(database)
            given += [await producer_ids.next_id() for _ in range(2)]

    assert given == [0, 1, 1000, 1001, 2000, 2001]


async def test_tasks_that_ask_at_once_share_blocks(tmp_path: Path) -> None:
    given: list[int] = []
    async with open_database(str(tmp_path / DATABASE_NAME)) as database:
        producer_ids = ProducerIds(database)

        async def ask() -> None:
            given.extend([await producer_ids.next_id() for _ in range(300)])

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask)

    assert list(range(1500)) == sorted(given)


async def test_asking_for_an_id_is_a_checkpoint() -> None:
    async with open_database(IN_MEMORY) as database:
        producer_ids = ProducerIds(database)
        for _ in range(2):
            with trio.testing.assert_checkpoints():
                await producer_ids.next_id()


async def test_a_cancelled_caller_reserves_nothing(tmp_path: Path) -> None:
    async with open_database(str(tmp_path / DATABASE_NAME)) as database:
        producer_ids = ProducerIds(database)
        with trio.CancelScope() as scope:
            scope.cancel()
            await producer_ids.next_id()
        first = await producer_ids.next_id()

    assert scope.cancelled_caught
    assert first == 0


async def test_ids_end_when_the_database_fails_and_go_on_when_it_is_well_again() -> None:
    async with open_database(IN_MEMORY) as database:
        producer_ids = ProducerIds(database)
        await database.transaction(lambda c: _rename(c, "producer_id_block", "gone"))
        with pytest.raises(DatabaseError, match="no such table"):
            await producer_ids.next_id()
        await database.transaction(lambda c: _rename(c, "gone", "producer_id_block"))
        first = await producer_ids.next_id()

    assert first == 0


@pytest.mark.parametrize("value", ["'abc'", "-1", "x'00'"])
async def test_after_an_unreadable_number_ids_go_on_far_from_those_given_before(
    tmp_path: Path, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = str(tmp_path / DATABASE_NAME)
    async with open_database(path) as database:
        await ProducerIds(database).next_id()
        statement = f"UPDATE producer_id_block SET next_producer_id = {value}"
        await database.transaction(lambda connection: connection.execute(statement))
    async with open_database(path) as database:
        first = await ProducerIds(database).next_id()
        second = await ProducerIds(database).next_id()

    assert 0 < first < second == first + BLOCK_SIZE < 2**63
    assert "unreadable row of the database, in table producer_id_block" in caplog.text


async def test_there_is_a_last_id() -> None:
    async with open_database(IN_MEMORY) as database:
        statement = f"INSERT INTO producer_id_block VALUES ({ID_MAX})"
        await database.transaction(lambda connection: connection.execute(statement))
        last = await ProducerIds(database).next_id()

        with pytest.raises(DatabaseError, match="all producer ids are in use"):
            await ProducerIds(database).next_id()

    assert ID_MAX == last


def _rename(connection: sqlite3.Connection, old: str, new: str) -> None:
    connection.execute(f"ALTER TABLE {old} RENAME TO {new}")
