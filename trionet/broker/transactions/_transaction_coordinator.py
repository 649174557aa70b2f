"""The transaction coordinator: carries out the transitions of transactional ids.

(Kafka: TransactionCoordinator, TransactionStateManager, TransactionMarkerChannelManager and
AddPartitionsToTxnManager; KIP-98, KIP-890.)

The problem: in Kafka, the coordinator and the leaders of the partitions are different machines.
Each leader asks the coordinator, before the first batch of a transaction, whether the partition
belongs to it; the coordinator sends requests with the markers at the end; and guards on both sides
catch what happens in between.

The choice: all logs of the cluster are in this process, so all of that is a plain call. The *logs*
are the truth about which partitions a transaction has written to. The database only stores who may
write, and what was decided.

* Every transition is computed by :class:`.Transaction`, then stored, then applied, in the callback
  of the write queue. In between, the transaction is busy. No handler waits.
* When a decision is stored, the callback writes the markers of all partitions and responds, without
  a checkpoint. So a client that gets the response to its commit can read what it committed, which
  Kafka does not guarantee.
* A marker that cannot be written (the partition has no leader, the disk is full) is retried. The
  client gets its response anyway, since the decision is stored, but its next transaction must wait.
* The offsets of a transaction become committed offsets in the same database transaction as the
  decision.

Rejected: storing which partitions take part in each transaction, as Kafka does. It would cost a
synced write per transaction, and could disagree with the logs.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final

import trio

from ..._util._logging import get_logger
from ...errors import ApiError
from ...protocol import error_codes
from ..config._limit import UNLIMITED, Limit
from ..groups._group_store import GroupStore
from ..groups._offsets_partition import partition_of
from ..log import Appended, Log
from ..storage._database import Database, DatabaseError
from ..storage._storage_errors import commit_error
from ..storage._write_queue import Statements, WriteQueue, chain
from ._transaction import (
    EXHAUSTED,
    NO_PRODUCER,
    PREPARED,
    TV1,
    TV2,
    ProducerIdAndEpoch,
    StoredTransaction,
    Transaction,
    TransactionState,
    unknown_id,
)
from ._transaction_store import load_transactions, put_transaction, remove_transactions

logger = get_logger("trionet.broker")

MARKERS_AT_ONCE: Final = 100
"""How many markers are written before other tasks run; a marker takes 20 µs."""

SCANNED_AT_ONCE: Final = 1000
"""How many transactional ids are looked at before other tasks run."""

FAILURES_LOGGED_MAX: Final = 3
"""How many markers that cannot be written have a line of their own; a transaction may have
thousands, which fail for the same reason."""

NO_LEADER: Final = -1

_WHAT: Final = "transactional ids"

_NOT_WRITTEN: Final = "%s-%d: cannot write the marker of transaction %r: %s"
_NOT_FLUSHED: Final = "%s-%d: cannot flush the marker of transaction %r: %s"

Done = Callable[[ApiError | None], None]
"""Called when a request is complete, with the error or None."""

DoneWith = Callable[[ProducerIdAndEpoch | ApiError], None]
"""Called when a request is complete, with the producer id and epoch to use next, or the error."""


class TransactionCoordinator:
    """The transactions of a cluster, shared by its nodes.

    Args:
        database: stores the transactional ids.
        writes: the queue of writes to the database.
        group_store: the offsets that transactions commit.
        logs: the logs of all partitions.
        nursery: runs tasks that write many markers or wait for a flush.
        appended: called after records or markers were appended to a log.
        next_producer_id: allocates a producer id.
        coordinator_epoch: returns the epoch of the coordinator of an id, which markers contain.
        level: returns the feature level of ``transaction.version``.
        now_ms: returns the current time.
        limit: how many ids there may be; without it, any number.

    Attributes:
        transactions: all transactional ids.
        unfinished: the decided transactions with missing markers.
        last_epoch: the greatest coordinator epoch of any marker in the logs when they were opened.
        on_change: called after the state of a transaction has changed; for tests.
        held: the ids whose markers are held back, or None for all ids; for tests.
    """

    def __init__(
        self,
        database: Database,
        writes: WriteQueue,
        group_store: GroupStore,
        logs: Mapping[tuple[str, int], Log],
        nursery: trio.Nursery,
        *,
        appended: Callable[[Log, int], None],
        next_producer_id: Callable[[], Awaitable[int]],
        coordinator_epoch: Callable[[str], int],
        level: Callable[[], int],
        now_ms: Callable[[], int],
        limit: Limit | None = None,
    ) -> None:
        self.transactions: dict[str, Transaction[Log]] = {}
        self.unfinished: dict[str, Transaction[Log]] = {}
        self.last_epoch = -1
        # What was ongoing at the start, by the ids whose decided transactions lack markers.
        self._to_resume: dict[str, list[Log]] = {}
        self._has_missing = trio.Event()
        self.on_change: Callable[[], None] = lambda: None
        self.held: list[str | None] = []
        self._database = database
        self._writes = writes
        self._group_store = group_store
        self._logs = logs
        self._nursery = nursery
        self._appended = appended
        self._next_producer_id = next_producer_id
        self._coordinator_epoch = coordinator_epoch
        self._level = level
        self._now_ms = now_ms
        self._limit = limit or Limit("max.transactional.ids", UNLIMITED)

    # Requests of producers.

    async def producer_id_for(self, id: str) -> int:
        """Return a new producer id if a request for a transactional id may need one; else -1.

        Raises:
            ApiError: the database cannot be written, or there are too many transactional ids.
        """
        transaction = self.transactions.get(id)
        if transaction is None:
            self._check_limit(id)  # before a producer id is used up
        current = None if transaction is None else transaction.current
        if current is not None and current.producer_epoch < EXHAUSTED:
            return NO_PRODUCER
        return await self._next_producer_id()

    def initialize(
        self,
        id: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch,
        new_producer_id: int,
        done: DoneWith,
    ) -> None:
        """Give a producer an epoch that fences all others with the same transactional id.

        An ongoing transaction is aborted; the caller must then repeat the request.

        Args:
            id: the transactional id.
            timeout_ms: how long a transaction of the producer may last.
            expected: see :meth:`.Transaction.initialized`.
            new_producer_id: the result of :meth:`producer_id_for`.
            done: called with the result.

        Raises:
            ApiError: the request is not allowed.
        """
        transaction = self._get_or_create(id)
        now_ms = self._now_ms()
        following = transaction.initialized(expected, timeout_ms, new_producer_id, now_ms)
        if following is not None:
            self._store(transaction, following, partial(_report, following.identity, done))
            return

        def aborted(error: ApiError | None) -> None:
            done(
                error
                or ApiError(
                    error_codes.CONCURRENT_TRANSACTIONS,
                    f"the ongoing transaction of {id!r} was aborted; repeat the request",
                )
            )

        self._decide(
            transaction, transaction.fenced(self._level(), new_producer_id, now_ms), aborted
        )

    def add(
        self,
        id: str,
        producer: ProducerIdAndEpoch,
        logs: Collection[Log],
        offsets_partitions: Collection[int],
        version: int,
        done: Done,
    ) -> None:
        """Add partitions to a transaction, which begins unless it is ongoing.

        Args:
            id: the transactional id.
            producer: the producer id and epoch of the request.
            logs: the logs of the partitions.
            offsets_partitions: partitions of ``__consumer_offsets``.
            version: the protocol that the client supports.
            done: called when the partitions are stored.

        Raises:
            ApiError: the request is not allowed.
        """
        transaction = self._get(id)
        transaction.check_producer(*producer)
        if (
            transaction.state is TransactionState.ONGOING
            and transaction.partitions.keys() >= set(logs)
            and transaction.offsets_partitions.issuperset(offsets_partitions)
        ):
            done(None)
            return
        self._store_ongoing(transaction, logs, offsets_partitions, version, done)

    def _store_ongoing(
        self,
        transaction: Transaction[Log],
        logs: Collection[Log],
        offsets_partitions: Collection[int],
        version: int,
        done: Done,
    ) -> None:
        following = transaction.ongoing(
            version,
            self._now_ms(),
            [(log.topic_id, log.partition) for log in logs],
            offsets_partitions,
        )

        def stored(error: ApiError | None) -> None:
            if error is None:
                transaction.partitions.update(dict.fromkeys(filter(self._is_current, logs)))
                transaction.offsets_partitions.update(offsets_partitions)
            done(error)

        self._store(transaction, following, stored)

    def check_added(self, id: str, producer: ProducerIdAndEpoch) -> Transaction[Log]:
        """Return a transaction for a request that only asks which partitions belong to it.

        Raises:
            ApiError: the request is not allowed.
        """
        transaction = self._get(id)
        transaction.check_undecided(*producer)
        return transaction

    def check_batch(
        self, id: str, producer_id: int, epoch: int, log: Log, *, adds_partition: bool
    ) -> int:
        """Check a transactional batch of a producer.

        Args:
            id: the transactional id.
            producer_id: the producer id of the batch.
            epoch: the producer epoch of the batch.
            log: the log to append to.
            adds_partition: whether the batch adds its partition to the transaction (KIP-890); if
                not, the partition must have been added.

        Returns:
            The protocol of the transaction, for :meth:`.Log.append`.

        Raises:
            ApiError: CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED or
                TRANSACTION_ABORTABLE.
        """
        transaction = self._get(id)
        if adds_partition:
            self._check_or_begin(transaction, producer_id, epoch)
            if log not in transaction.partitions:
                transaction.partitions[log] = None
                self.on_change()
            return TV2
        transaction.check_undecided(producer_id, epoch)
        if log not in transaction.partitions:
            raise _not_added(id)
        return TV1

    def check_offsets(
        self, id: str, producer_id: int, epoch: int, group_id: str, *, adds_group: bool
    ) -> None:
        """Check offsets that a producer commits in a transaction; see :meth:`check_batch`.

        Raises:
            ApiError: the offsets must be rejected.
        """
        number = partition_of(group_id)
        transaction = self._get(id)
        if adds_group:
            self._check_or_begin(transaction, producer_id, epoch)
            transaction.offsets_partitions.add(number)
            self.on_change()
            return
        transaction.check_undecided(producer_id, epoch)
        if number not in transaction.offsets_partitions:
            raise _not_added(id)

    def _check_or_begin(self, transaction: Transaction[Log], producer_id: int, epoch: int) -> None:
        transaction.check_producer(producer_id, epoch)
        if transaction.has_old_decision():
            # The client has changed from TV1 to TV2 without a new epoch, which no known client
            # does. The rest of the request is retried.
            self._store_ongoing(transaction, (), (), TV2, lambda _: None)
            transaction.check_producer(producer_id, epoch)
        if transaction.state is not TransactionState.ONGOING:
            transaction.begin(TV2, self._now_ms())

    def end(
        self,
        id: str,
        producer: ProducerIdAndEpoch,
        *,
        is_commit: bool,
        version: int,
        new_producer_id: int,
        done: DoneWith,
    ) -> None:
        """Commit or abort a transaction; see :meth:`.Transaction.ended`.

        Args:
            id: the transactional id.
            producer: the producer id and epoch of the request.
            is_commit: whether to commit rather than abort.
            version: the protocol of the request.
            new_producer_id: the result of :meth:`producer_id_for`.
            done: called when the decision is stored and, normally, all markers are written.

        Raises:
            ApiError: the request is not allowed.
        """
        transaction = self._get(id)
        following = transaction.ended(
            producer,
            is_commit=is_commit,
            version=version,
            new_producer_id=new_producer_id,
            now_ms=self._now_ms(),
        )
        if following is None:
            assert transaction.current is not None, "it was ended before"
            done(transaction.current.identity)
            return
        self._decide(transaction, following, partial(_report, following.identity, done))

    # Transitions.

    def _get(self, id: str) -> Transaction[Log]:
        transaction = self.transactions.get(id)
        if transaction is None:
            raise unknown_id(id)
        return transaction

    def _get_or_create(self, id: str) -> Transaction[Log]:
        transaction = self.transactions.get(id)
        if transaction is None:
            self._check_limit(id)
            transaction = self.transactions[id] = Transaction(id)
        return transaction

    def _check_limit(self, new_id: str) -> None:
        error = self._limit.error(len(self.transactions), f"transactional id {new_id!r}")
        if error is not None:
            raise error

    def _store(
        self,
        transaction: Transaction[Log],
        following: StoredTransaction,
        done: Done,
        also: Statements | None = None,
    ) -> None:
        """Store a transition, and then apply it and call ``done``."""

        def stored(error: DatabaseError | None) -> None:
            transaction.storing = None
            if error is None:
                transaction.current = following
                done(None)
            else:
                if transaction.current is None:  # a new id
                    self.transactions.pop(transaction.id, None)
                done(ApiError(commit_error(error), str(error)))
            self.on_change()

        transaction.storing = following.state
        statements = put_transaction(transaction.id, following)
        if also is not None:
            statements = chain(statements, also)
        self._writes.write(statements, stored, what=_WHAT)

    def _decide(
        self, transaction: Transaction[Log], following: StoredTransaction, done: Done
    ) -> None:
        """Store a decision, write its markers, and then call ``done``."""
        is_commit = following.state is TransactionState.PREPARE_COMMIT
        producer_id = following.ended_producer_id
        has_offsets = bool(transaction.offsets_partitions)

        def stored(error: ApiError | None) -> None:
            if error is not None:
                done(error)
                return
            # First, so that whatever happens below is retried.
            self.unfinished[transaction.id] = transaction
            if has_offsets:
                self._group_store.pending_ended(producer_id, is_commit)
            self._finish(transaction, done)

        also = self._group_store.end_pending(producer_id, is_commit) if has_offsets else None
        self._store(transaction, following, stored, also)

    # Markers.

    def _finish(
        self, transaction: Transaction[Log], done: Done, level: int = logging.WARNING
    ) -> None:
        """Write the markers of a decided transaction, in a task if that takes long.

        Args:
            transaction: the transaction.
            done: called after all partitions were tried.
            level: the log level for markers that cannot be written.
        """
        failures = _Failures(transaction.id, level)
        if len(transaction.partitions) <= MARKERS_AT_ONCE:
            unflushed = self._write_markers(transaction, list(transaction.partitions), failures)
            if not unflushed:
                failures.log_count()
                self._settle(transaction)
                done(None)
                return
        else:
            unflushed = {}
        transaction.is_finishing = True
        self._nursery.start_soon(
            self._finish_slowly, transaction, unflushed, done, failures, name="transaction-markers"
        )

    async def _finish_slowly(
        self,
        transaction: Transaction[Log],
        unflushed: dict[Log, Appended],
        done: Done,
        failures: _Failures,
    ) -> None:
        try:
            if not unflushed:
                logs = list(transaction.partitions)
                for first in range(0, len(logs), MARKERS_AT_ONCE):
                    some = logs[first : first + MARKERS_AT_ONCE]
                    unflushed |= self._write_markers(transaction, some, failures)
                    await trio.lowlevel.checkpoint()
            async with trio.open_nursery() as nursery:
                for log, appended in unflushed.items():
                    nursery.start_soon(self._flush, transaction, log, appended, failures)
        except Exception:  # boundary: one transaction, whose markers are retried
            logger.exception("cannot finish transaction %r", transaction.id)
        failures.log_count()
        transaction.is_finishing = False
        self._settle(transaction)
        done(None)

    async def _flush(
        self, transaction: Transaction[Log], log: Log, appended: Appended, failures: _Failures
    ) -> None:
        try:
            await log.flush(appended.last_offset + 1)
        except ApiError as error:
            # A power failure could take the marker, so the decision must stay stored until another
            # one is on disk: after a restart, if the log is offline.
            failures.log(_NOT_FLUSHED, log, error)
            return
        transaction.partitions.pop(log, None)
        self._appended(log, appended.size)

    def _write_markers(
        self, transaction: Transaction[Log], logs: Iterable[Log], failures: _Failures
    ) -> dict[Log, Appended]:
        """Write markers; return those that must be flushed before the response.

        One that cannot be written does not prevent the others, and is retried.
        """
        decided = transaction.current
        assert decided is not None, "it was decided"
        if self._is_held(transaction):
            return {}
        is_commit = decided.state is TransactionState.PREPARE_COMMIT
        epoch = self._coordinator_epoch(transaction.id)
        unflushed: dict[Log, Appended] = {}
        for log in logs:
            if log.leader_id == NO_LEADER or log not in transaction.partitions:
                continue
            try:
                appended = log.append_marker(
                    decided.ended_producer_id,
                    decided.ended_epoch,
                    is_commit=is_commit,
                    # An administrator can have written a higher one, and there is no other
                    # coordinator that could fence this one.
                    coordinator_epoch=max(epoch, log.coordinator_epoch),
                    transaction_version=decided.version,
                    now_ms=self._now_ms(),
                )
                if log.must_flush:
                    unflushed[log] = appended
                    continue
                transaction.partitions.pop(log, None)
                self._appended(log, appended.size)
            except ApiError as error:
                failures.log(_NOT_WRITTEN, log, error)
                if error.error_code == error_codes.INVALID_PRODUCER_EPOCH:
                    # The transaction has ended here in another way: an administrator did it.
                    transaction.partitions.pop(log, None)
            except Exception:  # boundary: one marker
                failures.log(_NOT_WRITTEN, log, "unexpected error", has_traceback=True)
        return unflushed

    def _settle(self, transaction: Transaction[Log]) -> None:
        """Complete a decided transaction, unless markers are missing."""
        if (
            not transaction.partitions
            and transaction.state in PREPARED
            and not self._is_held(transaction)
        ):
            transaction.complete()
            self.unfinished.pop(transaction.id, None)
            ongoing = self._to_resume.pop(transaction.id, None)
            if ongoing is not None:
                self._resume(transaction, ongoing)
            self.on_change()
        elif transaction.state in PREPARED:
            self._has_missing.set()

    def _is_held(self, transaction: Transaction[Log]) -> bool:
        return bool(self.held) and (None in self.held or transaction.id in self.held)

    def release(self, id: str | None) -> None:
        """Stop holding the markers of an id, or of all ids, and write them; for tests."""
        self.held.remove(id)
        if self._nursery.cancel_scope.cancel_called:
            return  # the broker has stopped
        for transaction in list(self.unfinished.values()):
            if not transaction.is_finishing:
                self._finish(transaction, lambda _: None, logging.DEBUG)

    # Background work.

    async def wait_for_missing_markers(self) -> None:
        """Wait until markers could not be written; a broker without such has nothing to retry."""
        await self._has_missing.wait()
        self._has_missing = trio.Event()

    async def retry_markers(self) -> None:
        """Write the missing markers of decided transactions, where that is now possible."""
        await trio.lowlevel.checkpoint()
        for transaction in list(self.unfinished.values()):
            if transaction.id in self.unfinished and not transaction.is_finishing:
                # The first attempt was logged; the same again each second would hide other lines.
                self._finish(transaction, lambda _: None, logging.DEBUG)
                await trio.lowlevel.checkpoint()

    async def abort_overdue(self) -> None:
        """Abort the transactions that have lasted longer than their timeout.

        Raises:
            ApiError: the database cannot be written.
        """
        now_ms = self._now_ms()
        await self.abort_all(lambda each: each.is_due(now_ms))

    async def abort_all(self, is_due: Callable[[Transaction[Log]], bool]) -> list[str]:
        """Abort the ongoing transactions that are due; return their ids.

        Raises:
            ApiError: the database cannot be written.
        """
        aborted = []
        for transaction in await self._find(is_due):
            new_producer_id = await self.producer_id_for(transaction.id)
            if is_due(transaction):
                self.abort(transaction, new_producer_id, "it has reached its timeout")
                aborted.append(transaction.id)
            await trio.lowlevel.checkpoint()
        return aborted

    async def _find(self, is_wanted: Callable[[Transaction[Log]], bool]) -> list[Transaction[Log]]:
        """Return the transactions that meet a condition. Other tasks run in between."""
        found = []
        for number, transaction in enumerate(list(self.transactions.values())):
            if number % SCANNED_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            if is_wanted(transaction):
                found.append(transaction)
        return found

    def abort(self, transaction: Transaction[Log], new_producer_id: int, reason: str) -> None:
        """Abort an ongoing transaction and fence its producer."""
        logger.info("aborting transaction %r: %s", transaction.id, reason)
        decided = transaction.fenced(self._level(), new_producer_id, self._now_ms())

        def done(error: ApiError | None) -> None:
            if error is not None:
                logger.warning("cannot abort transaction %r: %s", transaction.id, error)

        self._decide(transaction, decided, done)

    async def expire(self, expiration_ms: int) -> None:
        """Forget the transactional ids that have not been used for ``expiration_ms``."""
        now_ms = self._now_ms()
        found = await self._find(lambda each: each.has_expired(now_ms, expiration_ms))
        for first in range(0, len(found), SCANNED_AT_ONCE):
            some = found[first : first + SCANNED_AT_ONCE]
            self._forget_ids([each for each in some if each.has_expired(now_ms, expiration_ms)])
            await trio.lowlevel.checkpoint()

    def _forget_ids(self, expired: Collection[Transaction[Log]]) -> None:
        def stored(error: DatabaseError | None) -> None:
            for transaction in expired:
                transaction.storing = None
                if error is None:
                    del self.transactions[transaction.id]
            self.on_change()

        for transaction in expired:
            transaction.storing = TransactionState.EMPTY
        ids = [each.id for each in expired]
        self._writes.write(remove_transactions(ids), stored, what=_WHAT)

    def forget(self, logs: Collection[Log]) -> None:
        """Remove the logs of a deleted topic from all transactions."""
        removed = set(logs)
        for transaction in self.transactions.values():
            if transaction.partitions:
                for log in removed & transaction.partitions.keys():
                    del transaction.partitions[log]
        for transaction in list(self.unfinished.values()):
            if not transaction.is_finishing:
                self._settle(transaction)

    # Startup.

    async def restore(self) -> None:
        """Load the transactional ids, and finish what was decided before the last shutdown.

        The logs, their leaders, and the pending offsets must have been loaded.

        Raises:
            DatabaseError: the database cannot be read.
        """
        logs = self._logs.values()
        self.last_epoch = max((log.coordinator_epoch for log in logs), default=-1)
        open_logs: dict[int, list[Log]] = {}
        for log in logs:
            for producer_id in log.open_transactions:
                open_logs.setdefault(producer_id, []).append(log)
        by_id = {(log.topic_id, log.partition): log for log in logs}
        loaded = await load_transactions(self._database)
        for number, (id, stored) in enumerate(loaded.items()):
            transaction = self.transactions[id] = Transaction(id, stored)
            found = [
                (producer_id, log)
                for producer_id in {stored.producer_id, stored.ended_producer_id}
                for log in open_logs.pop(producer_id, ())
            ]
            added = [by_id[each] for each in stored.partitions if each in by_id]
            self._restore(transaction, found, added)
            if found or number % SCANNED_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        self._report_hanging(open_logs)
        self._drop_pending()

    def _drop_pending(self) -> None:
        """Drop the offsets of transactions whose id has expired."""
        known = {each.current.producer_id for each in self.transactions.values() if each.current}
        left = set(self._group_store.pending_producers()) - known

        def stored(error: DatabaseError | None) -> None:
            if error is None:
                for producer_id in left:
                    self._group_store.pending_ended(producer_id, is_commit=False)

        if left:
            self._writes.write(self._group_store.drop_pending(left), stored, what=_WHAT)

    def _restore(
        self, transaction: Transaction[Log], open_logs: list[tuple[int, Log]], added: list[Log]
    ) -> None:
        """Derive the state of a transaction from what is stored and from the logs.

        Args:
            transaction: the transaction as it is stored.
            open_logs: the producer ids and logs with records without a marker.
            added: the logs that were explicitly added to it.
        """
        stored = transaction.current
        assert stored is not None, "it was loaded"
        ongoing = added
        left: list[tuple[int, Log]] = []
        for producer_id, log in open_logs:
            epoch = log.producers[producer_id].epoch
            if stored.has_decided(producer_id, epoch):
                transaction.partitions[log] = None
            elif (producer_id, epoch) == stored.identity:
                ongoing.append(log)
            else:
                left.append((producer_id, log))
        if stored.state in PREPARED:
            # The next transaction can have begun already, if a power failure took a marker of the
            # decided one. It is busy until that marker is written again.
            self._to_resume[transaction.id] = ongoing
            self.unfinished[transaction.id] = transaction
            self._finish(transaction, lambda _: None)
        else:
            self._resume(transaction, ongoing)
        for producer_id, log in left:
            self._abort_left(transaction, producer_id, log)

    def _resume(self, transaction: Transaction[Log], ongoing: list[Log]) -> None:
        """Resume a transaction that was ongoing. In TV2, its timeout starts again."""
        stored = transaction.current
        assert stored is not None, "it was loaded"
        groups = self._group_store.pending.groups_of(stored.producer_id)
        logs = [log for log in ongoing if self._is_current(log)]
        if stored.state is TransactionState.ONGOING or logs or groups:
            transaction.begin(TV2, self._now_ms())
            transaction.partitions.update(dict.fromkeys(logs))
            transaction.offsets_partitions.update(stored.offsets_partitions)
            transaction.offsets_partitions.update(map(partition_of, groups))

    def _is_current(self, log: Log) -> bool:
        """Return whether the topic of a log still exists."""
        return self._logs.get((log.topic, log.partition)) is log

    def _abort_left(self, transaction: Transaction[Log], producer_id: int, log: Log) -> None:
        """Abort records of an old epoch, whose marker was lost in a power failure."""
        stored = transaction.current
        assert stored is not None, "it was loaded"
        is_current = producer_id == stored.producer_id
        epoch = stored.producer_epoch if is_current else stored.ended_epoch
        try:
            log.append_marker(
                producer_id,
                max(epoch, log.producers[producer_id].epoch),
                is_commit=False,
                coordinator_epoch=self._coordinator_epoch(transaction.id),
                transaction_version=TV1,
                now_ms=self._now_ms(),
            )
        except ApiError as error:
            result = f"they cannot be aborted: {error}"
        else:
            result = "they were aborted"
        logger.warning(
            "%s-%d: records of an old epoch of transactional id %r have no marker, which a power"
            " failure can have lost; %s",
            log.topic,
            log.partition,
            transaction.id,
            result,
        )

    def _report_hanging(self, open_logs: Mapping[int, list[Log]]) -> None:
        for producer_id, logs in open_logs.items():
            logger.warning(
                "producer id %d has an open transaction in %d partitions, such as %s-%d, and no"
                " transactional id; readers with isolation.level=read_committed stop there; end it"
                " with `trionet transactions abort-hanging`",
                producer_id,
                len(logs),
                logs[0].topic,
                logs[0].partition,
            )


class _Failures:
    """Logs the markers that one attempt cannot write: the first few, and how many more there are.

    Args:
        id: the transactional id.
        level: the log level; the markers without a line of their own are logged for debugging.
    """

    def __init__(self, id: str, level: int) -> None:
        self._id = id
        self._level = level
        self._count = 0

    def log(
        self, text: str, log: Log, error: ApiError | str, *, has_traceback: bool = False
    ) -> None:
        """Log a marker that cannot be written or flushed."""
        self._count += 1
        level = self._level if self._count <= FAILURES_LOGGED_MAX else logging.DEBUG
        logger.log(level, text, log.topic, log.partition, self._id, error, exc_info=has_traceback)

    def log_count(self) -> None:
        """Log how many markers had no line of their own."""
        more = self._count - FAILURES_LOGGED_MAX
        if more > 0:
            logger.log(
                self._level,
                "%d more markers of transaction %r cannot be written; all are retried",
                more,
                self._id,
            )


def _report(identity: ProducerIdAndEpoch, done: DoneWith, error: ApiError | None) -> None:
    done(identity if error is None else error)


def _not_added(id: str) -> ApiError:
    return ApiError(
        error_codes.TRANSACTION_ABORTABLE,
        f"the partition was not added to the transaction of {id!r}",
    )
