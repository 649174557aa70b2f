"""Groups and their committed offsets in the database."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest
import trio

from trionet.broker.groups._committed_offsets import CommittedOffset, Partition, put_offsets
from trionet.broker.groups._group_store import (
    GroupStore,
    put_group,
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
from trionet.broker.storage._write_queue import Statements, WriteQueue

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
    """A queue, and the ends of what is written with it."""

    def __init__(self, database: Database) -> None:
        self.writes = WriteQueue(database)
        self.ended: list[tuple[str, bool]] = []
        self._has_ended = trio.Event()

    def write(self, name: str, statements: Statements) -> None:
        def done(error: DatabaseError | None) -> None:
            self.ended.append((name, error is None))
            self._has_ended.set()

        self.writes.write(statements, done)

    async def all_ended(self, count: int) -> None:
        """Wait asleep: a loop that spins would leave the writing thread little of the GIL."""
        with trio.fail_after(5):
            while len(self.ended) < count:
                await self._has_ended.wait()
                self._has_ended = trio.Event()


@pytest.fixture
def writer(database: Database, nursery: trio.Nursery) -> Writer:
    writer = Writer(database)
    nursery.start_soon(writer.writes.run)
    return writer


async def load(
    database: Database,
) -> tuple[list[StoredGroup], dict[str, dict[Partition, CommittedOffset]]]:
    return await GroupStore(database, WriteQueue(database)).load()


async def test_nothing_is_there_at_first(database: Database) -> None:
    assert ([], {}) == await load(database)


async def test_what_is_written_can_be_loaded(database: Database, writer: Writer) -> None:
    writer.write("group", put_group(GROUP))
    writer.write("empty", put_group(EMPTY))
    writer.write("offsets", put_offsets("g", {T0: OFFSET, T1: PLAIN}))
    writer.write("others", put_offsets("", {T0: PLAIN}))
    await writer.all_ended(4)

    groups, offsets = await load(database)

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

    assert ([newer], {"g": {T0: PLAIN, T1: OFFSET}}) == await load(database)


async def test_what_is_removed_is_gone(database: Database, writer: Writer) -> None:
    for group in "gh":
        writer.write("put", put_group(attrs.evolve(GROUP, id=group)))
        writer.write("put", put_offsets(group, {T0: PLAIN, T1: PLAIN, ("u", 0): PLAIN}))
    writer.write("remove", remove_offsets("g", [T1, ("never", 0)]))
    writer.write("remove", remove_group("h"))
    await writer.all_ended(6)
    groups, offsets = await load(database)
    assert (["g"], {"g": {T0: PLAIN, ("u", 0): PLAIN}}) == ([each.id for each in groups], offsets)

    writer.write("remove", remove_topic_offsets("t"))
    await writer.all_ended(7)

    assert {"g": {("u", 0): PLAIN}} == (await load(database))[1]


async def test_groups_that_an_earlier_version_stored_are_loaded(database: Database) -> None:
    """As JSON in one column."""
    member = {**attrs.asdict(MEMBER), "metadata": "AP8=", "assignment": "AAEC"}
    row = ("g", 7, "consumer", "range", "c-1", 0, json.dumps([member]))
    await database.transaction(
        lambda connection: connection.execute(
            "INSERT INTO consumer_group VALUES (?, ?, ?, ?, ?, ?, ?)", row
        )
    )

    [group], _ = await load(database)

    assert (attrs.evolve(MEMBER, metadata=b"\0\xff", assignment=b"\0\1\2"),) == group.members


async def test_a_smaller_group_takes_the_place_of_all_of_a_larger_one(
    database: Database, writer: Writer
) -> None:
    large = attrs.evolve(GROUP, members=(attrs.evolve(MEMBER, metadata=bytes(1_000_000)),))
    writer.write("large", put_group(large))
    await writer.all_ended(1)
    assert ([large], {}) == await load(database)

    writer.write("small", put_group(GROUP))
    await writer.all_ended(2)
    assert ([GROUP], {}) == await load(database)

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
        writes, has_ended = WriteQueue(database), trio.Event()
        nursery.start_soon(writes.run)
        nursery.start_soon(take_turns)
        writes.write(statements, lambda _: has_ended.set())
        await has_ended.wait()
        nursery.cancel_scope.cancel()

    assert steps_min <= turns
