"""A TransactionCoordinator with real logs and a real database, and its requests in short.

Nothing runs by itself: :meth:`Transacting.commit` stores the queued writes and calls their
callbacks, so that a test decides what happens in between, and where the broker is killed.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from support.coordinating import Asked
from support.logs import batch, stored
from trionet.broker.groups._committed_offsets import CommittedOffset
from trionet.broker.groups._group_store import GroupStore
from trionet.broker.log import Directory, Log, LogConfig
from trionet.broker.storage._database import Database, DatabaseError
from trionet.broker.storage._write_queue import WriteQueue, _report, chain
from trionet.broker.transactions._transaction import (
    NO_IDENTITY,
    NO_PRODUCER,
    TV1,
    TV2,
    ProducerIdAndEpoch,
    StoredTransaction,
    TransactionState,
)
from trionet.broker.transactions._transaction_coordinator import TransactionCoordinator
from trionet.errors import ApiError
from trionet.protocol import error_codes
from trionet.protocol.records._batch import iter_batches
from trionet.protocol.records._records import decode_batch, read_marker

LEADER, NO_LEADER = 1, -1
TIMEOUT_MS = 60_000
START_MS = 1_700_000_000_000

Partition = tuple[str, int]


class Killed(BaseException):
    """The process is killed at this line."""


class Transacting:
    """A coordinator after a start of the broker.

    Attributes:
        now_ms: the time.
        level: the feature level.
        leader_epoch: the epoch of the coordinator's leader.
        announced: the logs whose appended bytes were announced to fetches.
        kill_after: the number of markers after which ``kill_with`` is raised; None for never.
        kill_with: an exception, which ends the process unless another is named.
    """

    def __init__(
        self,
        database: Database,
        directories: Mapping[Partition, Directory],
        nursery: trio.Nursery,
        *,
        ids: Iterable[int],
        now_ms: int = START_MS,
        level: int = TV2,
        config: LogConfig | None = None,
    ) -> None:
        self.database = database
        self.now_ms = now_ms
        self.level = level
        self.writes = WriteQueue(database)
        self.store = GroupStore(database, self.writes)
        self.logs: dict[Partition, Log] = {
            key: Log(
                directory,
                config,
                topic=key[0],
                partition=key[1],
                topic_id=key[0].encode().ljust(16),
                now_ms=now_ms,
            )
            for key, directory in directories.items()
        }
        for log in self.logs.values():
            log.leader_id = LEADER
        self.leader_epoch = 0
        self.announced: list[Log] = []
        self.kill_after: int | None = None
        self.kill_with: type[BaseException] = Killed
        self._ids = iter(ids)
        self.coordinator = TransactionCoordinator(
            database,
            self.writes,
            self.store,
            self.logs,
            nursery,
            appended=self._appended,
            next_producer_id=self._next_id,
            coordinator_epoch=lambda _: self.coordinator.last_epoch + 1 + self.leader_epoch,
            level=lambda: self.level,
            now_ms=lambda: self.now_ms,
        )

    async def start(self) -> None:
        _, offsets = await self.store.load()
        for group, committed in offsets.items():
            self.store.offsets.put(group, committed)
        await self.coordinator.restore()

    async def _next_id(self) -> int:
        await trio.lowlevel.checkpoint()
        return next(self._ids)

    def _appended(self, log: Log, size: int) -> None:
        self.announced.append(log)
        if self.kill_after is not None:
            self.kill_after -= 1
            if self.kill_after < 0:
                raise self.kill_with

    # The database.

    async def commit(self, *, reports: bool = True) -> DatabaseError | None:
        """Store what is queued in one transaction; ``reports=False``: but call no callback."""
        queue, self.writes._queue = self.writes._queue, []
        if not queue:
            await trio.lowlevel.checkpoint()
            return None
        error = await self.writes._commit([chain(*(each.statements for each in queue))])
        if reports:
            for each in queue:
                _report(each, error)
        return error

    async def settle(self) -> None:
        """Store everything, and write all markers that can be written."""
        while self.writes._queue:
            await self.commit()
        await self.coordinator.retry_markers()

    # Requests. A result is an identity or an error; None while it waits for the database.

    async def new_id(self, id: str) -> int:
        return await self.coordinator.producer_id_for(id)

    async def init(
        self, id: str, expected: tuple[int, int] = NO_IDENTITY
    ) -> Asked[ProducerIdAndEpoch | ApiError]:
        asked = Asked[ProducerIdAndEpoch | ApiError]()
        new_id = await self.new_id(id)
        self.coordinator.initialize(id, TIMEOUT_MS, ProducerIdAndEpoch(*expected), new_id, asked)
        return asked

    async def initialized(self, id: str, epoch: int | None = None) -> ProducerIdAndEpoch:
        """Have a producer; with an epoch if that is important."""
        asked = await self.init(id)
        await self.commit()
        identity = await asked.answer()
        assert isinstance(identity, ProducerIdAndEpoch)
        if epoch is not None:
            transaction = self.coordinator.transactions[id]
            assert transaction.current is not None
            identity = ProducerIdAndEpoch(identity.producer_id, epoch)
            transaction.current = _with_epoch(transaction.current, epoch)
        return identity

    def add(
        self,
        id: str,
        producer: tuple[int, int],
        *partitions: Partition,
        groups: Iterable[int] = (),
        version: int = TV1,
    ) -> Asked[ApiError | None]:
        asked = Asked[ApiError | None]()
        logs = [self.logs[each] for each in partitions]
        self.coordinator.add(id, ProducerIdAndEpoch(*producer), logs, list(groups), version, asked)
        return asked

    def produce(
        self, id: str, producer: tuple[int, int], partition: Partition, value: bytes, *, adds: bool
    ) -> int:
        """Append a record in a transaction, whose sequence number is the next; its offset."""
        log = self.logs[partition]
        if log.leader_id == NO_LEADER:
            raise ApiError(error_codes.NOT_LEADER_OR_FOLLOWER, "no leader")
        version = self.coordinator.check_batch(id, *producer, log, adds_partition=adds)
        entry = log.producers.get(producer[0])
        sequence = entry.last_sequence + 1 if entry and entry.epoch == producer[1] else 0
        data = batch(value=value, producer=(*producer, sequence), transactional=True)
        return log.append(data, self.now_ms, version).first_offset

    def offsets(
        self,
        id: str,
        producer: tuple[int, int],
        group: str,
        offsets: Mapping[Partition, int],
        *,
        adds: bool = True,
    ) -> Asked[int]:
        """A TxnOffsetCommit."""
        asked = Asked[int]()
        self.coordinator.check_offsets(id, *producer, group, adds_group=adds)
        committed = {
            key: CommittedOffset(offset, -1, "", self.now_ms) for key, offset in offsets.items()
        }
        self.store.pend(producer[0], group, committed, asked)
        return asked

    async def end(
        self, id: str, producer: tuple[int, int], *, commit: bool = True, version: int = TV2
    ) -> Asked[ProducerIdAndEpoch | ApiError]:
        asked = Asked[ProducerIdAndEpoch | ApiError]()
        new_id = await self.new_id(id) if version == TV2 else NO_PRODUCER
        self.coordinator.end(
            id,
            ProducerIdAndEpoch(*producer),
            is_commit=commit,
            version=version,
            new_producer_id=new_id,
            done=asked,
        )
        return asked

    # What there is.

    def state(self, id: str) -> TransactionState:
        return self.coordinator.transactions[id].state

    def identity(self, id: str) -> ProducerIdAndEpoch:
        current = self.coordinator.transactions[id].current
        assert current is not None
        return current.identity

    def fates(self, partition: Partition) -> dict[bytes, bool | None]:
        """Each record of a log: whether its marker commits it; None if it has no marker."""
        fates: dict[bytes, bool | None] = {}
        is_open: dict[int, list[bytes]] = {}
        data = stored(self.logs[partition])
        for position, header in iter_batches(data):
            whole = data[position : position + header.size]
            if header.is_control:
                [record] = decode_batch(whole)
                marker = read_marker(record[2], record[3])
                assert marker is not None
                for value in is_open.pop(header.producer_id, ()):
                    fates[value] = marker.is_commit
            elif header.is_transactional:
                for record in decode_batch(whole):
                    assert record[3] is not None
                    fates[record[3]] = None
                    is_open.setdefault(header.producer_id, []).append(record[3])
        return fates

    def committed(self, group: str) -> dict[Partition, int]:
        return {key: each.offset for key, each in self.store.offsets.of(group).items()}

    def unstable(self, group: str) -> set[Partition]:
        return set(self.store.pending.of(group))


def _with_epoch(stored: StoredTransaction, epoch: int) -> StoredTransaction:
    return attrs.evolve(stored, producer_epoch=epoch)


@asynccontextmanager
async def transacting(
    database: Database,
    directories: Mapping[Partition, Directory],
    *,
    ids: Iterable[int] | None = None,
    **settings: Any,
) -> AsyncIterator[Transacting]:
    """A coordinator that has started; nothing is closed at the end, as after a kill."""
    async with trio.open_nursery() as nursery:
        rig = Transacting(
            database, directories, nursery, ids=ids or itertools.count(1000), **settings
        )
        await rig.start()
        yield rig
        nursery.cancel_scope.cancel()
