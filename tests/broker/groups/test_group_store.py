"""Writes of groups, many in one transaction; and committed offsets in memory (KIP-211)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trionet.broker.groups._group_store import (
    CommittedOffset,
    CommittedOffsets,
    GroupStore,
    Partition,
    Statements,
    expired,
    put_group,
    put_offsets,
    remove_group,
    remove_offsets,
    remove_topic_offsets,
)
from trionet.broker.groups._stored_group import CHUNK_BYTES, StoredGroup, StoredMember
from trionet.broker.storage._database import (
    DATABASE_NAME,
    IN_MEMORY,
    ROWS_PER_TURN,
    Database,
    DatabaseError,
    open_database,
)

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


def refused(connection: sqlite3.Connection) -> Iterator[int]:
    connection.execute("INSERT INTO nowhere VALUES (1)")
    yield 1


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


async def test_a_member_that_gets_its_response_finds_it_in_the_database(
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


async def test_what_is_written_for_the_callback_comes_next(
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

        def statements(connection: sqlite3.Connection) -> Iterator[int]:
            trio.from_thread.run_sync(scope.cancel)
            yield from put_offsets("g", {T0: PLAIN})(connection)

        store.write(statements, lambda error: ended.append(error is None))
        await store.run()

    assert [True] == ended
    assert {"g": {T0: PLAIN}} == (await store.load())[1]


async def test_a_write_that_has_not_begun_gets_no_error(database: Database) -> None:
    store = GroupStore(database)
    ended: list[bool] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        store.write(put_offsets("g", {T0: PLAIN}), lambda error: ended.append(error is None))
        await store.run()
    await wait_all_tasks_blocked()

    assert [] == ended
    assert ([], {}) == await store.load()


async def test_groups_that_an_earlier_version_stored_are_loaded(database: Database) -> None:
    """As JSON in one column."""
    member = {**attrs.asdict(MEMBER), "metadata": "AP8=", "assignment": "AAEC"}
    row = ("g", 7, "consumer", "range", "c-1", 0, json.dumps([member]))
    await database.transaction(
        lambda connection: connection.execute(
            "INSERT INTO consumer_group VALUES (?, ?, ?, ?, ?, ?, ?)", row
        )
    )

    [group], _ = await GroupStore(database).load()

    assert (attrs.evolve(MEMBER, metadata=b"\0\xff", assignment=b"\0\1\2"),) == group.members


async def test_a_smaller_group_takes_the_place_of_all_of_a_larger_one(
    database: Database, writer: Writer
) -> None:
    large = attrs.evolve(GROUP, members=(attrs.evolve(MEMBER, metadata=bytes(1_000_000)),))
    writer.write("large", put_group(large))
    await writer.all_ended(1)
    assert ([large], {}) == await GroupStore(database).load()

    writer.write("small", put_group(GROUP))
    await writer.all_ended(2)
    assert ([GROUP], {}) == await GroupStore(database).load()

    writer.write("none", remove_group("g"))
    await writer.all_ended(3)
    left = await database.transaction(
        lambda connection: connection.execute("SELECT count(*) FROM group_piece").fetchone()
    )
    assert (0,) == left


@pytest.mark.parametrize("what", ["a large group", "many members", "many offsets"])
async def test_in_memory_others_on_the_loop_have_turns_while_much_is_written(what: str) -> None:
    """Steps, not time: how long one takes depends on the machine."""
    if what == "many offsets":
        statements = put_offsets("g", {("t", number): PLAIN for number in range(1000)})
        steps_min = 1000 // ROWS_PER_TURN
    else:
        many = tuple(attrs.evolve(MEMBER, id=f"c-{number}") for number in range(2500))
        one = (attrs.evolve(MEMBER, metadata=bytes(1_000_000)),)
        group = attrs.evolve(GROUP, members=one if what == "a large group" else many)
        statements = put_group(group)
        steps_min = 1_000_000 // CHUNK_BYTES
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with open_database(IN_MEMORY) as database, trio.open_nursery() as nursery:
        store, has_ended = GroupStore(database), trio.Event()
        nursery.start_soon(store.run)
        nursery.start_soon(take_turns)
        store.write(statements, lambda _: has_ended.set())
        await has_ended.wait()
        nursery.cancel_scope.cancel()

    assert steps_min <= turns


async def test_in_memory_another_transaction_waits_for_the_steps_of_one() -> None:
    """And sees all of it, or nothing if it failed."""
    seen: list[int] = []

    def count(connection: sqlite3.Connection) -> None:
        seen.extend(connection.execute("SELECT count(*) FROM committed_offset").fetchone())

    def spoiled(connection: sqlite3.Connection) -> Iterator[int]:
        yield from put_offsets("h", {("t", number): PLAIN for number in range(1000)})(connection)
        yield from refused(connection)

    async with open_database(IN_MEMORY) as database:
        for statements in (put_offsets("g", {("t", n): PLAIN for n in range(1000)}), spoiled):
            async with trio.open_nursery() as nursery:
                store = GroupStore(database)
                nursery.start_soon(store._commit, [statements])
                await wait_all_tasks_blocked(0)
                await database.transaction(count)

    assert [1000, 1000] == seen


HOUR = 3_600_000
RETENTION = 24 * HOUR
NOW = 1_700_000_000_000


def at(
    offset: int, committed_at_ms: int = NOW, expires_at_ms: int | None = None
) -> CommittedOffset:
    return CommittedOffset(offset, -1, "", committed_at_ms, expires_at_ms)


@pytest.fixture
def offsets() -> CommittedOffsets:
    offsets = CommittedOffsets()
    offsets.put("g", {("t", 0): at(1), ("t", 1): at(2), ("u", 0): at(3)})
    offsets.put("h", {("t", 0): at(4)})
    return offsets


def test_a_group_has_those_that_it_committed_last(offsets: CommittedOffsets) -> None:
    offsets.put("g", {("t", 1): at(20), ("v", 0): at(5)})

    assert {("t", 0): at(1), ("t", 1): at(20), ("u", 0): at(3), ("v", 0): at(5)} == offsets.of("g")
    assert {("t", 0): at(4)} == offsets.of("h")


def test_a_group_that_has_committed_nothing_has_none(offsets: CommittedOffsets) -> None:
    offsets.put("empty", {})

    assert {} == offsets.of("unknown") == offsets.of("empty")


def test_some_can_be_removed(offsets: CommittedOffsets) -> None:
    offsets.remove("g", [("t", 0), ("u", 0), ("never", 9)])
    offsets.remove("unknown", [("t", 0)])

    assert {("t", 1): at(2)} == offsets.of("g")
    assert {("t", 0): at(4)} == offsets.of("h")


def test_all_of_a_group_can_be_removed(offsets: CommittedOffsets) -> None:
    offsets.remove_group("g")
    offsets.remove_group("unknown")

    assert ({}, {("t", 0): at(4)}) == (offsets.of("g"), offsets.of("h"))


def test_all_of_a_topic_can_be_removed(offsets: CommittedOffsets) -> None:
    offsets.remove_topic("t")

    assert ({("u", 0): at(3)}, {}) == (offsets.of("g"), offsets.of("h"))


def test_a_group_that_has_none_left_takes_no_room(offsets: CommittedOffsets) -> None:
    offsets.remove("g", [("t", 0), ("t", 1), ("u", 0)])
    offsets.remove_topic("t")

    assert {} == offsets._groups


# Expiry.


def due(
    committed_at_ms: int = NOW - 2 * RETENTION,
    expires_at_ms: int | None = None,
    *,
    empty_since_ms: int | None = None,
    in_use: frozenset[str] | None = frozenset(),
) -> bool:
    """Whether the offset of a partition of topic `t` is to be dropped now."""
    partition: Partition = ("t", 0)
    found = expired(
        {partition: at(1, committed_at_ms, expires_at_ms)},
        NOW,
        RETENTION,
        empty_since_ms=empty_since_ms,
        in_use=in_use,
    )
    assert found in ([], [partition])
    return bool(found)


def test_an_offset_of_a_topic_without_readers_is_kept_for_the_retention() -> None:
    assert not due(NOW - RETENTION + 1)
    assert due(NOW - RETENTION)


def test_that_of_a_topic_that_members_read_is_kept_however_old_it_is() -> None:
    assert not due(0, in_use=frozenset({"t"}))
    assert due(in_use=frozenset({"other"}))


def test_so_is_every_one_while_it_is_not_known_what_members_read() -> None:
    assert not due(0, in_use=None)


def test_the_retention_begins_when_the_last_member_leaves() -> None:
    assert not due(0, empty_since_ms=NOW - RETENTION + 1)
    assert due(0, empty_since_ms=NOW - RETENTION)


def test_what_is_committed_to_a_group_without_members_has_its_own_retention() -> None:
    """An administrator who sets the offsets of an old group finds them there tomorrow."""
    assert not due(NOW - 1, empty_since_ms=NOW - 2 * RETENTION)


def test_a_client_may_say_how_long_an_offset_is_kept() -> None:
    assert not due(0, NOW + 1)
    assert due(NOW - 1, NOW)
    assert not due(0, NOW + 1, empty_since_ms=0)


def test_what_members_read_is_kept_whatever_the_client_said() -> None:
    assert not due(0, NOW - 1, in_use=frozenset({"t"}))
    assert not due(0, NOW - 1, in_use=None)


def test_each_partition_is_judged_by_itself() -> None:
    offsets = {
        ("t", 0): at(1, NOW - RETENTION),
        ("t", 1): at(1, NOW),
        ("u", 0): at(1, NOW, NOW),
        ("used", 0): at(1, 0),
    }

    assert [("t", 0), ("u", 0)] == expired(
        offsets, NOW, RETENTION, empty_since_ms=None, in_use=frozenset({"used"})
    )
