"""Offsets that wait for the end of their transaction: in memory, in the database, after a restart.

What holds is Kafka's rule, by the positions of commits: at the end of a transaction that is
committed, each of its offsets becomes the committed one if it was committed after that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from trionet.broker.groups._committed_offsets import CommittedOffset, Partition
from trionet.broker.groups._group_store import GroupStore
from trionet.broker.storage._database import (
    DATABASE_NAME,
    IN_MEMORY,
    ROWS_PER_TURN,
    Database,
    DatabaseError,
    open_database,
)
from trionet.broker.storage._write_queue import WriteQueue
from trionet.protocol import error_codes

T0: Partition = ("t", 0)
T1: Partition = ("t", 1)
U0: Partition = ("u", 0)
NOW = 1_700_000_000_000
GROUPS = ["g", "h"]
Key = tuple[str, Partition]
"""What has an offset: a partition in a group."""


def at(offset: int) -> CommittedOffset:
    return CommittedOffset(offset, 3, "mëta", NOW)


class Storing:
    """A store that runs, and the calls of a transaction coordinator in short."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.writes = WriteQueue(database)
        self.store = GroupStore(database, self.writes)
        self.codes: list[int] = []
        self.history: list[dict[Key, int]] = []

    def pend(
        self,
        producer_id: int,
        offsets: Mapping[Partition, int],
        group: str = "g",
    ) -> None:
        pending = {partition: at(offset) for partition, offset in offsets.items()}
        self.store.pend(producer_id, group, pending, self._done)

    def commit(self, offsets: Mapping[Partition, int], group: str = "g") -> None:
        committed = {partition: at(offset) for partition, offset in offsets.items()}
        self.store.commit(group, committed, self._done)

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        def stored(error: DatabaseError | None) -> None:
            if error is None:
                self.store.pending_ended(producer_id, is_commit)
                self._done(error_codes.NONE)

        self.writes.write(self.store.end_pending(producer_id, is_commit), stored)

    def delete(self, *partitions: Partition, group: str = "g") -> None:
        self.store.delete_offsets(group, partitions, self._done)

    def _done(self, code: int) -> None:
        self.codes.append(code)
        self.history.append(self.committed())

    def committed(self) -> dict[Key, int]:
        """What is committed now, of the groups of these tests."""
        return {
            (group, partition): each.offset
            for group in GROUPS
            for partition, each in self.store.offsets.of(group).items()
        }

    async def offsets(self, group: str = "g") -> dict[Partition, int]:
        """What is committed, once everything before is done."""
        await self.writes.flush()
        return {partition: each.offset for partition, each in self.store.offsets.of(group).items()}

    async def rows(self, table: str) -> int:
        await self.writes.flush()
        query = f"SELECT count(*) FROM {table}"
        [count] = await self.database.transaction(
            lambda connection: connection.execute(query).fetchone()
        )
        assert isinstance(count, int)
        return count


@asynccontextmanager
async def storing(database: Database) -> AsyncIterator[Storing]:
    """A store as after a start."""
    async with trio.open_nursery() as nursery:
        it = Storing(database)
        _, offsets = await it.store.load()
        for group_id, each in offsets.items():
            it.store.offsets.put(group_id, each)
        nursery.start_soon(it.writes.run)
        yield it
        nursery.cancel_scope.cancel()


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(str(tmp_path / DATABASE_NAME)) as database:
        yield database


@pytest.fixture
async def it(database: Database) -> AsyncIterator[Storing]:
    async with storing(database) as it:
        yield it


async def test_an_offset_is_committed_with_its_transaction(it: Storing) -> None:
    it.commit({T0: 1})
    it.pend(7, {T0: 5, T1: 6})
    assert {T0: 1} == await it.offsets()
    assert {T0, T1} == set(it.store.pending.of("g"))

    it.end(7, is_commit=True)

    assert {T0: 5, T1: 6} == await it.offsets()
    assert CommittedOffset(5, 3, "mëta", NOW) == it.store.offsets.of("g")[T0]
    assert [] == list(it.store.pending.of("g"))
    assert 0 == await it.rows("pending_offset")


