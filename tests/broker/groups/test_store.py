"""Writes of groups: many in one transaction, each told how it ended."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trionet.broker.database import DATABASE_NAME, Database, DatabaseError, open_database
from trionet.broker.groups.offsets import CommittedOffset, Partition
from trionet.broker.groups.store import (
    GroupStore,
    Statements,
    put_group,
    put_offsets,
    remove_group,
    remove_offsets,
    remove_topic_offsets,
)
from trionet.broker.groups.stored import StoredGroup, StoredMember

MEMBER = StoredMember("c-1", "ä", "c", "/::1", 10.5, 60.25, b"\0\xff", bytes(range(256)))
GROUP = StoredGroup("g", 7, "consumer", "range", "c-1", 1_700_000_000_000, (MEMBER,))
EMPTY = StoredGroup("empty", 0, None, None, None, 0, ())
OFFSET = CommittedOffset(2**62, 5, "mëta 📎", 1_700_000_000_000, 1_800_000_000_000)
PLAIN = CommittedOffset(0, -1, "", 0, None)
T0: Partition = ("t", 0)
T1: Partition = ("t", 1)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(str(tmp_path / DATABASE_NAME)) as database:
        yield database


class Writer:
    """A store, and the ends of what is written with it."""

    def __init__(self, database: Database) -> None:
        self.store = GroupStore(database)
        self.ended: list[tuple[str, bool]] = []
        self._has_ended = trio.Event()

    def write(self, name: str, statements: Statements) -> None:
        def done(error: DatabaseError | None) -> None:
            self.ended.append((name, error is None))
            self._has_ended.set()

        self.store.write(statements, done)

    async def all_ended(self, count: int) -> None:
        """Wait asleep: a loop that spins would leave the writing thread little of the GIL."""
        with trio.fail_after(5):
            while len(self.ended) < count:
                await self._has_ended.wait()
                self._has_ended = trio.Event()


@pytest.fixture
def writer(database: Database, nursery: trio.Nursery) -> Writer:
    writer = Writer(database)
    nursery.start_soon(writer.store.run)
    return writer


def refused(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO nowhere VALUES (1)")


async def test_nothing_is_there_at_first(database: Database) -> None:
    assert ([], {}) == await GroupStore(database).load()


async def test_what_is_written_can_be_loaded(database: Database, writer: Writer) -> None:
    writer.write("group", put_group(GROUP))
    writer.write("empty", put_group(EMPTY))
    writer.write("offsets", put_offsets("g", {T0: OFFSET, T1: PLAIN}))
    writer.write("others", put_offsets("", {T0: PLAIN}))
    await writer.all_ended(4)

    groups, offsets = await GroupStore(database).load()

    assert {"g": GROUP, "empty": EMPTY} == {group.id: group for group in groups}
    assert {"g": {T0: OFFSET, T1: PLAIN}, "": {T0: PLAIN}} == offsets


async def test_what_is_written_again_takes_the_place_of_the_old(
    database: Database, writer: Writer
) -> None:
    writer.write("old", put_group(GROUP))
    writer.write("old", put_offsets("g", {T0: OFFSET, T1: OFFSET}))
    newer = attrs.evolve(GROUP, generation=8, members=())
    writer.write("new", put_group(newer))
    writer.write("new", put_offsets("g", {T0: PLAIN}))
    await writer.all_ended(4)

    assert ([newer], {"g": {T0: PLAIN, T1: OFFSET}}) == await GroupStore(database).load()


async def test_what_is_removed_is_gone(database: Database, writer: Writer) -> None:
    for group in "gh":
        writer.write("put", put_group(attrs.evolve(GROUP, id=group)))
        writer.write("put", put_offsets(group, {T0: PLAIN, T1: PLAIN, ("u", 0): PLAIN}))
    writer.write("remove", remove_offsets("g", [T1, ("never", 0)]))
    writer.write("remove", remove_group("h"))
    await writer.all_ended(6)
    groups, offsets = await GroupStore(database).load()
    assert (["g"], {"g": {T0: PLAIN, ("u", 0): PLAIN}}) == ([each.id for each in groups], offsets)

    writer.write("remove", remove_topic_offsets("t"))
    await writer.all_ended(7)

    assert {"g": {("u", 0): PLAIN}} == (await GroupStore(database).load())[1]


async def test_writes_that_come_while_one_is_under_way_are_one_transaction(
    database: Database, writer: Writer
) -> None:
    transactions: list[str] = []
    database._connection.set_trace_callback(
        lambda statement: transactions.append(statement) if "COMMIT" in statement else None
    )
    for number in range(1000):
        writer.write(str(number), put_offsets("g", {("t", number): PLAIN}))

    await writer.all_ended(1000)

    assert [(str(number), True) for number in range(1000)] == writer.ended
    assert 1 == len(transactions)


async def test_one_that_fails_does_not_spoil_the_others(
    database: Database, writer: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    writer.write("before", put_offsets("g", {T0: PLAIN}))
    writer.write("bad", refused)
    writer.write("after", put_offsets("g", {T1: PLAIN}))

    await writer.all_ended(3)

    assert [("before", True), ("bad", False), ("after", True)] == writer.ended
    assert {"g": {T0: PLAIN, T1: PLAIN}} == (await GroupStore(database).load())[1]
    assert "cannot store consumer groups" in caplog.text
    assert "no such table: nowhere" in caplog.text


async def test_whoever_is_told_finds_it_in_the_database(
    database: Database, nursery: trio.Nursery
) -> None:
    """By another connection, which sees what is committed only."""
    store = GroupStore(database)
    seen: list[int] = []
    has_ended = trio.Event()

    def look(error: DatabaseError | None) -> None:
        assert error is None
        with sqlite3.connect(database.path) as other:
            seen.extend(other.execute('SELECT "offset" FROM committed_offset').fetchone())
        other.close()
        has_ended.set()

    nursery.start_soon(store.run)
    store.write(put_offsets("g", {T0: OFFSET}), look)
    await has_ended.wait()

    assert [OFFSET.offset] == seen


async def test_what_is_written_for_who_is_told_comes_next(
    database: Database, nursery: trio.Nursery
) -> None:
    store = GroupStore(database)
    has_ended = trio.Event()
    nursery.start_soon(store.run)

    store.write(
        put_offsets("g", {T0: PLAIN}),
        lambda _: store.write(put_offsets("g", {T1: PLAIN}), lambda _: has_ended.set()),
    )
    await has_ended.wait()

    assert {"g": {T0: PLAIN, T1: PLAIN}} == (await store.load())[1]


async def test_a_write_that_has_begun_ends_although_the_store_is_stopped(
    database: Database,
) -> None:
    store = GroupStore(database)
    ended: list[bool] = []
    with trio.CancelScope() as scope:

        def statements(connection: sqlite3.Connection) -> None:
            trio.from_thread.run_sync(scope.cancel)
            put_offsets("g", {T0: PLAIN})(connection)

        store.write(statements, lambda error: ended.append(error is None))
        await store.run()

    assert [True] == ended
    assert {"g": {T0: PLAIN}} == (await store.load())[1]


async def test_a_write_that_has_not_begun_is_told_nothing(database: Database) -> None:
    store = GroupStore(database)
    ended: list[bool] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        store.write(put_offsets("g", {T0: PLAIN}), lambda error: ended.append(error is None))
        await store.run()
    await wait_all_tasks_blocked()

    assert [] == ended
    assert ([], {}) == await store.load()
