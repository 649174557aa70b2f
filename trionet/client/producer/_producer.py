"""The producer's public API (Kafka: KafkaProducer)."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, final

import trio

from ..._util._raising import again
from ...errors import (
    BufferExhaustedError,
    ConfigError,
    ProducerFencedError,
    SendBatchError,
    TransactionAbortableError,
    TransactionError,
)
from ...protocol.records._types import EncodedRecords, Headers
from .._client_metrics import ClientStatistics
from .._not_copied import NotCopied
from ._deliveries import Deliveries
from ._delivery import Delivery, RecordMetadata
from ._hooks import SendHook
from ._metadata import MetadataWaiter
from ._metrics import CallTimes
from ._record_appender import RecordAppender
from ._transactions import END_SECONDS, Offsets, Transaction, Transactions
from .batching._accumulator import RecordAccumulator
from .batching._buffer_pool import BufferPoolWaiters
from .batching._records import RecordColumns, check_partition, check_topic
from .sending._sender import Sender

if TYPE_CHECKING:
    from ..consumer.coordinator._classic_member import GroupMetadata

T = TypeVar("T")

#: The number of records appended between two checkpoints, which takes about a millisecond.
_SLICE_RECORDS: Final = 2000


@final
class Producer(NotCopied):
    """Sends records to the partition leaders; opened by :func:`.open_producer`.

    Any number of tasks may share a producer, but only one transaction is open at a time. Records
    that one task sends to the same partition keep their order; without idempotence, retries may
    change it.
    """

    _appender: RecordAppender
    _hook: SendHook | None
    _transactions: Transactions | None
    _accumulator: RecordAccumulator
    _sender: Sender
    _topics: MetadataWaiter
    _waiters: BufferPoolWaiters
    _now_ms: Callable[[], int]
    _max_block_seconds: float
    _times: CallTimes
    _clock: Callable[[], float]

    def __init__(self) -> None:
        raise TypeError("use trionet.open_producer() to open a producer")

    @classmethod
    def _create(
        cls,
        accumulator: RecordAccumulator,
        sender: Sender,
        topics: MetadataWaiter,
        waiters: BufferPoolWaiters,
        now_ms: Callable[[], int],
        max_block_seconds: float,
        times: CallTimes,
        hook: SendHook | None = None,
        transactions: Transactions | None = None,
    ) -> Producer:
        """Create a producer from its components; called by :func:`.open_producer`.

        Args:
            accumulator: holds the records waiting to be sent.
            sender: sends the records.
            topics: waits for topic metadata.
            waiters: the tasks waiting for ``buffer.memory``.
            now_ms: returns the wall-clock time in milliseconds since the epoch.
            max_block_seconds: ``max.block.ms``.
            times: take the times of calls.
            hook: applied to each record before it is appended; None for no hook.
            transactions: the transactions; None without ``transactional.id``.
        """
        self = cls.__new__(cls)
        self._appender = RecordAppender(accumulator, sender, topics, now_ms, hook)
        # This replaces the method below, since an interpreted function around the compiled method
        # would add a fifth to the time per record.
        vars(self)["send_nowait"] = self._appender.send_nowait
        self._hook = hook
        self._transactions = transactions
        self._accumulator = accumulator
        self._sender = sender
        self._topics = topics
        self._waiters = waiters
        self._now_ms = now_ms
        self._max_block_seconds = max_block_seconds
        self._times = times
        self._clock = trio.lowlevel.current_clock().current_time
        return self

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> RecordMetadata:
        """Send a record and wait until the brokers have acknowledged it.

        Args:
            topic: the name of the topic.
            value: the value; None for a tombstone, which deletes the key in a compacted topic.
            key: the key; records with the same key go to the same partition.
            headers: the header names and values.
            partition: the partition number; if None, the partitioner chooses, by the key if there
                is one.
            timestamp: the timestamp, in milliseconds since the epoch; None for the current time.

        Returns:
            The partition and offset at which the record was written.

        Raises:
            RecordTooLargeError: the record exceeds a size limit of the producer or the topic.
            TypeError: a field has the wrong type; the message names it.
            ValueError: the partition or the timestamp is negative, the topic name is too long, or
                a string cannot be encoded as UTF-8.
            LocalProtocolError: the timestamp is too large for the record format, or a producer with
                a ``transactional.id`` has no open transaction.
            BufferExhaustedError: ``buffer.memory`` had no space for the record within
                ``max.block.ms``.
            MetadataTimeoutError: no metadata for the topic or the partition arrived within
                ``max.block.ms``.
            DeliveryTimeoutError: the record was not acknowledged within ``delivery.timeout.ms``.
            ApiError: the brokers rejected the record.
            TransactionAbortableError: the brokers no longer accept the transaction, or another of
                its records or offsets has failed.
            ProducerFencedError: a newer producer uses the same ``transactional.id``.
            AuthenticationError: the brokers rejected the client's credentials.
            TrionetError: the producer has failed.
            trio.ClosedResourceError: the producer is closed.

        Cancellation: withdraws the record if it has not been sent yet; otherwise the record may
        still be written.
        """
        fields = topic, value, key, headers, partition, timestamp
        appender = self._appender
        appender.is_awaited = True
        try:
            delivery = appender.append_if_free(*fields)
            if delivery is None:
                delivery = await self._append_when_free(*fields)
        finally:
            appender.is_awaited = False
        appender.is_pause_due = False  # other tasks run while this one waits
        try:
            return await self._sender.wait_for(delivery)
        except trio.Cancelled:
            self._accumulator.withdraw(delivery)
            raise

    async def enqueue(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Delivery:
        """Append a record, waiting for buffer space but not for the brokers.

        If the record fails and its delivery is never read, a normal exit of the producer's block
        raises :class:`.UndeliveredError`.

        Every call checks for cancellation. Unless it has to wait, a call yields to other tasks only
        after a new batch has begun, and about once a millisecond within large batches, because a
        full checkpoint takes longer than appending a record.

        Args:
            topic: see :meth:`send`.
            value: see :meth:`send`.
            key: see :meth:`send`.
            headers: see :meth:`send`.
            partition: see :meth:`send`.
            timestamp: see :meth:`send`.

        Returns:
            The record's delivery; await it for the partition and offset.

        Raises:
            RecordTooLargeError: the record exceeds a size limit of the producer.
            TypeError, ValueError, LocalProtocolError, BufferExhaustedError, MetadataTimeoutError,
            AuthenticationError, TrionetError, trio.ClosedResourceError: see :meth:`send`.

        Cancellation: the record is not appended.
        """
        appended = self._appender.append_if_free(topic, value, key, headers, partition, timestamp)
        if appended is not None:
            # A checkpoint costs more than a record, so one is made every few hundred records.
            return appended  # noqa: ASYNC910
        return await self._append_when_free(topic, value, key, headers, partition, timestamp)

    def send_nowait(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Delivery:
        """Append a record without waiting.

        A batch may be sent immediately, but the sender runs only while the calling task yields. A
        task that calls this in a loop must therefore yield from time to time, for example in
        :meth:`enqueue`.

        Args:
            topic: see :meth:`send`.
            value: see :meth:`send`.
            key: see :meth:`send`.
            headers: see :meth:`send`.
            partition: see :meth:`send`.
            timestamp: see :meth:`send`.

        Returns:
            The record's delivery; await it for the partition and offset.

        Raises:
            trio.WouldBlock: ``buffer.memory`` has no space, other tasks are already waiting for
                space, or the topic or the partition is not known yet.
            RecordTooLargeError: the record exceeds a size limit of the producer.
            TypeError, ValueError, LocalProtocolError, TrionetError, trio.ClosedResourceError: see
                :meth:`send`.
        """
        return self._appender.append(topic, value, key, headers, partition, timestamp)

    async def _append_when_free(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int | None,
        timestamp: int | None,
    ) -> Delivery:
        """Append a record after :meth:`.RecordAppender.append_if_free` has returned None."""
        append = partial(self._appender.append, topic, value, key, headers, partition, timestamp)
        if self._appender.needs_checkpoint():
            await trio.lowlevel.checkpoint()
            if not self._waiters.waiting:
                try:
                    return append()
                except trio.WouldBlock:
                    pass
        return await self._when_possible(topic, partition, append)

    async def send_batch(
        self,
        topic: str,
        values: Sequence[bytes | None],
        *,
        keys: Sequence[bytes | None] | None = None,
        headers: Sequence[Headers] | None = None,
        partition: int | None = None,
        timestamps: int | Sequence[int] | None = None,
    ) -> Deliveries:
        """Send many records and wait until the brokers have acknowledged all of them.

        This is much faster than one call per record. All columns must have the same length, and
        must not change during the call. If the records fill more than one batch of a partition, the
        last of these batches does not linger (``linger.ms``).

        Args:
            topic: the topic of all records.
            values: the values; None for null.
            keys: the keys, with None for null; if omitted, no record has a key.
            headers: the header names and values of each record; if omitted, no record has headers.
            partition: the partition of all records; if None, the partitioner chooses one for each
                record, by the key if there is one.
            timestamps: the timestamps, in milliseconds since the epoch; a single number applies to
                all records; None for the current time.

        Returns:
            The deliveries of the records, all of them done, with the partitions and offsets.

        Raises:
            ValueError: the columns differ in length, or contain values that are not allowed, as for
                :meth:`send`; nothing was sent.
            TypeError: a column contains a value of the wrong type, which the message names;
                nothing was sent.
            RecordTooLargeError: a record exceeds a size limit of the producer; nothing was sent.
            SendBatchError: some records were not, or may not have been, written; the exception
                lists these records and their errors.
            TransactionAbortableError, ProducerFencedError: see :meth:`send`; raised if no record
                is to blame.
            LocalProtocolError, BufferExhaustedError, MetadataTimeoutError, AuthenticationError,
            TrionetError, trio.ClosedResourceError: see :meth:`send`; records are withdrawn as on
                cancellation.

        Cancellation: withdraws the records that have not been sent yet; the others may still be
        written.
        """
        self._sender.check_thread()
        await trio.lowlevel.checkpoint()
        columns = self._columns(topic, partition, values, keys, headers, timestamps)
        deliveries = Deliveries(columns.timestamps)
        try:
            await self._append_all(topic, partition, columns, deliveries)
            if self._accumulator.end_columns(deliveries):
                self._sender.send_now(self._clock())
            else:
                self._sender.wake()
            # The last batch first: all others are usually done by then and need no separate wait.
            for outcome in reversed(deliveries.outcomes):
                if not outcome.is_done:
                    await outcome.until_done()
        except BaseException:
            self._withdraw(deliveries)
            raise
        if failures := deliveries.failures():
            error = SendBatchError(deliveries, failures)
            first = failures[0][1]
            if all(isinstance(each, TransactionError) for _, each in failures):
                raise again(first) from error  # no record is to blame
            raise error
        return deliveries

    async def enqueue_batch(
        self,
        topic: str,
        values: Sequence[bytes | None],
        *,
        keys: Sequence[bytes | None] | None = None,
        headers: Sequence[Headers] | None = None,
        partition: int | None = None,
        timestamps: int | Sequence[int] | None = None,
    ) -> Deliveries:
        """Append many records, waiting for buffer space but not for the brokers.

        This is the batch form of :meth:`enqueue`. Records for the same partition keep their order
        across calls.

        Args:
            topic: see :meth:`send_batch`.
            values: see :meth:`send_batch`.
            keys: see :meth:`send_batch`.
            headers: see :meth:`send_batch`.
            partition: see :meth:`send_batch`.
            timestamps: see :meth:`send_batch`.

        Returns:
            The deliveries of the records; :meth:`flush` waits for them.

        Raises:
            ValueError, TypeError, RecordTooLargeError: see :meth:`send_batch`; nothing was
                appended.
            LocalProtocolError, BufferExhaustedError, MetadataTimeoutError, AuthenticationError,
            TrionetError, trio.ClosedResourceError: see :meth:`send`; records are withdrawn as on
                cancellation.

        Cancellation: withdraws the records that have not been sent yet; the others may still be
        written.
        """
        self._sender.check_thread()
        await trio.lowlevel.checkpoint()
        columns = self._columns(topic, partition, values, keys, headers, timestamps)
        deliveries = Deliveries(columns.timestamps)
        try:
            await self._append_all(topic, partition, columns, deliveries)
        except BaseException:
            self._withdraw(deliveries)
            raise
        return deliveries

    async def _enqueue_encoded(
        self,
        topic: str,
        batches: Sequence[tuple[int | None, EncodedRecords]],
    ) -> Deliveries:
        """Append records that are already encoded, waiting for buffer space but not for brokers.

        Records for the same partition keep their order across calls, including calls of other
        methods. The records are not checked, and their timestamp is that of the call. Not for
        users: hooks on sending (``on_send``) do not see them.

        Args:
            topic: see :meth:`send_batch`.
            batches: the partition and the records of each batch, at least one; None to choose the
                partition. A batch of several records is at most as large as ``batch.size``,
                ``max.request.size`` and ``buffer.memory`` allow.

        Returns:
            The deliveries of the records; :meth:`flush` waits for them.

        Raises:
            RecordTooLargeError: a batch is larger than ``max.request.size``, or than all of
                ``buffer.memory``; nothing was appended.
            LocalProtocolError, BufferExhaustedError, MetadataTimeoutError, AuthenticationError,
                TrionetError, trio.ClosedResourceError: see :meth:`send`; records are withdrawn as
                on cancellation.

        Cancellation: withdraws the records that have not been sent yet; the others may still be
        written.
        """
        await trio.lowlevel.checkpoint()
        check_topic(topic)
        for partition, records in batches:
            check_partition(partition)
            self._accumulator.check_encoded(records)
        now_ms = self._now_ms()
        deliveries = Deliveries(now_ms)
        rest = deque(batches)
        take = partial(self._add_encoded, topic, rest, now_ms, deliveries)
        try:
            while rest:
                if self._waiters.waiting or not take():
                    some = partial(self._append_some, take)
                    await self._when_possible(topic, rest[0][0], some)
                await trio.lowlevel.checkpoint()
        except BaseException:
            self._withdraw(deliveries)
            raise
        return deliveries

    def _add_encoded(
        self,
        topic: str,
        rest: deque[tuple[int | None, EncodedRecords]],
        timestamp: int,
        deliveries: Deliveries,
    ) -> bool:
        """Add the next batches that the buffer has space for. Returns whether there were any.

        They are sent after all are added, so that a request has a batch of each partition.
        """
        sender = self._sender
        if sender.error is not None:
            sender.check()
        now = self._clock()
        start = len(deliveries)
        while rest:
            partition, records = rest[0]
            if not self._accumulator.add_encoded(
                topic, partition, records, timestamp, deliveries, now
            ):
                self._topics.request(topic, partition, now)
                break
            rest.popleft()
        sender.send_now(now, is_awaited=False)
        return len(deliveries) > start

    def _columns(
        self,
        topic: str,
        partition: int | None,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        headers: Sequence[Headers] | None,
        timestamps: int | Sequence[int] | None,
    ) -> RecordColumns:
        check_topic(topic)
        check_partition(partition)
        now_ms = self._now_ms() if timestamps is None else timestamps
        columns = RecordColumns(values, keys, now_ms, headers)
        hook = self._hook
        return columns if hook is None else hook.apply_columns(topic, partition, columns)

    async def _append_all(  # noqa: ASYNC910 -- its callers have made a checkpoint
        self, topic: str, partition: int | None, columns: RecordColumns, deliveries: Deliveries
    ) -> None:
        """Check all records of the columns, then append the records."""
        count = len(columns)
        for start in range(0, count, _SLICE_RECORDS):
            self._accumulator.check_columns(columns, start, min(start + _SLICE_RECORDS, count))
            await trio.lowlevel.checkpoint()
        take = partial(self._append_columns, topic, partition, columns, deliveries)
        while len(deliveries) < count:
            if self._waiters.waiting or not take():
                await self._when_possible(topic, partition, partial(self._append_some, take))
            await trio.lowlevel.checkpoint()

    def _withdraw(self, deliveries: Deliveries) -> None:
        self._accumulator.withdraw_all(deliveries)
        # Other tasks may have appended to a batch that began here.
        self._sender.send_now(self._clock())

    def _append_columns(
        self, topic: str, partition: int | None, columns: RecordColumns, deliveries: Deliveries
    ) -> bool:
        """Append the next records that the buffer has space for. Returns whether there were any."""
        sender = self._sender
        if sender.error is not None:
            sender.check()
        now = self._clock()
        start = len(deliveries)
        stop = min(start + _SLICE_RECORDS, len(columns))
        end = self._accumulator.append_columns(
            topic, partition, columns, start, stop, deliveries, now
        )
        if end < stop:
            self._topics.request(topic, partition, now)
        sender.send_now(now, is_awaited=False)
        return end > start

    def _append_some(self, take: Callable[[], bool]) -> None:
        if not take():
            raise trio.WouldBlock

    async def _when_possible(self, topic: str, partition: int | None, take: Callable[[], T]) -> T:
        """Wait until the partition is known and ``take`` succeeds, and return the result."""
        self._sender.check_thread()
        self._appender.is_awaited = False  # other tasks may append while this one waits
        self._sender.wake()
        updates = self._topics.updates
        with trio.move_on_after(self._max_block_seconds):
            while True:
                await self._topics.until_known(topic, partition)
                with self._waiters.join() as waiter:
                    # A topic that has vanished must not block the tasks after this one.
                    while self._topics.knows(topic, partition):
                        await waiter.turn()
                        try:
                            return self._waiters.try_first(take)
                        except trio.WouldBlock:
                            self._sender.send_now(self._clock())
        error = self._topics.timeout_error(topic, partition, updates, self._max_block_seconds)
        self._waiters.exhausted += isinstance(error, BufferExhaustedError)
        raise error

    def connection_problem(self) -> str:
        """Return why the cluster or a broker cannot be reached; empty if no problem is known.

        Call this when a ``trio.move_on_after`` of your own has expired. Errors that the methods of
        this class raise already include the reason.
        """
        return self._sender.connection_problem()

    async def until_connected(self) -> None:
        """Wait until a broker of the cluster accepts requests, at the address that it advertises.

        Other calls wait for that, too, until their time limits, since a broker may be starting.
        This call, made first, is for programs whose address may be wrong.

        Raises:
            DisconnectedError: for two seconds, nothing listens at any bootstrap server, or at any
                address that the brokers advertise, or the names do not exist. A server that is
                merely silent is waited for.
            AuthenticationError: the credentials are rejected.
            UnsupportedVersionError: the brokers and this client have no version in common.
            trio.ClosedResourceError: the producer is closed.
        """
        await self._sender.until_connected()

    async def key_partitions(self, topic: str) -> int:
        """Return the number of partitions across which keys are hashed; 0 if keys are ignored.

        Args:
            topic: the name of the topic.

        Raises:
            TypeError, ValueError, MetadataTimeoutError, AuthenticationError,
            trio.ClosedResourceError: see :meth:`send`.

        Cancellation: safe at any point; leaves the producer's state unchanged.
        """
        check_topic(topic)
        count = partial(self._accumulator.key_partitions, topic)
        return await self._when_possible(topic, None, count)

    def statistics(self) -> ClientStatistics:
        """Return the producer's current metrics, keyed by Kafka's metric names."""
        return self._sender.statistics()

    async def flush(self) -> None:
        """Send all buffered records, and wait until their outcomes are known.

        The outcome of each record is in its delivery.

        Raises:
            TrionetError: the producer has failed, and so has every pending delivery.

        Cancellation: stops the wait; the records are still sent.
        """
        self._sender.check_thread()
        began = self._clock()
        try:
            await self._flush()
        finally:
            self._times.flush += self._clock() - began
        self._sender.check()

    async def _drain(self) -> None:
        """Flush when the block exits.

        Raises:
            TrionetError: see :meth:`flush`; not raised if an earlier call has already raised it.
        """
        await self._flush()
        self._sender.check_unraised()

    async def _flush(self) -> None:
        await trio.lowlevel.checkpoint()
        outcomes = self._accumulator.queues.begin_flush()
        try:
            self._sender.send_now(self._clock())
            for outcome in outcomes:
                if not outcome.is_done:
                    await outcome.until_done()
        finally:
            self._accumulator.queues.end_flush()

    # Transactions.

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Begin a transaction, and commit it when the block exits.

        ::

            async with producer.transaction() as tx:
                await producer.send("out", value)
                await tx.send_offsets(consumer)

        All records that are sent inside the block, by any task, are committed when the block exits
        normally, after all of them have been acknowledged. If the block exits with an exception,
        including cancellation, or if the transaction cannot be committed, it is aborted. If the
        block has committed or aborted the transaction itself, its exit does nothing. A producer has
        one transaction at a time.

        Raises:
            TransactionAbortableError: at the exit: the transaction was aborted, since a record was
                rejected, or not acknowledged within ``delivery.timeout.ms``; another transaction
                may succeed.
            ProducerFencedError: also at the exit, in place of a TransactionAbortableError: the
                abort has shown that a newer producer uses the same ``transactional.id``.
            TransactionOutcomeUnknownError: at the exit: the coordinator did not respond to the
                commit within ``max.block.ms``.
            LocalProtocolError: a transaction is open already.
            ConfigError, CallTimedOutError, ApiError, UnsupportedVersionError, AuthenticationError,
            TrionetError, trio.ClosedResourceError: see :meth:`init_transactions`.

        Cancellation: aborts the transaction, unless its commit has been sent. In both cases the
        block waits for the coordinator's response for at most five seconds, even though the task is
        cancelled. After that, the producer ends the transaction while other tasks run, and
        otherwise its coordinator does, after ``transaction.timeout.ms``.
        """
        transactions = self._checked_transactions()
        await transactions.begin()
        transaction = Transaction._create(transactions)  # noqa: SLF001 -- of this package
        try:
            yield transaction
            if transaction.is_open:
                await transactions.commit()
        except BaseException as error:
            if transaction.is_open:
                with trio.move_on_after(END_SECONDS, shield=True):
                    await transactions.abort_at_once()
            if isinstance(error, TransactionAbortableError | ProducerFencedError):
                # A leader does not know why an epoch is too old, but the coordinator does. What is
                # raised here is not raised again when the producer is closed.
                self._sender.check()
            raise

    async def init_transactions(self) -> None:
        """Fence other producers with the same ``transactional.id``, and abort their transaction.

        The first transaction does this by itself. Call this method to do it before records are
        read, for example. If it was done already, this is a no-op.

        Raises:
            ConfigError: the producer has no ``transactional.id``.
            CallTimedOutError: no coordinator responded within ``max.block.ms``.
            ProducerFencedError: another producer uses the same ``transactional.id``.
            ApiError: the ``transactional.id`` may not be used, or ``transaction.timeout.ms`` is
                larger than the brokers allow.
            UnsupportedVersionError: the brokers do not support transactions.
            AuthenticationError, TrionetError, trio.ClosedResourceError: see :meth:`send`.

        Cancellation: the request is still carried out.
        """
        await self._checked_transactions().initialize()

    async def begin_transaction(self) -> None:
        """Begin a transaction; :meth:`transaction` does so and ends it, too.

        Every call checks for cancellation, but yields to other tasks only if it has to wait: for
        the first transaction, for one whose end was cancelled or has timed out, and after an error.

        Raises:
            LocalProtocolError: a transaction is open already.
            ConfigError, CallTimedOutError, ProducerFencedError, ApiError, UnsupportedVersionError,
            AuthenticationError, TrionetError, trio.ClosedResourceError: see
                :meth:`init_transactions`.

        Cancellation: no transaction begins.
        """
        await self._checked_transactions().begin()

    async def commit_transaction(self) -> None:
        """Wait until all records of the transaction are acknowledged, then commit it.

        Raises:
            TransactionAbortableError: a record was rejected, or not acknowledged within
                ``delivery.timeout.ms``; call :meth:`abort_transaction`.
            TransactionOutcomeUnknownError: the coordinator did not respond to the commit within
                ``max.block.ms``. Call this again to wait for the outcome: it returns if the
                transaction was committed, and raises TransactionAbortableError if not.
            LocalProtocolError: no transaction is open.
            ConfigError: the producer has no ``transactional.id``.
            ProducerFencedError, ApiError, AuthenticationError, TrionetError,
            trio.ClosedResourceError: see :meth:`init_transactions`.

        Cancellation: aborts the transaction, unless its commit has been sent; in both cases this
        waits for the coordinator's response for at most five seconds.
        """
        await self._checked_transactions().commit()

    async def abort_transaction(self) -> None:
        """Abort the transaction: drop the records that have not been sent, and hide all others.

        Without an open transaction, this is a no-op; so it may be the ``on_revoked`` of a consumer.
        A transaction whose commit has been sent cannot be aborted: this waits for its outcome.
        Another call of :meth:`commit_transaction` then returns if the transaction was committed,
        and raises LocalProtocolError if not.

        Raises:
            CallTimedOutError: the coordinator did not respond within ``max.block.ms``; the producer
                goes on trying, and the coordinator aborts the transaction after
                ``transaction.timeout.ms`` in any case.
            LocalProtocolError: another task is ending the transaction.
            ConfigError: the producer has no ``transactional.id``.
            ProducerFencedError, ApiError, AuthenticationError, TrionetError,
            trio.ClosedResourceError: see :meth:`init_transactions`.

        Cancellation: the transaction is still aborted.
        """
        await self._checked_transactions().abort()

    async def send_offsets_to_transaction(
        self, offsets: Offsets, group_metadata: GroupMetadata | None = None
    ) -> None:
        """Commit offsets of a consumer together with the open transaction.

        See :meth:`.Transaction.send_offsets`, which also describes the arguments and exceptions.

        Cancellation: the transaction can then only be aborted.
        """
        await self._checked_transactions().send_offsets(offsets, group_metadata)

    def _checked_transactions(self) -> Transactions:
        if self._transactions is None:
            raise ConfigError("this producer has no transactions; set transactional.id")
        self._sender.check_thread()
        return self._transactions