async def test_an_offset_is_dropped_with_its_transaction(it: Storing) -> None:
    it.commit({T0: 1})
    it.pend(7, {T0: 5, T1: 6})
    it.end(7, is_commit=False)

    assert {T0: 1} == await it.offsets()
    assert [] == list(it.store.pending.of("g"))
    assert 0 == await it.rows("pending_offset")


async def test_a_later_one_of_the_same_transaction_takes_its_place(it: Storing) -> None:
    it.pend(7, {T0: 5, T1: 6})
    it.pend(7, {T0: 3})
    it.end(7, is_commit=True)

    assert {T0: 3, T1: 6} == await it.offsets()


async def test_a_transaction_commits_for_several_groups(it: Storing) -> None:
    it.pend(7, {T0: 5}, "g")
    it.pend(7, {T0: 6}, "h")
    it.end(7, is_commit=True)

    assert ({T0: 5}, {T0: 6}) == (await it.offsets("g"), await it.offsets("h"))


async def test_a_commit_outside_wins_if_it_is_later(it: Storing) -> None:
    """The partition is unstable all the same: Kafka does not look at it before the end."""
    it.pend(7, {T0: 5, T1: 6})
    it.commit({T0: 2})
    assert {T0: 2} == await it.offsets()
    assert {T0, T1} == set(it.store.pending.of("g"))

    it.end(7, is_commit=True)

    assert {T0: 2, T1: 6} == await it.offsets()


async def test_and_loses_to_one_that_comes_after_it_in_the_transaction(it: Storing) -> None:
    it.pend(7, {T0: 5})
    it.commit({T0: 2})
    it.pend(7, {T0: 6})
    it.end(7, is_commit=True)

    assert {T0: 6} == await it.offsets()


@pytest.mark.parametrize("first", [7, 8])
async def test_of_two_transactions_the_later_commit_counts(it: Storing, first: int) -> None:
    """Whichever of them ends first."""
    it.pend(7, {T0: 5})
    it.pend(8, {T0: 6})
    it.end(first, is_commit=True)
    await it.writes.flush()
    assert {T0} == set(it.store.pending.of("g"))
    it.end(15 - first, is_commit=True)

    assert {T0: 6} == await it.offsets()


async def test_one_that_is_aborted_supersedes_nothing(it: Storing) -> None:
    it.pend(7, {T0: 5})
    it.pend(8, {T0: 6})
    it.end(8, is_commit=False)
    it.end(7, is_commit=True)

    assert {T0: 5} == await it.offsets()


async def test_a_deleted_offset_does_not_come_back(it: Storing) -> None:
    it.commit({T0: 1, T1: 1})
    it.pend(7, {T0: 5, T1: 6})
    it.pend(8, {T0: 7})
    it.delete(T0, U0)
    assert {T1: 1} == await it.offsets()
    assert {T1} == set(it.store.pending.of("g"))
    assert 8 not in it.store.pending_producers()

    it.end(8, is_commit=True)
    it.end(7, is_commit=True)

    assert {T1: 6} == await it.offsets()


async def test_nor_does_one_of_a_deleted_group_or_topic(it: Storing) -> None:
    it.pend(7, {T0: 5}, "g")
    it.pend(7, {T0: 6, U0: 7}, "h")
    it.store.delete_group("g", lambda _: None)
    it.store.forget_topic("t")
    await it.writes.flush()
    assert ["h"] == list(it.store.pending.groups())

    it.end(7, is_commit=True)

    assert ({}, {U0: 7}) == (await it.offsets("g"), await it.offsets("h"))
    assert 0 == await it.rows("pending_offset")


async def test_the_producers_that_have_any_are_known(it: Storing) -> None:
    it.pend(7, {T0: 5})
    it.pend(8, {T1: 5})
    await it.writes.flush()

    assert {7, 8} == set(it.store.pending_producers())


async def test_an_end_includes_what_is_still_queued(it: Storing) -> None:
    """The decision of a transaction may be queued before its offsets are stored."""
    it.pend(7, {T0: 5})
    assert 7 not in it.store.pending_producers()
    it.end(7, is_commit=True)
    it.commit({T1: 1})

    assert {T0: 5, T1: 1} == await it.offsets()


