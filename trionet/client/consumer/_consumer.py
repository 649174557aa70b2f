"""The consumer's public API (Kafka: KafkaConsumer)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, final

import trio

from ..._util._raising import again
from ...errors import ApiError, ConfigError, TrionetError, WireFormatError
from ...protocol import error_codes
from .._argument_checks import (
    checked_epoch,
    checked_offset,
    checked_times,
    each_partition,
    offsets_to_commit,
    topic_name,
    topic_names,
    topic_partition,
    topic_partitions,
)
from .._client_metrics import ClientStatistics
from .._not_copied import NotCopied
from .._topic_partition import OffsetAndMetadata, TopicPartition, offset_lag
from ..network._kafka_client import KafkaClient
from ..network._open_client import until_connected
from ._settings import ConsumerSettings
from .coordinator._classic_member import GroupMetadata
from .coordinator._commits import committable
from .coordinator._consumer_coordinator import ConsumerCoordinator
from .coordinator._rebalance_steps import RebalanceCallback, RebalanceCallbacks
from .fetch._fetcher import Fetcher
from .offsets._offset_fetcher import OffsetAndTimestamp, OffsetFetcher
from .offsets._position_requests import is_gone, missing_partition
from .records._chunk import NO_EPOCH, NOTHING, BatchLoop, Chunk, FetchPosition, RecordLoop
from .records._record import ConsumerBatch, ConsumerRecord
from .state._partition_state import PartitionState
from .state._pending_errors import PendingErrors
from .state._reset_strategy import (
    EARLIEST,
    EARLIEST_TIMESTAMP,
    LATEST,
    LATEST_TIMESTAMP,
    ResetStrategy,
)
from .state._subscription_state import SubscriptionState

#: The maximum time between two full checkpoints while records are returned, in seconds.
CHECKPOINT_SECONDS: Final = 0.001
_CLOSED: Final = "this consumer is closed"


@final
class Consumer(NotCopied):
    """A Kafka consumer. Use :func:`.open_consumer` to open one.

    ``async for record in consumer`` yields one record at a time, and ends only if :meth:`stop_at`
    was called. A record is finished when the next one is requested, by whatever loop or call, or
    when the program commits it. Until then it is not auto-committed: neither an interval nor the
    end of a loop or a block proves that it was handled. Only one task at a time may read records;
    any other task that tries gets a ``trio.BusyResourceError``.

    Like Kafka's consumer, the class has more than 25 methods, because users expect a single object.
    """

    def __init__(self) -> None:
        raise TypeError("use trionet.open_consumer() to open a consumer")

    def _begin(
        self,
        client: KafkaClient,
        subscriptions: SubscriptionState,
        fetcher: Fetcher,
        errors: PendingErrors,
        settings: ConsumerSettings,
        loop: RecordLoop,
        parking_lot: trio.lowlevel.ParkingLot,
        coordinator: ConsumerCoordinator | None,
        offset_fetcher: OffsetFetcher,
    ) -> None:
        """Set up a consumer from its parts. Called by :func:`.open_consumer`.

        Args:
            client: polled by the network task.
            subscriptions: holds the subscription, the assignment and the positions.
            fetcher: fetches records.
            errors: errors of the background tasks, which the next request for a record raises.
            settings: the settings of the consumer.
            loop: returns decoded records, which it gets from :meth:`_next_chunk`.
            parking_lot: where the reading task waits for records.
            coordinator: the consumer's group membership; None without a group.
            offset_fetcher: looks up offsets.
        """
        self._client = client
        self._subscriptions = subscriptions
        self._fetcher = fetcher
        self._errors = errors
        self._settings = settings
        self._parking_lot = parking_lot
        self._coordinator = coordinator
        self._offset_fetcher = offset_fetcher
        self._clock = trio.lowlevel.current_clock().current_time
        self._loop = loop
        self._in_hand: PartitionState | None = None
        self._is_reading = self._is_closed = False
        self._updates = -1  # of the metadata, for _check_stops
        subscriptions.assignment.on_change = self._position_changed

    # Subscription and assignment.

    def subscribe(
        self,
        topics: str | Iterable[str] | re.Pattern[str],
        *,
        on_assigned: RebalanceCallback | None = None,
        on_revoked: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Subscribe to topics, replacing any current subscription; the group assigns partitions.

        The callbacks run in the task that reads records, before the next record is returned; see
        :class:`.RebalanceCallbacks`.

        Args:
            topics: topic names, or a pattern that must match a topic's full name. A pattern also
                matches topics that are created later. A name that would take it long is matched in
                a bounded number of steps, as other users choose the names; of syntax that only
                Python has, such as ``(?P<name>...)``, ``re`` alone can say, however long it takes.
            on_assigned: called with the partitions that were added. This and the other callbacks
                may be plain or async functions.
            on_revoked: called with the partitions that are about to be revoked.
            on_lost: called with partitions that other members may already own; if omitted,
                ``on_revoked`` is called instead.

        Raises:
            ConfigError: there is no ``group.id``.
            ValueError: ``topics`` or a topic name is empty; or partitions are assigned manually, or
                the subscription would change from names to a pattern or vice versa, in which case
                call :meth:`unsubscribe` first.
            TypeError: a topic is not a str.
            trio.ClosedResourceError: the consumer is closed.
        """
        coordinator = self._member()
        if isinstance(topics, re.Pattern):
            self._subscriptions.subscribe_pattern(topics)
            coordinator.pattern_changed()
        else:
            self._subscriptions.subscribe(topic_names(topics))
        coordinator.listeners.callbacks = RebalanceCallbacks(
            assigned=on_assigned, revoked=on_revoked, lost=on_lost
        )
        self._changed()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign exactly these partitions manually, without using the group.

        Partitions that are already assigned keep their positions.

        Args:
            partitions: the partitions, possibly none; their topics need not exist yet.

        Raises:
            ValueError: there is a subscription (call :meth:`unsubscribe` first), a topic name is
                empty, or a partition number is negative.
            TypeError: an item is not a :class:`.TopicPartition`.
            trio.ClosedResourceError: the consumer is closed.
        """
        self._check_open()
        if self._subscriptions.assign(topic_partitions(partitions)):
            self._changed()

    async def unsubscribe(self) -> None:
        """Commit finished records, leave the group, and drop the subscription or assignment.

        Raises:
            Exception: raised by a callback; the consumer is unsubscribed nevertheless.

        Cancellation: the consumer may still be subscribed.
        """
        self._client.check_thread()
        await trio.lowlevel.checkpoint()
        try:
            if self._coordinator is not None:
                await self._coordinator.leave("the consumer has unsubscribed")
        except Exception:
            self._clear_subscription()
            raise
        self._clear_subscription()

    def _clear_subscription(self) -> None:
        self._subscriptions.unsubscribe()
        self._changed()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions assigned to this consumer."""
        return self._subscriptions.assignment.partitions

    @property
    def subscription(self) -> frozenset[str]:
        """The topics of the subscription."""
        return self._subscriptions.topics

    def pause(self, *partitions: TopicPartition) -> None:
        """Stop returning records from these partitions until :meth:`resume`; they stay assigned.

        Args:
            partitions: assigned partitions.

        Raises:
            TypeError: an argument is not a :class:`.TopicPartition`.
            ValueError: a partition is not assigned.
        """
        checked = each_partition(partitions)
        self._subscriptions.assignment.require(checked)
        for each in checked:
            self._subscriptions.assignment.pause(each)

    def resume(self, *partitions: TopicPartition) -> None:
        """Resume returning records from these partitions.

        Args:
            partitions: assigned partitions, which need not be paused.

        Raises:
            TypeError: an argument is not a :class:`.TopicPartition`.
            ValueError: a partition is not assigned.
        """
        checked = each_partition(partitions)
        self._subscriptions.assignment.require(checked)
        for each in checked:
            self._subscriptions.assignment.resume(each)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused."""
        return self._subscriptions.assignment.paused

    def stop_at(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Stop reading partitions at these offsets, such as those of :meth:`end_offsets`.

        No record at or after its partition's offset is returned. When every assigned partition has
        reached its offset, iteration ends. That is decided by position, so it also ends if the last
        offsets hold no records that can be read, as after compaction or a transaction.

        The offsets are forgotten when the partitions are no longer assigned.

        If a partition is deleted before its offset has been reached, or its topic is created anew,
        an :class:`.ApiError` with the code ``UNKNOWN_TOPIC_OR_PARTITION`` is raised once no records
        are left. If the end of its log moves back, as after an unclean leader election, reading
        continues when the log has grown to the offset again.

        Args:
            offsets: the offset to stop before, for each partition, which must be assigned.

        Raises:
            ValueError: an offset is out of range, or a partition is not assigned.
        """
        checked = {topic_partition(each): checked_offset(at) for each, at in offsets.items()}
        self._subscriptions.assignment.require(checked)
        for each, offset in checked.items():
            self._subscriptions.assignment.stop_at(each, offset)
        self._updates = -1

    # The group.

    def _member(self) -> ConsumerCoordinator:
        self._check_open()
        if self._coordinator is None:
            raise ConfigError("this consumer has no group; set group.id")
        return self._coordinator

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None
    ) -> None:
        """Commit offsets for the group, and wait for the response.

        Args:
            offsets: the offset of the next record to read from each partition; by default, the
                offset after the last record returned from each partition, including the current
                record. Records before these offsets are finished, even if the commit fails.

        Raises:
            ConfigError: there is no ``group.id``.
            ValueError: an offset is negative or too large, or a partition is invalid.
            TypeError: a partition or an offset is of the wrong type.
            trio.ClosedResourceError: the consumer is closed.
            CommitFailedError: the consumer is no longer a member of its group.
            RebalanceInProgressError: the group is rebalancing; request the next record, then commit
                again.
            FencedInstanceIdError: another consumer uses the same ``group.instance.id``.
            TrionetError: the coordinator cannot be reached, or rejects the commit.

        Cancellation: the offsets may have been committed.
        """
        member = self._member()
        await member.commit(None if offsets is None else offsets_to_commit(offsets))

    async def _commit_existing(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets, except those of partitions that no longer exist.

        For :func:`.process_records`, whose user does not choose what to commit. A deleted topic
        must not hold up the commits of the others.

        Raises:
            TrionetError: see :meth:`commit`.
        """
        await self._member().commit(offsets, omits_gone=True)

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the last committed offset of each partition; None if there is none.

        Args:
            partitions: the partitions, which need not be assigned.

        Raises:
            ConfigError: there is no ``group.id``.
            TrionetError: the coordinator cannot be reached, or rejects the request.
            TypeError: an item is not a :class:`.TopicPartition`.
            ValueError: a topic name is empty, or a partition number is negative.
            trio.ClosedResourceError: the consumer is closed.

        Cancellation: safe at any point; the consumer's state is unchanged.
        """
        return await self._member().committed(topic_partitions(partitions))

    def rejoin(self, reason: str) -> None:
        """Rejoin the group at the next request for a record, which triggers a rebalance (KIP-568).

        Args:
            reason: why the group should rebalance; logged by the coordinator.

        Raises:
            ConfigError: there is no ``group.id``.
            trio.ClosedResourceError: the consumer is closed.
        """
        self._member().rejoin(reason)

    def group_metadata(self) -> GroupMetadata:
        """Return this consumer's identity in its group, for :meth:`.Transaction.send_offsets`.

        It is the identity under which the group assigned the current partitions. It does not change
        when the membership is lost, so that brokers then reject it, but with the next assignment.

        Raises:
            ConfigError: there is no ``group.id``.
            trio.ClosedResourceError: the consumer is closed.
        """
        return self._member().group_metadata

    def _offsets_to_send(
        self, since: int
    ) -> tuple[GroupMetadata, dict[TopicPartition, OffsetAndMetadata], Callable[[], object]]:
        """See :meth:`.ConsumerCoordinator.offsets_to_send`; for :meth:`.Transaction.send_offsets`.

        Raises:
            ConfigError: there is no ``group.id``.
            CommitFailedError: partitions were given up whose records are in the transaction.
            trio.ClosedResourceError: the consumer is closed.
        """
        return self._member().offsets_to_send(since)

    @property
    def commits_automatically(self) -> bool:
        """Whether the consumer commits the offsets of its group by itself (enable.auto.commit)."""
        return self._coordinator is not None and self._coordinator.commits_automatically

    # Positions.

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Set the position in a partition to an offset.

        Args:
            partition: an assigned partition.
            offset: the offset of the next record to return; 0 or more.
            leader_epoch: the leader epoch of the preceding record, if known, which is used to
                detect log truncation (KIP-320); -1 if unknown.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: an argument is out of range, or the partition is not assigned.
        """
        name = topic_partition(partition)
        position = FetchPosition(checked_offset(offset), checked_epoch(leader_epoch))
        self._subscriptions.assignment.seek(name, position, is_valid=leader_epoch == NO_EPOCH)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Move the positions in these partitions to the first available record.

        The offsets are looked up in the background. If a lookup fails, the next request for a
        record raises the error.

        Args:
            partitions: assigned partitions; by default, all of them.

        Raises:
            TypeError: an argument is not a :class:`.TopicPartition`.
            ValueError: a partition is not assigned.
        """
        self._reset(partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Move the positions in these partitions to the offset after the last record.

        With ``isolation.level=read_committed``, that offset is the start of the first open
        transaction, if there is one. As with :meth:`seek_to_beginning`, the offsets are looked up
        in the background.

        Args:
            partitions: assigned partitions; by default, all of them.

        Raises:
            TypeError: an argument is not a :class:`.TopicPartition`.
            ValueError: a partition is not assigned.
        """
        self._reset(partitions, LATEST)

    def _reset(self, partitions: tuple[TopicPartition, ...], strategy: ResetStrategy) -> None:
        checked = each_partition(partitions)
        self._subscriptions.assignment.require(checked)
        for each in checked or list(self._subscriptions.assignment.states):
            self._subscriptions.assignment.request_reset(each, strategy)

    def position(self, partition: TopicPartition) -> int | None:
        """Return the offset of the next record to be returned; None while it is unknown.

        Args:
            partition: an assigned partition.

        Raises:
            TypeError: the argument is not a :class:`.TopicPartition`.
            ValueError: the partition is not assigned.
        """
        position = self._subscriptions.assignment.position(topic_partition(partition))
        return None if position is None else position.offset

    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the position in each assigned partition that has one, as :meth:`commit` uses it.

        It is the offset after the last record returned, including the current one.
        """
        return committable(self._subscriptions.assignment.positions())

    def lag(self, partition: TopicPartition) -> int | None:
        """Return the number of offsets from the position to the end of the readable records.

        The end is taken from the last fetch response for the partition. The lag is None before the
        first response, and while the position is unknown.

        Args:
            partition: an assigned partition.

        Raises:
            TypeError: the argument is not a :class:`.TopicPartition`.
            ValueError: the partition is not assigned.
        """
        name = topic_partition(partition)
        position = self._subscriptions.assignment.position(name)
        state = self._subscriptions.assignment.states[name]
        end = state.high_watermark
        if self._settings.fetch.is_read_committed:
            end = state.last_stable_offset
        return offset_lag(None if position is None else position.offset, end)

    def statistics(self) -> ClientStatistics:
        """Return the consumer's current metrics, keyed by Kafka's metric names."""
        return self._client.metrics.statistics(self._clock())

    def connection_problem(self) -> str:
        """Return why records cannot be read, or an empty string if no problem is known.

        The problem is a broker that cannot be reached, or an assigned partition that does not
        exist. Useful for explaining why a ``trio.move_on_after`` around a call has expired.
        """
        problem = self._client.connection_problem()
        cluster, assigned = self._client.metadata.cluster, self._subscriptions.assignment.states
        return problem or missing_partition(cluster, assigned)

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
            trio.ClosedResourceError: the consumer is closed.
        """
        await until_connected(self._client)

    # Offsets of logs.

    async def offsets_for_times(
        self, times: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look up the first record at or after the given timestamp in each partition.

        The result for a partition is None if it has no such record.

        Args:
            times: the timestamp for each partition, in milliseconds since the epoch; the partitions
                need not be assigned.

        Raises:
            ValueError: a topic name is empty, or a timestamp or partition number is negative.
            TypeError: a key is not a :class:`.TopicPartition`, or a timestamp is not an int.
            CallTimedOutError: there was no response within ``default.api.timeout.ms``.
            TrionetError: a broker rejected the request, or returned an offset that no log has.

        Cancellation: safe at any point; the consumer's state is unchanged.
        """
        return await self._offset_fetcher.fetch(checked_times(times))

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Look up the offset of the first record in each partition (Kafka: beginningOffsets).

        Args:
            partitions: the partitions, which need not be assigned.

        Raises:
            TypeError: an item is not a :class:`.TopicPartition`.
            ValueError: a topic name is empty, or a partition number is negative.
            CallTimedOutError: there was no response within ``default.api.timeout.ms``.
            TrionetError: a broker rejected the request, or returned an offset that no log has.

        Cancellation: safe at any point; the consumer's state is unchanged.
        """
        return await self._ends(partitions, EARLIEST_TIMESTAMP)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Look up the offset after each partition's last readable record; see :meth:`seek_to_end`.

        Args:
            partitions: the partitions, which need not be assigned.

        Raises:
            TypeError: an item is not a :class:`.TopicPartition`.
            ValueError: a topic name is empty, or a partition number is negative.
            CallTimedOutError: there was no response within ``default.api.timeout.ms``.
            TrionetError: a broker rejected the request, or returned an offset that no log has.

        Cancellation: safe at any point; the consumer's state is unchanged.
        """
        return await self._ends(partitions, LATEST_TIMESTAMP)

    async def _ends(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> dict[TopicPartition, int]:
        found = await self._offset_fetcher.fetch(
            dict.fromkeys(topic_partitions(partitions), timestamp)
        )
        ends: dict[TopicPartition, int] = {}
        for each, found_at in found.items():
            if found_at is None:
                raise WireFormatError(
                    f"the leader of {each} returned no offset, but a log has ends"
                )
            ends[each] = found_at.offset
        return ends

    async def partitions_of(self, topic: str) -> list[int]:
        """Return a topic's partition numbers; an empty list if the topic does not exist.

        Args:
            topic: the name of the topic.

        Raises:
            TypeError: the topic is not a str.
            ValueError: the topic is empty.
            CallTimedOutError: there was no response within ``default.api.timeout.ms``.
            ApiError: a broker rejected the request.

        Cancellation: safe at any point; the consumer's state is unchanged.
        """
        return await self._offset_fetcher.partitions_of(topic_name(topic))

    # Records.

    def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        return self._loop

    async def __anext__(self) -> ConsumerRecord:
        """Return the next record.

        Raises:
            PartitionError: a partition cannot be read; see the subclasses.
            ApiError: a broker rejected a request.
            AuthenticationError: a broker rejected the client's credentials.
            CallTimedOutError: the client has never reached a broker, and none could be reached
                within ``default.api.timeout.ms``; the message says why.
            trio.BusyResourceError: another task is reading.
            trio.ClosedResourceError: the consumer is closed.
            ValueError: there is no subscription and no assignment.
            StopAsyncIteration: the offsets of :meth:`stop_at` have been reached.
            Exception: raised by a rebalance callback.

        Cancellation: no record is lost; the next call returns the record that this call would have
        returned. Every call checks for cancellation. A full checkpoint is executed when no decoded
        records are left, and at least every millisecond.
        """
        record = self._loop.take()
        if record is not None:
            return record  # noqa: ASYNC910 - a checkpoint is made every millisecond
        return await self._loop.wait()

    def batches(self) -> AsyncIterator[ConsumerBatch]:
        """Iterate over batches, each of which holds records of one partition, as columns.

        A batch has at most ``max.poll.records`` records, and is finished when the next batch is
        requested. In all other respects, this is like ``async for record in consumer``.
        """
        return BatchLoop(self.next_batch)

    async def next_batch(self) -> ConsumerBatch:
        """Return the next batch, as in :meth:`batches`; the preceding one is finished then.

        This is always a full checkpoint.

        Raises:
            Exception: see :meth:`__anext__`.

        Cancellation: no record is lost; the next call returns the batch that this call would have
        returned.
        """
        chunk = await self._next_chunk()
        return chunk.take(self._settings.records_max)

    def next_batch_nowait(self) -> ConsumerBatch:
        """Return the next batch if it has been fetched; the preceding one is finished then.

        For programs that poll, and for a last look after a time limit. It never yields to other
        tasks, and takes no part in a rebalance: a member of a group must also call
        :meth:`next_batch` or iterate, which join the group and call the callbacks.

        Raises:
            trio.WouldBlock: no records have been fetched, or a step of a rebalance comes first.
            StopAsyncIteration: the offsets of :meth:`stop_at` have been reached.
            Exception: see :meth:`__anext__`.
        """
        with self._single_reader():
            self._requested()
            self._raise_failure()
            coordinator = self._coordinator
            if coordinator is not None and coordinator.needs_poll:
                raise trio.WouldBlock
            chunk = self._fetcher.next_chunk(self._settings.records_max, self._clock())
            if chunk is None:
                if self._subscriptions.assignment.are_all_stopped:
                    raise StopAsyncIteration
                self._check_stops()
                decompression = self._fetcher.decompression
                if decompression is not None and not decompression.has_started:
                    self._client.background.start_soon(decompression.run)
                raise trio.WouldBlock
            return self._hand_out(chunk).take(self._settings.records_max)

    def put_back(self) -> None:
        """Return the last record or batch once more, unless it is finished.

        For a program that was cut short while it handled a record, as by a time limit, and goes on
        with the same consumer. Without this call, its next request finishes that record. If the
        partition was given up meanwhile, the record is left to the new owner.

        Raises:
            trio.BusyResourceError: a task is reading.
            trio.ClosedResourceError: the consumer is closed.
        """
        self._check_open()
        with self._single_reader():
            if self._in_hand is not None:
                self._in_hand.put_back()
        self._position_changed()

    async def _next_chunk(self) -> Chunk:
        """Mark the preceding records as finished, and wait for more records."""
        self._client.check_thread()
        with self._single_reader():
            self._requested()
            await trio.lowlevel.checkpoint()
            if self._client.reachability.was_reached:
                chunk = await self._wait_for_chunk()
            else:
                chunk = await self._wait_for_first_chunk()
        if chunk is None:
            raise StopAsyncIteration
        return self._hand_out(chunk)

    def _requested(self) -> None:
        """Note a request for records, which finishes the preceding ones."""
        self._finish()
        if self._coordinator is not None:
            self._coordinator.poll_interval.polled(self._clock())

    def _finish(self) -> None:
        """Mark all records that were returned as finished; no request for a record follows."""
        if self._in_hand is not None:
            self._in_hand.finish()

    def _hand_out(self, chunk: Chunk) -> Chunk:
        self._in_hand = self._subscriptions.assignment.states[chunk.name]
        self._loop.checkpoint_at = self._clock() + CHECKPOINT_SECONDS
        return chunk

    async def _wait_for_first_chunk(self) -> Chunk | None:
        """Wait for a chunk; raise if no broker can be reached within ``default.api.timeout.ms``."""
        client, seconds = self._client, self._settings.api_timeout_seconds
        while True:
            with client.reachability.until_reached(seconds, lambda: client.metadata.cluster):
                return await self._wait_for_chunk()

    async def _wait_for_chunk(self) -> Chunk | None:
        """Return the next records; None if reading has stopped in every partition."""
        coordinator = self._coordinator
        while True:
            self._raise_failure()
            if coordinator is not None and coordinator.needs_poll:
                await coordinator.poll()
                continue  # meanwhile another task may have closed the consumer, or unsubscribed
            chunk = self._fetcher.next_chunk(self._settings.records_max, self._clock())
            if chunk is not None or self._subscriptions.assignment.are_all_stopped:
                return chunk  # noqa: ASYNC910 -- its caller has made a checkpoint
            self._check_stops()
            if self._fetcher.decompression is not None:
                await self._fetcher.decompression.run()
            elif coordinator is None:
                await self._parking_lot.park()
            else:
                await coordinator.wait(self._parking_lot)

    def _check_stops(self) -> None:
        """Check that the offsets of :meth:`stop_at` can still be reached, as far as is known.

        Called when no records are left, once per update of the metadata.
        """
        metadata = self._client.metadata
        if metadata.updates == self._updates:
            return
        for each, state in self._subscriptions.assignment.states.items():
            if state.stop_offset is None or state.is_stopped:
                continue
            topic = metadata.cluster.topics.get(each.topic)
            if topic is None:
                continue
            if is_gone(metadata.cluster, each):
                raise _unreachable(f"{each} no longer exists", state.stop_offset)
            if state.stop_topic not in {None, topic.id}:
                raise _unreachable(f"topic {each.topic} was created anew", state.stop_offset)
            state.stop_topic = topic.id
        self._updates = metadata.updates

    @contextmanager
    def _single_reader(self) -> Iterator[None]:
        if self._is_reading:
            raise trio.BusyResourceError("another task is reading from this consumer")
        self._loop.records = NOTHING
        self._is_reading = True
        try:
            yield
        finally:
            self._is_reading = False

    def _raise_failure(self) -> None:
        self._check_open()
        error: TrionetError | None = self._errors.take()
        if error is not None:
            self._client.wakeup()  # the failed partitions are tried again
            raise again(error)
        if self._subscriptions.is_empty:
            raise ValueError("nothing to read: call subscribe() or assign() first")

    def _check_open(self) -> None:
        self._client.check_thread()
        if self._is_closed:
            raise trio.ClosedResourceError(_CLOSED)

    def _changed(self) -> None:
        """React to a change of the topics whose metadata is needed, and of what follows."""
        self._client.metadata.set_topics(self._subscriptions.metadata_topics)
        self._position_changed()

    def _position_changed(self) -> None:
        """React to a change of positions or of what is assigned; visits no partitions or topics."""
        if self._in_hand is not None and not self._in_hand.is_fetchable:
            self._loop.records = NOTHING
        self._client.wakeup()
        self._parking_lot.unpark_all()  # records of resumed partitions may already be buffered

    # Closing.

    def _end(self) -> None:
        """Stop returning records. Called by :func:`.open_consumer`.

        No cycle of references keeps a closed consumer or its records in memory.
        """
        self._is_closed = True
        for state in self._subscriptions.assignment.states.values():
            state.refetch()
        self._subscriptions.assignment.on_change = _do_nothing
        self._loop.next_chunk = _closed
        self._loop.records = NOTHING
        self._loop.checkpoint_at = 0.0
        self._fetcher.close()
        self._parking_lot.unpark_all()


async def _closed() -> Chunk:
    await trio.lowlevel.checkpoint()
    raise trio.ClosedResourceError(_CLOSED)


def _do_nothing() -> None:
    """React to no change of a closed consumer."""


def _unreachable(why: str, offset: int) -> ApiError:
    message = f"{why}, so offset {offset}, at which reading should end, cannot be reached"
    return ApiError(error_codes.UNKNOWN_TOPIC_OR_PARTITION, message)
