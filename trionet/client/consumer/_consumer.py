"""The consumer that users have (Kafka: KafkaConsumer)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import trio

from ..._util._raising import again
from ...errors import ConfigError, TrionetError
from .._offset_and_metadata import OffsetAndMetadata
from .._topic_partition import TopicPartition
from ..metrics._statistics import ClientStatistics
from ..network._kafka_client import KafkaClient
from ._argument_checks import (
    offsets_to_commit,
    topic_names,
    topic_partition,
    topic_partitions,
    wanted_epoch,
    wanted_offset,
)
from ._settings import ConsumerSettings
from .coordinator._consumer_coordinator import ConsumerCoordinator
from .coordinator._group_metadata import GroupMetadata
from .coordinator._rebalance_callbacks import RebalanceCallback, RebalanceCallbacks
from .fetch._fetcher import Fetcher
from .offsets._offset_fetcher import OffsetAndTimestamp, OffsetQuestions
from .records._batch_loop import BatchLoop
from .records._chunk import Chunk
from .records._record import ConsumerBatch, ConsumerRecord
from .records._record_loop import NOTHING, RecordLoop
from .state._partition_state import NO_EPOCH, FetchPosition, PartitionState
from .state._pending_errors import Failures
from .state._reset_strategy import (
    EARLIEST,
    EARLIEST_TIMESTAMP,
    LATEST,
    LATEST_TIMESTAMP,
    ResetStrategy,
)
from .state._subscription_state import SubscriptionState

#: How long records may be handed out without a full checkpoint, in seconds.
CHECKPOINT_SECONDS: Final = 0.001


class Consumer:
    """Reads records; made by :func:`._open_consumer.open_consumer`.

    ``async for record in consumer`` hands out one record after the other, and a record counts as
    finished when the next one is asked for. One task asks for records; a second one that does so
    meanwhile gets a ``trio.BusyResourceError``.

    Args:
        client: polled by somebody else.
        subscriptions: what is wanted, and where it is.
        fetcher: fetches.
        failures: what the background has to tell.
        settings: of the consumer.
        news: parks who waits for records.
        coordinator: the consumer's side of its group; None without one.
        questions: asks logs for offsets.
    """

    def __init__(
        self,
        client: KafkaClient,
        subscriptions: SubscriptionState,
        fetcher: Fetcher,
        failures: Failures,
        settings: ConsumerSettings,
        news: trio.lowlevel.ParkingLot,
        coordinator: ConsumerCoordinator | None,
        questions: OffsetQuestions,
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._fetcher = fetcher
        self._failures = failures
        self._settings = settings
        self._news = news
        self._coordinator = coordinator
        self._questions = questions
        self._clock = trio.lowlevel.current_clock().current_time
        self._loop = RecordLoop(self._next_chunk)
        self._in_hand: PartitionState | None = None
        self._is_asking = self._is_closed = False
        subscriptions.on_change = self._changed

    # What is wanted.

    def subscribe(
        self,
        topics: str | Iterable[str] | re.Pattern[str],
        *,
        on_assigned: RebalanceCallback | None = None,
        on_revoked: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Read what the group gives this consumer of these topics, in place of those before.

        Callbacks run in the task that asks for records, before it gets any; see
        :class:`.RebalanceCallbacks`.

        Args:
            topics: names, or a pattern that matches whole names, of topics to come, too.
            on_assigned: told of partitions that were added; plain or async, as the others.
            on_revoked: told of partitions that are to be given up.
            on_lost: told of partitions that were lost to others; ``on_revoked`` is without.

        Raises:
            ConfigError: there is no ``group.id``.
            ValueError: partitions are assigned by hand, or one subscribes to names after a pattern
                or the other way round; :meth:`unsubscribe` before. Or there are no topics.
            TypeError: a topic is no text.
        """
        coordinator = self._member()
        if isinstance(topics, re.Pattern):
            self._subscriptions.subscribe_pattern(topics)
        else:
            self._subscriptions.subscribe(topic_names(topics))
        coordinator.callbacks = RebalanceCallbacks(
            assigned=on_assigned, revoked=on_revoked, lost=on_lost
        )
        self._changed()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without a group; an empty list ends that.

        Partitions that were assigned before keep their positions.

        Raises:
            ValueError: topics or a pattern are subscribed to; :meth:`unsubscribe` before. Or there
                can be no such partition.
            TypeError: one is no :class:`.TopicPartition`.
        """
        self._check_open()
        self._subscriptions.assign(topic_partitions(partitions))

    async def unsubscribe(self) -> None:
        """Read nothing any more, and leave the group; what is finished is committed before.

        Raises:
            Exception: what a callback raised; it is unsubscribed all the same.

        Cancellation: it may still be subscribed.
        """
        await trio.lowlevel.checkpoint()
        try:
            if self._coordinator is not None and self._subscriptions.is_group_managed:
                await self._coordinator.leave("the consumer has unsubscribed")
        except Exception:
            self._want_nothing()
            raise
        self._want_nothing()

    def _want_nothing(self) -> None:
        self._subscriptions.unsubscribe()
        self._changed()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read."""
        return self._subscriptions.assigned

    @property
    def subscription(self) -> frozenset[str]:
        """The topics that are subscribed to."""
        return self._subscriptions.topics

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these until :meth:`resume`; the group keeps them assigned.

        Raises:
            ValueError: one is not assigned, as for all that take partitions.
        """
        for each in partitions:
            self._subscriptions.pause(each)

    def resume(self, *partitions: TopicPartition) -> None:
        """Hand out records of these again."""
        for each in partitions:
            self._subscriptions.resume(each)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return self._subscriptions.paused

    # The group.

    def _member(self) -> ConsumerCoordinator:
        self._check_open()
        if self._coordinator is None:
            raise ConfigError("this consumer has no group; set group.id")
        return self._coordinator

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None
    ) -> None:
        """Commit offsets to the group, and wait until that is done.

        Args:
            offsets: of the next record to read; without, those behind all that was handed out,
                with the record in hand.

        Raises:
            ConfigError: there is no ``group.id``.
            ValueError: an offset is negative.
            CommitFailedError: the consumer is not a member of its group any more.
            RebalanceInProgressError: ask for the next record, then commit again.
            FencedInstanceIdError: another has its ``group.instance.id``.
            TrionetError: the coordinator cannot be asked, or refuses.

        Cancellation: the offsets may be committed.
        """
        member = self._member()
        await member.commit(None if offsets is None else offsets_to_commit(offsets))

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed last of each partition; None for nothing.

        Raises:
            ConfigError: there is no ``group.id``.
            TrionetError: the coordinator cannot be asked, or refuses.
        """
        return await self._member().committed(topic_partitions(partitions))

    def rejoin(self, reason: str) -> None:
        """Have the group divide its partitions anew (KIP-568).

        Args:
            reason: what the coordinator is told.

        Raises:
            ConfigError: there is no ``group.id``.
        """
        self._member().rejoin(reason)

    def group_metadata(self) -> GroupMetadata:
        """The group, and this member's id, generation and instance id in it at present.

        Raises:
            ConfigError: there is no ``group.id``.
        """
        return self._member().group_metadata

    # Positions.

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Go on at another offset.

        Args:
            partition: an assigned one.
            offset: of the next record to hand out; 0 or more.
            leader_epoch: of the record before it, if it is known: then a log that was cut since is
                noticed (KIP-320).

        Raises:
            ValueError: there is no such offset, or the partition is not assigned.
        """
        position = FetchPosition(wanted_offset(offset), wanted_epoch(leader_epoch))
        self._subscriptions.seek(partition, position, is_valid=leader_epoch == NO_EPOCH)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go on at the first record that is there; of all assigned partitions if none is named."""
        self._reset(partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on behind the last record; of all assigned partitions if none is named.

        With ``isolation.level=read_committed`` that is where the first open transaction begins.
        """
        self._reset(partitions, LATEST)

    def _reset(self, partitions: tuple[TopicPartition, ...], strategy: ResetStrategy) -> None:
        for each in partitions or tuple(self._subscriptions.partitions):
            self._subscriptions.request_reset(each, strategy)

    def position(self, partition: TopicPartition) -> int | None:
        """The offset of the next record to be handed out; None as long as it is not known.

        Raises:
            ValueError: the partition is not assigned.
        """
        position = self._subscriptions.position(partition)
        return None if position is None else position.offset

    def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets there are from the position to the end of what may be read.

        As of the last answer about the partition; None as long as nothing is known.

        Raises:
            ValueError: the partition is not assigned.
        """
        position = self._subscriptions.position(partition)
        state = self._subscriptions.partitions[partition]
        end = state.high_watermark
        if self._settings.fetch.is_read_committed:
            end = state.last_stable_offset
        return None if end is None or position is None else max(0, end - position.offset)

    def statistics(self) -> ClientStatistics:
        """What this consumer did and holds at the moment, by Kafka's names."""
        return self._client.statistics()

    def connection_problem(self) -> str:
        """Why a broker cannot be reached, for after a ``trio.move_on_after``; empty if all can."""
        return self._client.connection_problem()

    # What logs say.

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after a time in each partition; None where there is none.

        Args:
            times: in milliseconds since 1970; the partitions need not be assigned.

        Raises:
            ValueError: a time is negative.
            CallTimedOutError: there was no answer within ``default.api.timeout.ms``.
            TrionetError: a broker refuses.

        Cancellation: nothing happens.
        """
        if any(each < 0 for each in times.values()):
            raise ValueError("a time is 0 or more, in milliseconds since 1970")
        return await self._questions.ask({topic_partition(each): times[each] for each in times})

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """The first offset that is there; raises as :meth:`offsets_for_times` does."""
        return await self._ends(partitions, EARLIEST_TIMESTAMP)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset behind the last record that may be read; see :meth:`seek_to_end`.

        Raises as :meth:`offsets_for_times` does.
        """
        return await self._ends(partitions, LATEST_TIMESTAMP)

    async def _ends(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        answers = await self._questions.ask(dict.fromkeys(topic_partitions(partitions), timestamp))
        return {each: answer.offset for each, answer in answers.items() if answer is not None}

    async def partitions_of(self, topic: str) -> list[int]:
        """The numbers of a topic's partitions; none if there is no such topic.

        Raises:
            CallTimedOutError: there was no answer within ``default.api.timeout.ms``.
            ApiError: the brokers refuse to tell.

        Cancellation: nothing happens.
        """
        return await self._questions.partitions_of(topic)

    # Records.

    def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        return self._loop

    async def __anext__(self) -> ConsumerRecord:
        """The next record.

        Raises:
            PartitionError: one partition cannot be read; see the subclasses.
            ApiError: the brokers refuse something.
            AuthenticationError: they do not let us in.
            CallTimedOutError: no broker was ever reached, for ``default.api.timeout.ms``; says why.
            trio.BusyResourceError: another task asks for records.
            trio.ClosedResourceError: the consumer is closed.
            ValueError: nothing is subscribed to or assigned.
            Exception: what a callback of a rebalance raised.

        Cancellation: no record is lost; the next call gives the one that this one would have given.
        It is looked for with each record; a full checkpoint is made when what was decoded is used
        up, and at least every millisecond.
        """
        record = self._loop.take()
        if record is not None:
            return record  # noqa: ASYNC910 - one is made each millisecond
        return await self._loop.wait()

    def batches(self) -> AsyncIterator[ConsumerBatch]:
        """Batches of records of one partition each, as columns.

        Each has up to ``max.poll.records``, and counts as finished when the next one is asked for.
        Otherwise as ``async for record in consumer``.
        """
        return BatchLoop(self.next_batch)

    async def next_batch(self) -> ConsumerBatch:
        """One batch of :meth:`batches`; a full checkpoint."""
        chunk = await self._next_chunk()
        return chunk.take(self._settings.records_max)

    async def _next_chunk(self) -> Chunk:
        """Records to be handed out; what was handed out before is finished."""
        with self._asking():
            if self._in_hand is not None:
                self._in_hand.finish()
            await trio.lowlevel.checkpoint()
            coordinator = self._coordinator
            if coordinator is not None:
                coordinator.poll_interval.asked(self._clock())
            if self._client.reachability.was_reached:
                chunk = await self._wait_for_chunk()
            else:
                chunk = await self._wait_for_first_chunk()
        self._in_hand = self._subscriptions.partitions[chunk.name]
        self._loop.checkpoint_at = self._clock() + CHECKPOINT_SECONDS
        return chunk

    async def _wait_for_first_chunk(self) -> Chunk:
        """The same as long as no broker was ever reached: an error ends it then."""
        client, seconds = self._client, self._settings.api_seconds
        while True:
            with client.reachability.until_reached(seconds, client.connection_problem):
                return await self._wait_for_chunk()

    async def _wait_for_chunk(self) -> Chunk:
        coordinator = self._coordinator
        while True:
            self._raise_failure()
            if coordinator is not None and coordinator.needs_poll:
                await coordinator.poll()
                continue  # another task may have closed the consumer, or unsubscribed
            chunk = self._fetcher.next_chunk(self._settings.records_max, self._clock())
            if chunk is not None:
                return chunk  # noqa: ASYNC910 -- its caller has made a checkpoint
            if self._fetcher.inflation is not None:
                await self._fetcher.inflation.run()
            elif coordinator is None:
                await self._news.park()
            else:
                await coordinator.wait(self._news)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        if self._is_asking:
            raise trio.BusyResourceError("another task asks this consumer for records")
        self._loop.records = NOTHING
        self._is_asking = True
        try:
            yield
        finally:
            self._is_asking = False

    def _raise_failure(self) -> None:
        self._check_open()
        error: TrionetError | None = self._failures.take()
        if error is not None:
            self._client.wakeup()  # what failed is tried again
            raise again(error)
        if self._subscriptions.is_empty:
            raise ValueError("this consumer reads nothing; subscribe() or assign() before")

    def _check_open(self) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError("this consumer is closed")

    def _changed(self) -> None:
        """Something else is wanted than before."""
        if self._in_hand is not None and not self._in_hand.is_fetchable:
            self._loop.records = NOTHING
        topics = self._subscriptions.metadata_topics
        if topics is not None:
            topics |= frozenset(self._questions.topics)
        self._client.metadata.want(topics)
        self._client.wakeup()
        self._news.unpark_all()  # what is resumed may be there already

    # The end.

    def finish(self) -> None:
        """What was handed out is finished; for :func:`._open_consumer.open_consumer`."""
        if self._in_hand is not None:
            self._in_hand.finish()

    def end(self) -> None:
        """Hand out nothing any more; for :func:`._open_consumer.open_consumer`."""
        self._is_closed = True
        self._loop.records = NOTHING
        self._loop.checkpoint_at = 0.0
        self._fetcher.close()
        self._news.unpark_all()
