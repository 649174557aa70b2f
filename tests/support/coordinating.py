"""A running GroupCoordinator with a database of its own, and calls to it that can be waited for."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import trio

from support.groups import RANGE
from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.groups._committed_offsets import CommittedOffset, Partition
from trionet.broker.groups._group import GroupState
from trionet.broker.groups._group_coordinator import GroupCoordinator
from trionet.broker.groups._group_store import GroupStore
from trionet.broker.groups._members import Caller, Join
from trionet.broker.storage._database import IN_MEMORY, Database, open_database
from trionet.broker.storage._write_queue import WriteQueue
from trionet.protocol.messages.join_group import JoinGroupResponse
from trionet.protocol.messages.sync_group import SyncGroupResponse

T = TypeVar("T")

EPOCH_MS = 1_700_000_000_000
NO_MEMBER = Caller("", None, -1)


class Asked(Generic[T]):
    """Where the response to a call goes; called once, and may be waited for."""

    def __init__(self) -> None:
        self.answers: list[T] = []
        self._has_come = trio.Event()

    def __call__(self, answer: T) -> None:
        assert not self.answers, f"{answer} comes after {self.answers}"
        self.answers.append(answer)
        self._has_come.set()

    async def answer(self) -> T:
        await self._has_come.wait()
        return self.answers[0]


class Coordinating:
    """The coordinator of a test, and the calls of its clients in short."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        database: Database,
        store: GroupStore,
        writes: WriteQueue,
    ) -> None:
        self.coordinator = coordinator
        self.database = database
        self.store = store
        self.writes = writes

    def join(
        self,
        id: str = "",
        *,
        group: str = "g",
        instance: str | None = None,
        protocols: Mapping[str, bytes] = RANGE,
        session: float = 10.0,
        rebalance: float = 60.0,
        must_know_id: bool = False,
    ) -> Asked[JoinGroupResponse]:
        asked = Asked[JoinGroupResponse]()
        join = Join(id, instance, "c", "", session, rebalance, "consumer", protocols, must_know_id)
        self.coordinator.join(group, join, asked)
        return asked

    def sync(
        self,
        answer: JoinGroupResponse,
        assignments: Mapping[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
    ) -> Asked[SyncGroupResponse]:
        """A SyncGroup of who has joined with this answer."""
        asked = Asked[SyncGroupResponse]()
        caller = Caller(answer.member_id, instance, answer.generation_id)
        self.coordinator.sync(group, caller, (None, None), assignments or {}, asked)
        return asked

    def heartbeat(
        self, answer: JoinGroupResponse, *, group: str = "g", instance: str | None = None
    ) -> int:
        caller = Caller(answer.member_id, instance, answer.generation_id)
        return self.coordinator.heartbeat(group, caller)

    def commit(
        self,
        *offsets: tuple[str, int, int],
        group: str = "g",
        caller: Caller = NO_MEMBER,
        expires_at_ms: int | None = None,
    ) -> Asked[int]:
        """An OffsetCommit of topics, partitions and offsets."""
        asked = Asked[int]()
        now_ms = self.coordinator._now_ms()
        committed = {
            (topic, partition): CommittedOffset(offset, -1, "", now_ms, expires_at_ms)
            for topic, partition, offset in offsets
        }
        self.coordinator.commit(group, caller, committed, asked)
        return asked

    def delete(self, group: str = "g") -> Asked[int]:
        asked = Asked[int]()
        self.coordinator.delete(group, asked)
        return asked

    async def stable(
        self, group: str = "g", *, instance: str | None = None, **join: Any
    ) -> JoinGroupResponse:
        """Have a group with one member that has its assignment; its answer."""
        answer = await self.join(group=group, instance=instance, **join).answer()
        synced = self.sync(answer, {answer.member_id: b"assigned"}, group=group, instance=instance)
        assert (
            SyncGroupResponse(
                protocol_type="consumer", protocol_name="range", assignment=b"assigned"
            )
            == await synced.answer()
        )
        return answer

    def state(self, group: str = "g") -> GroupState | None:
        """The state of a group; None if there is none."""
        known = self.coordinator.groups.get(group)
        return None if known is None else known.state

    def offsets(self, group: str = "g") -> dict[Partition, int]:
        return {
            partition: each.offset for partition, each in self.coordinator.offsets.of(group).items()
        }

    @asynccontextmanager
    async def broken(self, table: str) -> AsyncIterator[None]:
        """A block in which no write to a table succeeds."""
        await self.database.transaction(lambda c: _rename(c, table, "gone"))
        yield
        await self.database.transaction(lambda c: _rename(c, "gone", table))


def _rename(connection: sqlite3.Connection, old: str, new: str) -> None:
    connection.execute(f"ALTER TABLE {old} RENAME TO {new}")


def virtual_ms() -> int:
    """The time by trio's clock, which tests may let jump."""
    return EPOCH_MS + round(trio.current_time() * 1000)


@asynccontextmanager
async def coordinating(
    path: str = IN_MEMORY, *, now_ms: Callable[[], int] = virtual_ms, **settings: object
) -> AsyncIterator[Coordinating]:
    """A coordinator that runs until the block ends; without a delay if none is set."""
    async with (
        open_database(path) as database,
        coordinating_in(database, now_ms=now_ms, **settings) as it,
    ):
        yield it


@asynccontextmanager
async def coordinating_in(
    database: Database, *, now_ms: Callable[[], int] = virtual_ms, **settings: object
) -> AsyncIterator[Coordinating]:
    """The same in a database that is open."""
    given = {"group.initial.rebalance.delay.ms": 0, **settings}
    config = BrokerConfig.from_settings(
        {key.replace("_", "."): value for key, value in given.items()}
    )
    async with trio.open_nursery() as nursery:
        writes = WriteQueue(database)
        store = GroupStore(database, writes)
        coordinator = GroupCoordinator(config, store, now_ms)
        await coordinator.load()
        _start(coordinator, writes, nursery)
        yield Coordinating(coordinator, database, store, writes)
        nursery.cancel_scope.cancel()


def _start(coordinator: GroupCoordinator, writes: WriteQueue, nursery: trio.Nursery) -> None:
    """Run it, soon: what it is asked for before waits until then."""
    nursery.start_soon(coordinator.run)
    nursery.start_soon(writes.run)
