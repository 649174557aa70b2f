"""The producer as its user sees it (Kafka: KafkaProducer)."""

from __future__ import annotations

from collections.abc import Callable

import trio

from ...errors import BufferExhaustedError, MetadataTimeoutError
from ...protocol.records.types import Headers
from ..statistics import ClientStatistics
from .accumulator import RecordAccumulator
from .delivery import Delivery, RecordMetadata
from .room import Room
from .sender import Sender
from .topic_wait import TopicWait
from .waiting import until_done


class Producer:
    """Sends records to the leaders of their partitions; made by :func:`.opening.open_producer`.

    Any number of tasks use one. Records of one task to one partition stay in their order.

    Args:
        accumulator: what waits to be sent.
        sender: who sends it.
        topics: what is known of topics, and waiting for more.
        room: waiting for ``buffer.memory``.
        now_ms: the time of day, in milliseconds.
        max_block_seconds: ``max.block.ms``.
    """

    def __init__(
        self,
        accumulator: RecordAccumulator,
        sender: Sender,
        topics: TopicWait,
        room: Room,
        now_ms: Callable[[], int],
        max_block_seconds: float,
    ) -> None:
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
            BufferExhaustedError: ``buffer.memory`` had no room for it within ``max.block.ms``.
            MetadataTimeoutError: the topic, or the partition, was not known within that.
            DeliveryTimeoutError: it was not acknowledged within ``delivery.timeout.ms``.
            ApiError: the brokers refused it.
            AuthenticationError: the brokers do not let us in.
            trio.ClosedResourceError: the producer is closed.

        Cancellation: a record that was not on its way yet is taken back. One that was may be
        written all the same.
        """
        delivery = await self.enqueue(
            topic, value, key=key, headers=headers, partition=partition, timestamp=timestamp
        )
        try:
            return await delivery
        except trio.Cancelled:
            self._accumulator.withdraw(delivery)
            raise

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
        """Take a record to be sent; what becomes of it, its delivery tells.

        Nothing is sent by tasks that never wait: who makes many of these has to wait at times, for
        :meth:`enqueue`, say.

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
            trio.WouldBlock: ``buffer.memory`` has no room for it, or the topic or the partition is
                not known yet.
            RecordTooLargeError: the record exceeds a limit.
            trio.ClosedResourceError: the producer is closed.
        """
        sender = self._sender
        if sender.error is not None:
            raise sender.error
        now = self._clock()
        try:
            delivery = self._accumulator.append(
                topic,
                partition,
                self._now_ms() if timestamp is None else timestamp,
                key,
                value,
                headers,
                now,
            )
        except trio.WouldBlock:
            self._topics.need(topic, now)
            raise
        if not delivery.index:  # a new batch: the one before it is full, or its time runs
            sender.kick(now)
        return delivery

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
            RecordTooLargeError, BufferExhaustedError, MetadataTimeoutError, AuthenticationError,
            trio.ClosedResourceError: as :meth:`send`.

        Cancellation: the record was not taken.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            return self.send_nowait(
                topic, value, key=key, headers=headers, partition=partition, timestamp=timestamp
            )
        except trio.WouldBlock:
            pass
        with trio.move_on_after(self._max_block_seconds):
            await self._topics.until_known(topic, partition)
            with self._room.place() as place:
                while True:
                    await place.turn()
                    try:
                        return self.send_nowait(
                            topic,
                            value,
                            key=key,
                            headers=headers,
                            partition=partition,
                            timestamp=timestamp,
                        )
                    except trio.WouldBlock:
                        self._sender.kick(self._clock())
        raise self._too_late(topic, partition)

    def _too_late(self, topic: str, partition: int | None) -> Exception:
        seconds = f"{self._max_block_seconds:g} s (max.block.ms)"
        if self._accumulator.knows(topic, partition):
            self._room.exhausted += 1
            return BufferExhaustedError(f"buffer.memory had no room within {seconds}")
        what = f"topic {topic}" if partition is None else f"partition {topic}-{partition}"
        return MetadataTimeoutError(f"{what} was not known within {seconds}")

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
        await trio.lowlevel.checkpoint()
        outcomes = self._accumulator.begin_flush()
        try:
            self._sender.kick(self._clock())
            for outcome in outcomes:
                if not outcome.is_done:
                    await until_done(outcome)
        finally:
            self._accumulator.end_flush()
        if self._sender.error is not None:
            raise self._sender.error