async def test_a_commit_outside_counts_those_that_are_still_queued(
    it: Storing, database: Database
) -> None:
    it.pend(7, {T0: 5})
    it.commit({T0: 2})
    await it.writes.flush()
    async with storing(database) as after:
        after.end(7, is_commit=True)

        assert {T0: 2} == await after.offsets()


async def test_what_could_not_be_stored_is_logged_and_not_known(
    it: Storing, caplog: pytest.LogCaptureFixture
) -> None:
    await it.database.transaction(
        lambda connection: connection.execute("ALTER TABLE pending_offset RENAME TO gone")
    )
    it.pend(7, {T0: 5})
    await it.writes.flush()

    assert [error_codes.COORDINATOR_NOT_AVAILABLE] == it.codes
    assert "cannot store offsets of producer 7: " in caplog.text
    assert [] == list(it.store.pending_producers())


async def test_after_a_restart_they_wait_as_before(it: Storing, database: Database) -> None:
    it.pend(7, {T0: 5, T1: 6})
    it.pend(8, {U0: 7})
    it.commit({T1: 1})
    await it.writes.flush()

    async with storing(database) as after:
        assert {7, 8} == set(after.store.pending_producers())
        assert {T0, T1, U0} == set(after.store.pending.of("g"))
        after.pend(9, {T0: 8})
        after.end(9, is_commit=True)
        after.end(7, is_commit=True)
        after.end(8, is_commit=False)

        assert {T0: 8, T1: 1} == await after.offsets()


async def test_those_of_producers_without_a_transaction_are_dropped(it: Storing) -> None:
    for producer_id in (7, 8, 9):
        it.pend(producer_id, {T0: producer_id})
    await it.writes.flush()

    def stored(error: DatabaseError | None) -> None:
        for producer_id in (7, 8):
            it.store.pending_ended(producer_id, is_commit=False)

    it.writes.write(it.store.drop_pending([7, 8]), stored)

    assert {} == await it.offsets()
    assert [9] == list(it.store.pending_producers())
    assert 1 == await it.rows("pending_offset")


async def test_tests_hear_of_the_end(it: Storing) -> None:
    ended: list[int] = []
    it.store.on_end = lambda: ended.append(len(it.store.offsets.of("g")))
    it.pend(7, {T0: 5})
    it.end(7, is_commit=True)
    await it.writes.flush()

    assert [1] == ended


async def test_in_memory_others_on_the_loop_have_turns_during_a_large_end() -> None:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with open_database(IN_MEMORY) as database, storing(database) as it:
        it.pend(7, {("t", number): number for number in range(2000)})
        await it.writes.flush()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take_turns)
            await trio.lowlevel.checkpoint()
            it.end(7, is_commit=True)
            await it.writes.flush()
            nursery.cancel_scope.cancel()

        assert 2000 == len(await it.offsets())
    assert 2000 // ROWS_PER_TURN <= turns


class Model:
    """Kafka's rule: everything has a position, and the greater one counts."""

    def __init__(self) -> None:
        self.position = 0
        self.history: list[dict[Key, int]] = []
        self.committed: dict[Key, tuple[int, int]] = {}
        self.pending: dict[int, dict[Key, tuple[int, int]]] = {}

    def pend(self, producer_id: int, group: str, offsets: Mapping[Partition, int]) -> None:
        self.position += 1
        for partition, offset in offsets.items():
            mine = self.pending.setdefault(producer_id, {})
            mine[group, partition] = (self.position, offset)
        self.note()

    def commit(self, group: str, offsets: Mapping[Partition, int]) -> None:
        self.position += 1
        for partition, offset in offsets.items():
            self.committed[group, partition] = (self.position, offset)
        self.note()

    def end(self, producer_id: int, is_commit: bool) -> None:
        for key, entry in self.pending.pop(producer_id, {}).items():
            if is_commit and entry > self.committed.get(key, (0, 0)):
                self.committed[key] = entry
        self.note()

    def note(self) -> None:
        self.history.append({key: offset for key, (_, offset) in self.committed.items()})

    def delete(self, keys: set[Key]) -> None:
        for entries in (self.committed, *self.pending.values()):
            for key in keys & entries.keys():
                del entries[key]
        self.pending = {id: entries for id, entries in self.pending.items() if entries}

    def with_offsets(self) -> set[Key]:
        """All that has an offset, pending or not."""
        return set().union(self.committed, *self.pending.values())


