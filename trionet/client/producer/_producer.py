"""The producer as its user sees it (Kafka: KafkaProducer)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

import trio

from ...errors import BufferExhaustedError, SendBatchError
from ...protocol.records._types import Headers
from ..metrics._statistics import ClientStatistics
from ._nowait_producer import NowaitProducer
from ._record_appender import RecordAppender
from ._wait_on_metadata import TopicWait
from .batching._accumulator import RecordAccumulator
from .batching._buffer_pool_waiters import Room
from .batching._record_checks import check_partition, check_topic
from .batching._record_columns import RecordColumns
from .delivery._deliveries import Deliveries
from .delivery._delivery import Delivery, RecordMetadata
from .delivery._waiting import until_done
from .sending._hooks import SendHook
from .sending._sender import Sender

T = TypeVar("T")

#: Of columns, so many are taken at a time: about a millisecond.
_SLICE_RECORDS: Final = 2000


class Producer(NowaitProducer):
    """Sends records to partition leaders; created by :func:`._open_producer.open_producer`.

    Any number of tasks use one. Records of one task to one partition stay in their order.

    Args:
        accumulator: what waits to be sent.
        sender: who sends it.
        topics: what is known of topics, and waiting for more.
        room: waiting for ``buffer.memory``.
        now_ms: the time of day, in milliseconds.
        max_block_seconds: ``max.block.ms``.
        hook: sees each record before it is taken; None if nobody wants to.
    """

    def __init__(
        self,
        accumulator: RecordAccumulator,
        sender: Sender,
        topics: TopicWait,
        room: Room,
        now_ms: Callable[[], int],
        max_block_seconds: float,
        hook: SendHook | None = None,
    ) -> None:
        super().__init__(RecordAppender(accumulator, sender, topics, now_ms, hook))
        self._hook = hook
        self._accumulator = accumulator
        self._sender = sender
        self._topics = topics
        self._room = room
        self._now_ms = now_ms
        self._max_block_seconds = max_block_seconds
        self._clock = trio.lowlevel.current_clock().current_time

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
        """Send a record and wait until the brokers have it.

        Args:
            topic: its topic.
            value: None for null, which deletes the key in a compacted topic.
            key: records with the same key go to the same partition.
            headers: names and values.
            partition: its number; None lets the key decide, or without a key the load.
            timestamp: in milliseconds since 1970; None for now.

        Returns:
            Where it was written.

        Raises:
            RecordTooLargeError: the record exceeds a limit.
            TypeError: a field is of another type than it has to be; says which.
            ValueError: the partition or the timestamp is negative, the topic's name is too long, or
                a text is not Unicode.
            BufferExhaustedError: ``buffer.memory`` had no room for it within ``max.block.ms``.
            MetadataTimeoutError: the topic, or the partition, was not known within that.
            DeliveryTimeoutError: it was not acknowledged within ``delivery.timeout.ms``.
            ApiError: the brokers refused it.
            AuthenticationError: the brokers do not let us in.
            trio.ClosedResourceError: the producer is closed.

        Cancellation: a record that was not on its way yet is taken back. One that was may be
        written all the same.
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
        appender.is_pause_due = False  # others have their turn while this waits
        try:
            return await self._sender.delivered(delivery)
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
        """Take a record to be sent as soon as there is room for it.

        A failure without a look at the delivery is raised at the end of the producer's block.

        Each call looks whether it is cancelled; other tasks have their turn with each batch, and
        within large ones about once a millisecond, since that takes longer than taking a record.

        Args:
            topic: as these of :meth:`send`.
            value: as there.
            key: as there.
            headers: as there.
            partition: as there.
            timestamp: as there.

        Returns:
            What can be awaited for where it was written.

        Raises:
            RecordTooLargeError, TypeError, ValueError, BufferExhaustedError, MetadataTimeoutError,
            AuthenticationError, trio.ClosedResourceError: as :meth:`send`.

        Cancellation: the record was not taken.
        """
        appended = self._appender.append_if_free(topic, value, key, headers, partition, timestamp)
        if appended is not None:
            # Other tasks have their turn by and by: a full checkpoint costs more than a record.
            return appended  # noqa: ASYNC910
        return await self._append_when_free(topic, value, key, headers, partition, timestamp)

    async def _append_when_free(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int | None,
        timestamp: int | None,
    ) -> Delivery:
        """What is left to do when :meth:`.RecordAppender.append_if_free` has returned None."""
        append = partial(self._appender.append, topic, value, key, headers, partition, timestamp)
        if self._appender.needs_checkpoint():
            await trio.lowlevel.checkpoint()
            if not self._room.waiting:
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
        """Send many records and wait until the brokers have all of them.

        It takes a fraction of the time that a call for each record takes. The columns are of one
        length, and must not change meanwhile. Records that fill a batch and more wait for no
        company: the last batch does not linger (``linger.ms``) then.

        Args:
            topic: the topic of all.
            values: None for null.
            keys: None for null; without, no record has a key.
            headers: names and values of each; without, no record has any.
            partition: of all; None lets the keys decide, or without a key the load.
            timestamps: in milliseconds since 1970; one number is every record's; None for now.

        Returns:
            Where each record was written.

        Raises:
            ValueError: the columns differ in length, or what is in them is not allowed, as for
                :meth:`send`; nothing was sent.
            TypeError: what is in them is of another type than it has to be; says which; nothing was
                sent.
            RecordTooLargeError: a record exceeds a limit of the producer's; nothing was sent.
            SendBatchError: some were not written, or nobody knows; says which, and why.
            BufferExhaustedError, MetadataTimeoutError, AuthenticationError,
            trio.ClosedResourceError: as :meth:`send`; then as after a cancellation.

        Cancellation: records that were not on their way yet are taken back. Others may be written
        all the same.
        """
        await trio.lowlevel.checkpoint()
        columns = self._columns(topic, partition, values, keys, headers, timestamps)
        deliveries = Deliveries(columns.timestamps)
        try:
            await self._take_all(topic, partition, columns, deliveries)
            if self._accumulator.end_columns(deliveries):
                self._sender.kick(self._clock())
            # The last first: as a rule the others are done then, too, without a wait for each.
            for outcome in reversed(deliveries.outcomes):
                if not outcome.is_done:
                    await until_done(outcome)
        except BaseException:
            self._withdraw(deliveries)
            raise
        if failures := deliveries.failures():
            raise SendBatchError(deliveries, failures)
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
        """Take many records to be sent as soon as there is room for them.

        What :meth:`send_batch` is to :meth:`send`, this is to :meth:`enqueue`: it waits for room,
        and not for the brokers. Batch after batch, the records of a partition stay in their order.

        Args:
            topic: as these of :meth:`send_batch`.
            values: as there.
            keys: as there.
            headers: as there.
            partition: as there.
            timestamps: as there.

        Returns:
            Where each record was written, when that is known; :meth:`flush` waits for it.

        Raises:
            ValueError, TypeError, RecordTooLargeError: as :meth:`send_batch`; nothing was taken.
            BufferExhaustedError, MetadataTimeoutError, AuthenticationError,
            trio.ClosedResourceError: as there; then as after a cancellation.

        Cancellation: records that were not on their way yet are taken back. Others may be written
        all the same.
        """
        await trio.lowlevel.checkpoint()
        columns = self._columns(topic, partition, values, keys, headers, timestamps)
        deliveries = Deliveries(columns.timestamps)
        try:
            await self._take_all(topic, partition, columns, deliveries)
        except BaseException:
            self._withdraw(deliveries)
            raise
        return deliveries

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
        if self._hook is None:
            return columns
        values, keys, headers, now_ms = self._hook.seen_columns(
            topic, partition, values, keys, headers, now_ms
        )
        return RecordColumns(values, keys, now_ms, headers)

    async def _take_all(  # noqa: ASYNC910 -- who calls it has made a checkpoint
        self, topic: str, partition: int | None, columns: RecordColumns, deliveries: Deliveries
    ) -> None:
        """Take all records of columns to be sent, after a look at each of them."""
        count = len(columns)
        for start in range(0, count, _SLICE_RECORDS):
            self._accumulator.check_columns(columns, start, min(start + _SLICE_RECORDS, count))
            await trio.lowlevel.checkpoint()
        take = partial(self._take_columns, topic, partition, columns, deliveries)
        while len(deliveries) < count:
            if self._room.waiting or not take():
                await self._when_possible(topic, partition, partial(self._take_some, take))
            await trio.lowlevel.checkpoint()

    def _withdraw(self, deliveries: Deliveries) -> None:
        self._accumulator.withdraw_all(deliveries)
        self._sender.kick(self._clock())  # others may have added to a batch that began here

    def _take_columns(
        self, topic: str, partition: int | None, columns: RecordColumns, deliveries: Deliveries
    ) -> bool:
        """Take some more records to be sent, as far as there is room; whether there was any."""
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
            self._topics.need(topic, partition, now)
        sender.kick(now)
        return end > start

    def _take_some(self, take: Callable[[], bool]) -> None:
        if not take():
            raise trio.WouldBlock

    async def _when_possible(self, topic: str, partition: int | None, take: Callable[[], T]) -> T:
        """Take something to be sent when it is known where to, and there is room."""
        self._appender.is_awaited = False  # by whoever runs meanwhile
        self._sender.attend()
        updates = self._topics.updates
        with trio.move_on_after(self._max_block_seconds):
            while True:
                await self._topics.until_known(topic, partition)
                with self._room.place() as place:
                    # A topic that has vanished meanwhile must not hold up those behind it.
                    while self._topics.knows(topic, partition):
                        await place.turn()
                        try:
                            return self._room.let_try(take)
                        except trio.WouldBlock:
                            self._sender.kick(self._clock())
        error = self._topics.too_late(topic, partition, updates, self._max_block_seconds)
        self._room.exhausted += isinstance(error, BufferExhaustedError)
        raise error

    def connection_problem(self) -> str:
        """Why the cluster, or a broker of it, cannot be reached; empty if nothing is known of it.

        For after a ``trio.move_on_after`` of your own; errors of calls have it in their text.
        """
        return self._sender.connection_problem()

    async def key_partitions(self, topic: str) -> int:
        """How many partitions the keys of a topic's records choose from; 0 where they choose none.

        Raises:
            TypeError, ValueError, MetadataTimeoutError, AuthenticationError,
            trio.ClosedResourceError: as :meth:`send`.

        Cancellation: nothing was changed.
        """
        check_topic(topic)
        count = partial(self._accumulator.key_partitions, topic)
        return await self._when_possible(topic, None, count)

    def statistics(self) -> ClientStatistics:
        """What this producer did and holds at the moment, by Kafka's names."""
        return self._sender.statistics()

    async def flush(self) -> None:
        """Send what was taken so far at once, and wait until it is known what became of all of it.

        What became of each, the deliveries tell.

        Raises:
            TrionetError: the producer has failed; so has every delivery.

        Cancellation: nothing is lost; what was taken goes on as before.
        """
        await self._flush()
        self._sender.check()

    async def drain(self) -> None:
        """The same at the end of the block, when nothing is taken any more.

        Raises:
            TrionetError: as there, if nobody has heard of it yet.
        """
        await self._flush()
        self._sender.check_told()

    async def _flush(self) -> None:
        await trio.lowlevel.checkpoint()
        outcomes = self._accumulator.begin_flush()
        try:
            self._sender.kick(self._clock())
            for outcome in outcomes:
                if not outcome.is_done:
                    await until_done(outcome)
        finally:
            self._accumulator.end_flush()
