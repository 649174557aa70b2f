"""Handling the records of a group's topics concurrently, with commits of what has finished.

One task reads, and never stops asking for records, because partitions are assigned and revoked
while it asks. If enough records wait for a handler, the partitions are paused instead.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Final, Unpack

import attrs
import trio

from ..._util._logging import get_logger
from ..._util._raising import raise_single_error
from ..._util._text import counted
from ...errors import ApiError, ConfigError, RebalanceInProgressError, TrionetError
from ...net._network import SYSTEM, Network
from .._argument_checks import integer
from .._topic_partition import OffsetAndMetadata, TopicPartition
from ..config._keywords import ConsumerKeywords
from ..security._settings import TokenProvider
from ._consumer import Consumer
from ._open_consumer import open_consumer
from ._settings import ConsumerSettings, consumer_settings
from .coordinator._classic_member import GroupSettings
from .coordinator._commits import REPEAT_SECONDS
from .processing._backlog import Backlog, Job, Order
from .processing._offset_tracker import OffsetTracker
from .records._record import ConsumerBatch, ConsumerRecord

logger = get_logger("trionet.client.consumer")

Handler = Callable[[ConsumerRecord], Awaitable[object]]
#: The maximum number of records of a partition from the first unfinished one on, which are handled
#: again after a crash.
WINDOW_MAX: Final = 10_000
_ORDERS: Final = (None, "key", "partition")  # no set, since an argument may not be hashable


async def process_records(
    bootstrap_servers: str | Iterable[str],
    topics: str | Iterable[str] | re.Pattern[str],
    handler: Handler,
    config: Mapping[str, object] | ConsumerSettings | None = None,
    *,
    concurrency: int,
    order: Order | None = None,
    network: Network = SYSTEM,
    token_provider: TokenProvider | None = None,
    task_status: trio.TaskStatus[Consumer] = trio.TASK_STATUS_IGNORED,
    **keywords: Unpack[ConsumerKeywords],
) -> None:
    """Call a handler with each record of a group's topics, several at a time, until cancelled.

    Records finish in any order. What is committed is, for each partition, the offset of the first
    record that has not finished, every ``auto.commit.interval.ms``, before a partition is given up,
    and at the end. So every record is handled at least once: after a crash or a rebalance, the
    records from there on are handled again.

    An error of a handler cancels the other handlers and is raised. The records that have finished
    are committed up to the failed one.

    When a partition is revoked, its records that have not started are dropped, and its running
    handlers are waited for, for at most half of ``max.poll.interval.ms``; then they are cancelled.
    If it is lost, since this member was removed from the group, they are cancelled at once, and
    nothing is committed.

    At most ``concurrency`` handlers run, and as many records wait, plus one batch of
    ``max.poll.records``. A partition is paused while 10,000 of its records follow one that has not
    finished.

    Args:
        bootstrap_servers: see :func:`.open_consumer`.
        topics: see :meth:`.Consumer.subscribe`.
        handler: an async function that is called with a record.
        config: see :func:`.open_consumer`; ``group.id`` is required.
        concurrency: the maximum number of handlers that run at the same time.
        order: ``"key"`` to handle records of a partition with the same key one after another,
            ``"partition"`` for all records of a partition; by default, there is no order.
        network: see :func:`.open_consumer`.
        token_provider: see :func:`.open_consumer`.
        task_status: reports the consumer, for its statistics, when it has been opened.
        keywords: see :func:`.open_consumer`.

    Raises:
        Exception: raised by the handler.
        ExceptionGroup: several handlers have failed at the same time.
        ConfigError: see :func:`.open_consumer`; or there is no ``group.id``, or
            ``enable.auto.commit`` is false.
        ValueError: ``concurrency`` or ``order`` is not allowed.
        TypeError: ``handler`` is not an async function, or ``concurrency`` is not an int.
        TrionetError: records could not be read, or commits are rejected; see
            :meth:`.Consumer.next_batch`.

    Cancellation: the handlers are cancelled; what has finished is committed, within a second. While
    the group is rebalancing, it cannot be committed, and is handled again.
    """
    _check_handler(handler)
    concurrency = integer("concurrency", concurrency)
    if concurrency < 1:
        raise ValueError(f"concurrency = {concurrency} must be 1 or more")
    if order not in _ORDERS:
        raise ValueError(f"order = {order!r} must be 'key', 'partition' or None")
    settings = consumer_settings(config, keywords, token_provider)
    group, commit_seconds = _group(settings)
    # Half, because the broker measures the interval from the start of the rebalance, and joining
    # takes time as well.
    revoke_seconds = group.max_poll_interval_seconds / 2
    processing = _Processing(handler, concurrency, order, commit_seconds, revoke_seconds)
    # The offsets are committed here: the consumer would commit what was merely handed out.
    by_hand = attrs.evolve(settings, group=attrs.evolve(group, auto_commit_seconds=None))
    async with open_consumer(
        bootstrap_servers,
        by_hand,
        topics=topics,
        on_assigned=processing.assigned,
        on_revoked=processing.revoked,
        on_lost=processing.lost,
        network=network,
    ) as consumer:
        task_status.started(consumer)
        await processing.run(consumer)


def _check_handler(handler: Any) -> None:
    """Check what can be known about a handler before there is a record.

    A lambda, or an object of another kind, may return what an async function returns.

    Raises:
        TypeError: it is a function that was written without async, or cannot be called.
    """
    function = handler.func if isinstance(handler, partial) else handler
    if not callable(function):
        raise _not_async(handler)
    is_def = inspect.isfunction(function) or inspect.ismethod(function)
    # A decorator may wrap an async function, or make one of a function that blocks.
    layers = (function, inspect.unwrap(function))
    is_async = any(inspect.iscoroutinefunction(each) for each in layers)
    if is_def and function.__name__ != "<lambda>" and not is_async:
        raise _not_async(handler)


def _not_async(handler: object) -> TypeError:
    return TypeError(f"handler {handler!r} is not an async function: write async def")


def _group(settings: ConsumerSettings) -> tuple[GroupSettings, float]:
    """Return the group settings and the commit interval in seconds."""
    group = settings.group
    if group is None:
        raise ConfigError("process_records() commits offsets for a group; set group.id")
    if group.auto_commit_seconds is None:
        raise ConfigError(
            "enable.auto.commit = False: process_records() commits what its handlers have finished;"
            " leave out enable.auto.commit, or use open_consumer() to commit by hand"
        )
    return group, group.auto_commit_seconds


class _Processing:
    """One run of :func:`process_records`.

    Args:
        handler: the user's function.
        concurrency: the maximum number of running handlers.
        order: which records are handled one after another.
        commit_seconds: the time between commits, in seconds.
        revoke_seconds: how long to wait for the handlers of a revoked partition, in seconds.
    """

    def __init__(
        self,
        handler: Handler,
        concurrency: int,
        order: Order | None,
        commit_seconds: float,
        revoke_seconds: float,
    ) -> None:
        self._handler = handler
        self._concurrency = concurrency
        self._commit_seconds = commit_seconds
        self._revoke_seconds = revoke_seconds
        self._backlog = Backlog(order)
        self._trackers: dict[TopicPartition, OffsetTracker] = {}
        self._running: dict[TopicPartition, set[trio.CancelScope]] = {}
        self._workers = 0
        self._ended = trio.Event()  # set when a handler has ended
        self._is_full = False
        self._stalled: set[TopicPartition] = set()

    async def run(self, consumer: Consumer) -> None:
        """Handle records until cancelled, or until a handler fails."""
        self._consumer = consumer
        with raise_single_error():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._commit_regularly)
                async for batch in consumer.batches():
                    self._take(batch)
                    while self._workers < self._concurrency:
                        job = self._backlog.start()
                        if job is None:
                            break
                        self._workers += 1
                        nursery.start_soon(self._work, job)
                    self._pause(batch.topic_partition)

    # Records.

    def _take(self, batch: ConsumerBatch) -> None:
        partition, first = batch.topic_partition, batch.offsets[0]
        tracker = self._trackers.get(partition)
        if tracker is None or first < tracker.position:  # or the log was truncated
            tracker = self._trackers[partition] = OffsetTracker(first)
        position = self._consumer.position(partition)
        assert position is not None, "it has just handed out records"
        tracker.take(batch.offsets, position, batch.leader_epoch)
        self._backlog.add([Job(record, partition, tracker) for record in batch])

    async def _work(self, job: Job) -> None:
        """Handle records, one after another, while there are any that may start."""
        while True:
            await self._handle(job)
            self._backlog.finish(job)
            self._resume()
            self._resume_stalled(job)
            following = self._backlog.start()
            if following is None:
                self._workers -= 1
                return
            job = following

    async def _handle(self, job: Job) -> None:
        scopes = self._running.setdefault(job.partition, set())
        with trio.CancelScope() as scope:
            scopes.add(scope)
            try:
                await trio.lowlevel.checkpoint()  # the handler may have none
                outcome = self._handler(job.record)
                if not inspect.isawaitable(outcome):
                    raise _not_async(self._handler)
                await outcome
            finally:
                scopes.discard(scope)
                self._ended.set()
        if not scope.cancelled_caught:
            job.tracker.finish(job.record.offset)

    # Back-pressure: partitions are paused, since the reader must go on asking for records.

    def _pause(self, partition: TopicPartition) -> None:
        """Pause everything while enough records wait, or a partition that has a stuck record."""
        if not self._is_full and len(self._backlog) >= self._concurrency:
            self._is_full = True
            self._consumer.pause(*self._consumer.assignment)
        if len(self._trackers[partition]) >= WINDOW_MAX:
            self._stalled.add(partition)
            self._consumer.pause(partition)

    def _resume(self) -> None:
        if self._is_full and len(self._backlog) <= self._concurrency // 2:
            self._is_full = False
            self._consumer.resume(*(self._consumer.assignment - self._stalled))

    def _resume_stalled(self, job: Job) -> None:
        if job.partition in self._stalled and len(job.tracker) <= WINDOW_MAX // 2:
            self._stalled.remove(job.partition)
            if not self._is_full:
                self._consumer.resume(job.partition)

    # Rebalances. These run in the reader, which does not get records meanwhile.

    def assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Pause new partitions if enough records wait already."""
        self._resume()
        if self._is_full:
            self._consumer.pause(*partitions)

    async def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Let the handlers of these partitions finish, and commit.

        Cancellation: the next call continues.
        """
        self._backlog.drop(partitions)
        with trio.move_on_after(self._revoke_seconds):
            await self._until_ended(partitions)
        await self._cancel_handlers(partitions)
        await self._commit()
        self._forget(partitions)

    async def lost(self, partitions: Collection[TopicPartition]) -> None:
        """Stop handling records that another member may be handling by now."""
        self._backlog.drop(partitions)
        await self._cancel_handlers(partitions)
        self._forget(partitions)

    async def _cancel_handlers(self, partitions: Collection[TopicPartition]) -> None:
        for each in partitions:
            for scope in self._running.get(each, ()):
                scope.cancel(reason=f"{each} now belongs to another consumer")
        await self._until_ended(partitions)

    async def _until_ended(self, partitions: Collection[TopicPartition]) -> None:
        await trio.lowlevel.checkpoint()
        while any(self._running.get(each) for each in partitions):
            self._ended = trio.Event()
            await self._ended.wait()

    def _forget(self, partitions: Collection[TopicPartition]) -> None:
        for each in partitions:
            self._trackers.pop(each, None)
            self._running.pop(each, None)
            self._stalled.discard(each)
        self._resume()

    # Commits.

    async def _commit_regularly(self) -> None:
        repeated_at = trio.current_time()
        while True:
            await trio.sleep(self._commit_seconds)
            now = trio.current_time()
            repeats = now - repeated_at >= REPEAT_SECONDS
            await self._commit(repeats=repeats)
            repeated_at = now if repeats else repeated_at

    async def _commit(self, *, repeats: bool = False) -> None:
        """Commit what has finished; what cannot be committed now is committed later.

        Args:
            repeats: whether to commit unchanged offsets again, too.
        """
        await trio.lowlevel.checkpoint()
        self._pass_invisible_offsets()
        offsets = {
            each: OffsetAndMetadata(tracker.committable, "", tracker.leader_epoch())
            for each, tracker in self._trackers.items()
            if repeats or tracker.committable > tracker.committed
        }
        trackers = {each: self._trackers[each] for each in offsets}
        failure: TrionetError | None = None
        try:
            await self._consumer._commit_existing(offsets)  # noqa: SLF001 -- of this package
        except TrionetError as error:
            failure = error
        if failure is None:
            for each, offset in offsets.items():
                trackers[each].committed = offset.offset
        elif isinstance(failure, RebalanceInProgressError):
            return  # before the partitions are given up, they are committed
        elif isinstance(failure, ApiError) and not failure.retriable:
            raise failure  # such as a missing permission: it would never be committed
        else:
            count = counted(len(offsets), "partition")
            logger.warning("the offsets of %s were not committed: %s", count, failure)

    def _pass_invisible_offsets(self) -> None:
        """Where all records have finished, include the offsets after them that hold none.

        Otherwise a topic with transactions, each of which ends with a marker, would always seem to
        have a record left.
        """
        for each, tracker in self._trackers.items():
            position = self._consumer.position(each)
            if position is not None and not len(tracker):
                tracker.position = max(tracker.position, position)
