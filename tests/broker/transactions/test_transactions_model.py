"""What an EndTxn decided is what the markers in all logs say, whenever the broker is killed.

A model decides about every record and offset, and is compared with the logs and the database after
each step. Writes to the database are under the control of the test: the broker may be killed before
a write is stored, after it and before its callback, and between any two markers. What the kernel
has survives, as after SIGKILL. Clients send requests of both protocols, in any order, also as
instances that were replaced.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.transacting import LEADER, NO_LEADER, Killed, Partition, Transacting
from trionet.broker.groups._offsets_partition import partition_of
from trionet.broker.log import Directory, FolderDirectory
from trionet.broker.storage._database import DATABASE_NAME, Database, open_database
from trionet.broker.transactions._transaction import (
    EXHAUSTED,
    PREPARED,
    TV1,
    TV2,
    StoredTransaction,
    TransactionState,
)
from trionet.broker.transactions._transaction_store import put_transaction
from trionet.errors import ApiError

IDS = ("a", "b")
PARTITIONS: tuple[Partition, ...] = (("t", 0), ("t", 1), ("u", 0))
GROUP = "g"

Step = tuple[Any, ...]

id_ = st.sampled_from(IDS)
partition = st.sampled_from(PARTITIONS)
is_new = st.sampled_from([True, True, True, True, False])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("init"), id_, st.booleans()),
        st.tuples(st.just("add"), id_, partition, is_new),
        st.tuples(st.just("produce"), id_, partition, st.booleans(), is_new),
        st.tuples(st.just("produce"), id_, partition, st.booleans(), is_new),
        st.tuples(st.just("produce"), id_, partition, st.booleans(), is_new),
        st.tuples(st.just("offsets"), id_, partition, st.booleans()),
        st.tuples(st.just("end"), id_, st.booleans(), st.sampled_from([TV1, TV2]), is_new),
        st.tuples(st.just("end"), id_, st.booleans(), st.sampled_from([TV1, TV2]), is_new),
        st.tuples(st.just("commit")),
        st.tuples(st.just("commit")),
        st.tuples(st.just("commit")),
        st.tuples(st.just("kill"), st.sampled_from(["before", "after"])),
        st.tuples(st.just("kill"), st.integers(0, 3)),
        st.tuples(st.just("leader"), partition, st.booleans()),
        st.tuples(st.just("retry")),
        st.tuples(st.just("timeout")),
        st.tuples(st.just("level"), st.sampled_from([TV1, TV2])),
    ),
    min_size=20,
    max_size=80,
)


@attrs.define
class Decision:
    """What was decided, until it is stored: then it holds for ever."""

    id: str
    is_commit: bool
    records: set[bytes]
    offsets: dict[Partition, tuple[int, int]]


class Model:
    """Which records and offsets are decided, and how.

    Attributes:
        open: the records of each id that no decision covers.
        pending: the offsets of each id that no decision covers.
        fates: the decided records.
        offsets: the committed offsets of the group, with their numbers.
        last: the last decision of each id.
        queue: the effects of the writes that are queued.
    """

    def __init__(self) -> None:
        self.open: dict[str, set[bytes]] = {id: set() for id in IDS}
        self.pending: dict[str, dict[Partition, tuple[int, int]]] = {id: {} for id in IDS}
        self.fates: dict[bytes, bool] = {}
        self.offsets: dict[Partition, tuple[int, int]] = {}
        self.last: dict[str, bool] = {}
        self.queue: list[Callable[[], None]] = []
        self.deciding: list[Decision] = []
        self.numbers = itertools.count(1)

    def decide(self, id: str, is_commit: bool) -> Callable[[], None]:
        decision = Decision(id, is_commit, self.open[id], {})
        self.open[id] = set()
        self.deciding.append(decision)

        def stored() -> None:
            self.deciding.remove(decision)
            self.fates.update(dict.fromkeys(decision.records, is_commit))
            self.last[id] = is_commit
            pending, self.pending[id] = self.pending[id], {}
            if is_commit:
                for key, (number, offset) in pending.items():
                    if number > self.offsets.get(key, (0, 0))[0]:
                        self.offsets[key] = number, offset

        return stored

    def commit(self) -> None:
        queue, self.queue = self.queue, []
        for effect in queue:
            effect()

    def lose(self) -> None:
        """The writes that are queued never happen."""
        self.queue.clear()
        for decision in self.deciding:
            self.open[decision.id] |= decision.records
        self.deciding.clear()


class Life:
    """One course of events."""

    def __init__(
        self,
        database: Database,
        directories: Mapping[Partition, Directory],
        ids: Iterator[int],
        nursery: trio.Nursery,
        model: Model,
    ) -> None:
        self.rig = Transacting(database, directories, nursery, ids=ids)
        self.model = model

    async def start(self) -> None:
        await self.rig.start()
        self.note()

    def note(self, effect: Callable[[], None] | None = None) -> None:
        """Remember the effect of a write that was queued; those that follow have none."""
        queued = len(self.rig.writes._queue) - len(self.model.queue)
        assert queued >= (effect is not None)
        effects = [] if effect is None else [effect]
        self.model.queue += [*effects, *([lambda: None] * (queued - len(effects)))]

    def producer(self, id: str, is_new: bool) -> tuple[int, int] | None:
        """The current producer, or the one that it has replaced."""
        transaction = self.rig.coordinator.transactions.get(id)
        if transaction is None or transaction.current is None:
            return None
        current = transaction.current
        if is_new:
            return current.identity
        if current.producer_epoch == 0:
            return current.ended_producer_id, EXHAUSTED
        return current.producer_id, current.producer_epoch - 1

    def is_deciding(self, id: str) -> bool:
        return self.rig.coordinator.transactions[id].storing in PREPARED

    # Steps.

    async def init(self, id: str, is_new_instance: bool) -> None:
        expected = None if is_new_instance else self.producer(id, True)
        was_deciding = id in self.rig.coordinator.transactions and self.is_deciding(id)
        await (self.rig.init(id) if expected is None else self.rig.init(id, expected))
        fences = self.is_deciding(id) and not was_deciding
        self.note(self.model.decide(id, False) if fences else None)

    async def add(self, id: str, partition: Partition, is_new: bool) -> None:
        producer = self.producer(id, is_new)
        if producer is not None:
            self.rig.add(id, producer, partition, groups=[partition_of(GROUP)])
            assert is_new

    async def produce(self, id: str, partition: Partition, adds: bool, is_new: bool) -> None:
        producer = self.producer(id, is_new)
        if producer is None:
            return
        value = b"%s %d" % (id.encode(), next(_values))
        self.rig.produce(id, producer, partition, value, adds=adds)
        assert is_new, "a producer that was replaced has written"
        self.model.open[id].add(value)

    async def offsets(self, id: str, partition: Partition, adds: bool) -> None:
        producer = self.producer(id, True)
        if producer is None:
            return
        number = next(self.model.numbers)
        self.rig.offsets(id, producer, GROUP, {partition: number}, adds=adds)

        def stored() -> None:
            self.model.pending[id][partition] = number, number

        self.note(stored)

    async def end(self, id: str, commit: bool, version: int, is_new: bool) -> None:
        producer = self.producer(id, is_new)
        if producer is None:
            return
        asked = await self.rig.end(id, producer, commit=commit, version=version)
        if asked.answers:
            assert self.model.last[id] == commit, "a repeated end with another outcome"
        else:
            assert is_new, "a producer that was replaced has decided"
            self.note(self.model.decide(id, commit))

    async def commit(self) -> None:
        self.model.commit()
        await self.rig.commit()

    async def kill(self, how: str | int) -> None:
        if how == "before":
            self.model.lose()
        else:
            self.model.commit()
            self.rig.kill_after = how if isinstance(how, int) else None
            await self.rig.commit(reports=isinstance(how, int))
            self.note()
            self.model.lose()
        raise Killed

    async def leader(self, partition: Partition, is_there: bool) -> None:
        self.rig.logs[partition].leader_id = LEADER if is_there else NO_LEADER

    async def retry(self) -> None:
        await self.rig.coordinator.retry_markers()

    async def timeout(self) -> None:
        self.rig.now_ms += 100_000
        before = {id for id in self.rig.coordinator.transactions if self.is_deciding(id)}
        queued = len(self.rig.writes._queue)
        await self.rig.coordinator.abort_overdue()
        aborted = [
            id
            for id in self.rig.coordinator.transactions
            if self.is_deciding(id) and id not in before
        ]
        assert len(self.rig.writes._queue) == queued + len(aborted)
        self.model.queue += [self.model.decide(id, False) for id in aborted]

    async def level(self, level: int) -> None:
        self.rig.level = level

    async def run(self, step: Step) -> None:
        name, *arguments = step
        try:
            await getattr(self, name)(*arguments)
        except ApiError:
            pass
        self.note()

    # Checks.

    def check(self) -> None:
        """At any time: nothing undecided is visible, and nothing says the opposite."""
        for key, log in self.rig.logs.items():
            fates = self.rig.fates(key)
            for value, fate in fates.items():
                if fate is not None:
                    assert self.model.fates.get(value) is fate, value
            first = min(log.open_transactions.values(), default=log.end_offset)
            assert log.last_stable_offset <= first
            assert any(fate is None for fate in fates.values()) == bool(log.open_transactions)

    async def settle(self) -> None:
        """When nothing is in the way any more, every decision is carried out."""
        for log in self.rig.logs.values():
            log.leader_id = LEADER
        while self.rig.writes._queue:
            await self.commit()
        await self.rig.coordinator.retry_markers()
        self.check()
        for key in PARTITIONS:
            expected = {value: self.model.fates.get(value) for value in self.rig.fates(key)}
            assert expected == self.rig.fates(key)
        written = {value for key in PARTITIONS for value in self.rig.fates(key)}
        assert set().union(self.model.fates, *self.model.open.values()) == written
        assert {} == self.rig.coordinator.unfinished
        self.check_offsets()

    def check_offsets(self) -> None:
        committed = {key: offset for key, (_, offset) in self.model.offsets.items()}
        assert committed == self.rig.committed(GROUP)
        pending = {key for each in self.model.pending.values() for key in each}
        assert pending == self.rig.unstable(GROUP)

    async def finish(self) -> None:
        """A new instance of each producer leaves nothing open."""
        await self.settle()
        for id in IDS:
            for _ in range(2):
                await self.run(("init", id, True))
                await self.settle()
            assert TransactionState.EMPTY is self.rig.state(id)
        for log in self.rig.logs.values():
            assert {} == log.open_transactions
            assert log.end_offset == log.last_stable_offset
        assert not any(self.model.open.values())


_values = itertools.count()


async def play(folder: Path, course: list[Step], epoch: int) -> None:
    directories = {
        (topic, number): FolderDirectory(folder / f"{topic}-{number}")
        for topic, number in PARTITIONS
    }
    ids = itertools.count(1000)
    model = Model()
    at = 0
    async with open_database(str(folder / DATABASE_NAME)) as database:
        for id in IDS if epoch else ():
            stored = StoredTransaction(
                producer_id=next(ids), producer_epoch=epoch, timeout_ms=60_000, changed_at_ms=0
            )
            await database.transaction_in_steps(put_transaction(id, stored))
    while True:
        async with (
            open_database(str(folder / DATABASE_NAME)) as database,
            trio.open_nursery() as nursery,
        ):
            life = Life(database, directories, ids, nursery, model)
            await life.start()
            life.check()
            try:
                while at < len(course):
                    at += 1
                    await life.run(course[at - 1])
                    life.check()
            except Killed:
                continue
            await life.finish()
            return


def run(course: list[Step], epoch: int = 0) -> None:
    memory = Path("/dev/shm")
    where = memory if memory.is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        trio.run(play, Path(folder), course, epoch)


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(course=steps, epoch=st.sampled_from([0, 0, EXHAUSTED - 1]))
def test_what_was_decided_is_what_the_markers_say(course: list[Step], epoch: int) -> None:
    run(course, epoch)


TV1_THEN_TV2: list[Step] = [
    ("init", "a", True),
    ("commit",),
    ("add", "a", ("t", 0), True),
    ("commit",),
    ("produce", "a", ("t", 0), False, True),
    ("end", "a", True, TV1, True),
    ("commit",),
    ("produce", "a", ("t", 0), True, True),
    ("produce", "a", ("t", 0), True, True),
    ("commit",),
    ("produce", "a", ("t", 0), True, True),
    ("kill", "before"),
]


def test_a_client_may_change_to_the_new_protocol_without_a_new_epoch() -> None:
    """Its next records have the epoch of a decision, and must not become part of it by a kill."""
    run(TV1_THEN_TV2)
