"""Writes with callbacks: many in one transaction, in their order, each with a result of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trionet.broker.storage._database import (
    DATABASE_NAME,
    IN_MEMORY,
    ROWS_PER_TURN,
    Database,
    DatabaseError,
    open_database,
)
from trionet.broker.storage._write_queue import (
    REPORTS_AT_ONCE,
    Statements,
    WriteQueue,
    chain,
    in_parts,
)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(str(tmp_path / DATABASE_NAME)) as database:
        yield database


class Writer:
    """A queue that runs, and the results of what is written with it."""

    def __init__(self, database: Database) -> None:
        self.writes = WriteQueue(database)
        self.ended: list[tuple[int, bool]] = []

    def write(self, number: int, statements: Statements | None = None) -> None:
        """Queue a write of a number, or of something else."""
        self.writes.write(
            inserted(number) if statements is None else statements,
            lambda error: self.ended.append((number, error is None)),
            what=f"number {number}",
        )

    async def all_ended(self) -> None:
        with trio.fail_after(5):
            await self.writes.flush()


@pytest.fixture
def writer(database: Database, nursery: trio.Nursery) -> Writer:
    writer = Writer(database)
    nursery.start_soon(writer.writes.run)
    return writer


def inserted(*numbers: int) -> Statements:
    def statements(connection: sqlite3.Connection) -> Iterator[int]:
        for some in in_parts([(number,) for number in numbers]):
            connection.executemany("INSERT INTO producer_id_block VALUES (?)", some)
            yield len(some)

    return statements


def refused(connection: sqlite3.Connection) -> Iterator[int]:
    connection.execute("INSERT INTO nowhere VALUES (1)")
    yield 1


def numbers(connection: sqlite3.Connection) -> list[int]:
    rows = connection.execute("SELECT next_producer_id FROM producer_id_block ORDER BY 1")
    return [number for (number,) in rows]


async def test_writes_that_are_queued_together_are_one_transaction(
    database: Database, writer: Writer
) -> None:
    transactions: list[str] = []
    database._connection.set_trace_callback(
        lambda statement: transactions.append(statement) if "COMMIT" in statement else None
    )
    for number in range(1000):
        writer.write(number)

    await writer.all_ended()

    assert [(number, True) for number in range(1000)] == writer.ended
    assert 1 == len(transactions)


async def test_one_that_fails_does_not_spoil_the_others(
    database: Database, writer: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    writer.write(1)
    writer.write(2, refused)
    writer.write(3)

    await writer.all_ended()

    assert [(1, True), (2, False), (3, True)] == writer.ended
    assert [1, 3] == await database.transaction(numbers)
    assert [f"cannot store number 2: {database.path}: no such table: nowhere"] == [
        record.message for record in caplog.records
    ]


async def test_a_callback_finds_its_write_in_the_database(
    database: Database, writer: Writer
) -> None:
    """By another connection, which sees what is committed only."""
    seen: list[int] = []

    def look(error: DatabaseError | None) -> None:
        assert error is None
        with sqlite3.connect(database.path) as other:
            seen.extend(numbers(other))
        other.close()

    writer.writes.write(inserted(7), look)
    await writer.all_ended()

    assert [7] == seen


async def test_what_a_callback_queues_is_written_next(database: Database, writer: Writer) -> None:
    has_ended = trio.Event()

    writer.writes.write(
        inserted(1), lambda _: writer.writes.write(inserted(2), lambda _: has_ended.set())
    )
    await has_ended.wait()

    assert [1, 2] == await database.transaction(numbers)


@pytest.mark.parametrize("fails", [False, True], ids=["one transaction", "each separately"])
async def test_a_callback_that_raises_affects_no_other_write(
    fails: bool, database: Database, writer: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    """The queue is shared: a bug in the end of one transaction must not stop the broker."""

    def fail(error: DatabaseError | None) -> None:
        raise RuntimeError("mine")

    writer.write(1, refused if fails else None)
    writer.writes.write(inserted(2), fail, what="number 2")
    writer.write(3)
    await writer.all_ended()
    writer.write(4)
    await writer.all_ended()

    assert [(1, not fails), (3, True), (4, True)] == writer.ended
    assert [2, 3, 4] == (await database.transaction(numbers))[-3:]
    [record] = [record for record in caplog.records if record.exc_info]
    assert "the completion of a write failed: number 2" == record.message
    assert "mine" in caplog.text


async def test_others_have_turns_between_callbacks(
    database: Database, writer: Writer, nursery: trio.Nursery
) -> None:
    turns: list[int] = []

    async def note_turns() -> None:
        while True:
            turns.append(len(writer.ended))
            await trio.lowlevel.checkpoint()

    for number in range(10 * REPORTS_AT_ONCE):
        writer.write(number)
    nursery.start_soon(note_turns)
    await writer.all_ended()

    # Twice, since trio changes the order of the tasks from turn to turn.
    assert max(after - before for before, after in pairwise(turns)) <= 2 * REPORTS_AT_ONCE


async def test_a_write_that_has_begun_ends_although_the_queue_is_stopped(
    database: Database,
) -> None:
    writer = Writer(database)
    with trio.CancelScope() as scope:

        def statements(connection: sqlite3.Connection) -> Iterator[int]:
            trio.from_thread.run_sync(scope.cancel)
            yield from inserted(1)(connection)

        writer.write(1, statements)
        for number in range(2, 3 * REPORTS_AT_ONCE):
            writer.write(number)
        await writer.writes.run()

    written = list(range(1, 3 * REPORTS_AT_ONCE))
    assert [(number, True) for number in written] == writer.ended
    assert written == await database.transaction(numbers)


async def test_a_write_that_has_not_begun_gets_no_error(database: Database) -> None:
    writer = Writer(database)
    with trio.CancelScope() as scope:
        scope.cancel()
        writer.write(1)
        await writer.writes.run()
    await wait_all_tasks_blocked()

    assert [] == writer.ended
    assert [] == await database.transaction(numbers)


async def test_in_memory_another_transaction_waits_for_the_steps_of_one(
    nursery: trio.Nursery,
) -> None:
    """And sees all of it, or nothing if it failed."""
    many = inserted(*range(10 * ROWS_PER_TURN))
    seen: list[int] = []
    async with open_database(IN_MEMORY) as database:
        for statements in (many, chain(many, refused)):
            async with trio.open_nursery() as inner:
                writes = WriteQueue(database)
                inner.start_soon(writes.run)
                writes.write(statements, lambda _: None)
                await wait_all_tasks_blocked(0)
                seen.append(len(await database.transaction(numbers)))
                inner.cancel_scope.cancel()

    assert [10 * ROWS_PER_TURN] * 2 == seen


def test_rows_are_written_in_parts_of_a_step() -> None:
    count = 2 * ROWS_PER_TURN + 1

    parts = list(in_parts(range(count)))

    assert [ROWS_PER_TURN, ROWS_PER_TURN, 1] == [len(part) for part in parts]
    assert list(range(count)) == [row for part in parts for row in part]