# Few of everything, so that commits meet each other; one draw a step, which is quick.
PENDS = [
    ("pend", producer_id, group, partitions)
    for producer_id, group in [(1, "g"), (2, "g"), (3, "g"), (1, "h")]
    for partitions in ([T0], [T0, U0], [T1])
]
ENDS = [("end", producer_id, is_commit) for producer_id in (1, 2, 3) for is_commit in (True, False)]
COMMITS = [("commit", group, partitions) for group in GROUPS for partitions in ([T0], [T0, U0])]
RARE = [
    ("delete", "g", [T0]),
    ("delete", "g", [T1, U0]),
    ("delete group", "g"),
    ("delete topic", "t"),
    ("wait",),
    ("restart",),
    ("restart",),
]
STEPS: list[tuple[object, ...]] = [*PENDS, *ENDS, *ENDS, *COMMITS, *RARE]


@given(st.lists(st.sampled_from(STEPS), min_size=10, max_size=30))
def test_any_course_of_commits_ends_and_deletions(course: list[tuple[object, ...]]) -> None:
    """Whether the broker waits for each write, lets them queue up, or is started again."""
    trio.run(partial(_run_course, course))


async def _run_course(course: list[tuple[object, ...]]) -> None:
    model = Model()
    offsets = iter(range(1, 1000))
    steps = iter(course)
    async with open_database(IN_MEMORY) as database:
        is_over = False
        while not is_over:
            async with storing(database) as it:
                await _agree(it, model)
                is_over = True
                for step in steps:
                    if step[0] == "restart":
                        is_over = False
                        break
                    if step[0] == "wait":
                        await _agree(it, model)
                    else:
                        _take(step, it, model, next(offsets))
                await _agree(it, model)


def _take(step: tuple[object, ...], it: Storing, model: Model, offset: int) -> None:
    match step:
        case ("pend", int(producer_id), str(group), list(partitions)):
            it.pend(producer_id, dict.fromkeys(partitions, offset), group)
            model.pend(producer_id, group, dict.fromkeys(partitions, offset))
        case ("commit", str(group), list(partitions)):
            it.commit(dict.fromkeys(partitions, offset), group)
            model.commit(group, dict.fromkeys(partitions, offset))
        case ("end", int(producer_id), bool(is_commit)):
            it.end(producer_id, is_commit=is_commit)
            model.end(producer_id, is_commit)
        case ("delete", str(group), list(partitions)):
            it.delete(*partitions, group=group)
            model.delete({(group, partition) for partition in partitions})
            model.note()
        case ("delete group", str(group)):
            it.store.delete_group(group, lambda _: None)
            model.delete({key for key in model.with_offsets() if key[0] == group})
        case ("delete topic", str(topic)):
            it.store.forget_topic(topic)
            model.delete({key for key in model.with_offsets() if key[1][0] == topic})
        case _:
            raise AssertionError(step)


async def _agree(it: Storing, model: Model) -> None:
    """Each step had the effect that it has in the model, in memory and in the database."""
    await it.writes.flush()
    assert model.history == it.history
    model.history.clear()
    it.history.clear()
    stored = GroupStore(it.database, it.writes)
    _, offsets = await stored.load()

    assert {key: offset for key, (_, offset) in model.committed.items()} == it.committed()
    assert {
        (group, partition): each.offset
        for group, by_partition in offsets.items()
        for partition, each in by_partition.items()
    } == it.committed()
    assert set(model.pending) == set(it.store.pending_producers())
    assert set().union(*model.pending.values()) == {
        (group, partition) for group in GROUPS for partition in it.store.pending.of(group)
    }
    assert stored.pending._producers == it.store.pending._producers
    assert stored.pending._groups == it.store.pending._groups
    assert not it.store.commits
