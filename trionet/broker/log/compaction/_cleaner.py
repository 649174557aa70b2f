"""Cleans the logs of compacted topics, the dirtiest first (Kafka: LogCleaner, LogCleanerManager).

A sweep cleans every log that is due, with ``log.cleaner.threads`` cleanings at a time; then the
cleaner rests for ``log.cleaner.backoff.ms``. A cleaning has two passes. The first reads the dirty
part and notes the last offset of each key; the second copies all segments up to there, without the
records that a later one has replaced, into new segments, which are swapped in group by group. The
log stays readable and writable all the time.

What is written is always the same log with less in it, so that a cleaning can end at any point: it
is cancelled with the broker, and given up when its log is deleted or loses segments to retention.

A log whose cleaning fails is *uncleanable*: it is logged and counted, and left alone while the
others go on. If the disk was at fault (it may be full) it is tried again after
:data:`RETRY_SECONDS`, otherwise after the next start (Kafka: uncleanable-partitions-count), and in
any case when a setting of the cleaner changes, which may have been the cause.

A cleaning that waits for its rate could do so for days, so that a new rate would come too late: the
cleaning is cancelled, and begins again with the new one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from math import inf
from typing import Final, NamedTuple, Self

import trio

from ...._util._logging import get_logger
from ....errors import ApiError
from .._log import Log
from ..files._checkpoint_files import PartitionKey
from ..folder._log_folder import LogFolder
from ..folder._turns import in_turns
from ..segments._log_config import LogConfig
from ..segments._segment import SegmentReplaced
from ._cleanable import CleanablePart, cleanable_part, first_dirty_offset
from ._cleaner_config import CleanerConfig
from ._cleaning import CleaningStatistics
from ._log_cleaning import CleaningAborted, aborted_if_removed, clean_log, cleaning_input
from ._worker import CAN_START_WORKERS, ThreadWorker, Worker, WorkerError, open_process_worker

logger = get_logger("trionet.broker.log")

#: A cleaning that reads less than this is done sooner in a thread than a process starts.
PROCESS_BYTES_MIN: Final = 4 * 1024 * 1024

#: How long a log is left alone whose cleaning failed because of the disk or the process.
RETRY_SECONDS: Final = 600.0

# With a backoff of 0, each rest would be a pass of the loop.
BACKOFF_SECONDS_MIN: Final = 0.01

# Stands for the number of a concurrent cleaning.
_ON_DEMAND = -1


class LastCleaning(NamedTuple):
    """The result of the last cleaning of one log."""

    ended_ms: int
    seconds: float
    bytes_read: int
    bytes_written: int
    messages_read: int
    messages_written: int


class CleanerGauges(NamedTuple):
    """Kafka's metrics of the cleaner; see there."""

    max_buffer_utilization_percent: int
    recopy_percent: int
    max_clean_time_secs: int
    max_compaction_delay_secs: int
    dead_threads: int
    uncleanable_partitions: int
    uncleanable_bytes: int
    max_dirty_percent: int
    time_since_last_run_ms: int


class _Uncleanable(NamedTuple):
    log: Log
    reason: str
    retry_at: float


class _Round(NamedTuple):
    """What the last cleaning by one of the concurrent cleanings has done."""

    statistics: CleaningStatistics
    seconds: float


class _Workers:
    """The workers of the cleanings of one turn: a process starts for the first large one."""

    def __init__(self, can_start: bool) -> None:
        self._can_start = can_start
        self._process: Worker | None = None
        self._stack = AsyncExitStack()

    async def for_bytes(self, size: int, log: Log) -> Worker:
        """Return a worker for a cleaning that reads ``size`` bytes of a log."""
        if size < PROCESS_BYTES_MIN or not self._can_start:
            return ThreadWorker(log.directory)
        if self._process is None:
            self._process = await self._stack.enter_async_context(open_process_worker())
        return self._process

    async def replace(self) -> None:
        """End a process that has failed or is busy; the next large cleaning starts another."""
        self._process = None
        await self._stack.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()


class LogCleaner:
    """The cleaner of one data directory.

    Args:
        folder: the data directory, with the open logs.
        config: the settings; see :meth:`reconfigure`.
        now_ms: returns the current time, in milliseconds.
        is_virtual: whether time is virtual, so that no process may be started, and no rate applies.

    Attributes:
        config: the current settings.
        last_cleanings: the last cleaning of each log since the start.
    """

    def __init__(
        self,
        folder: LogFolder,
        config: CleanerConfig,
        now_ms: Callable[[], int],
        *,
        is_virtual: bool = False,
    ) -> None:
        self.config: CleanerConfig = config
        self.last_cleanings: dict[PartitionKey, LastCleaning] = {}
        self._folder = folder
        self._now_ms = now_ms
        self._is_virtual = is_virtual
        self._can_start_workers = CAN_START_WORKERS and not is_virtual
        self._in_progress: dict[PartitionKey, trio.Event] = {}
        self._uncleanable: dict[PartitionKey, _Uncleanable] = {}
        self._throttled: set[trio.CancelScope] = set()
        self._changed = trio.Event()
        self._reconfigured = trio.Event()
        self._rounds: dict[int, _Round] = {}
        self._max_dirty_ratio = 0.0
        self._max_delay_ms = 0
        self._last_run_ms = now_ms()

    # What others see

    @property
    def uncleanable(self) -> Mapping[PartitionKey, str]:
        """Why a log is not cleaned, for each such log."""
        self._forget_deleted()
        return {key: each.reason for key, each in self._uncleanable.items()}

    def dirty_ratio(self, log: Log) -> float | None:
        """Return the cleanable ratio of a log, from 0 to 1; None if it is not compacted.

        Never waits for the disk: records whose age is not in memory count as old enough.
        """
        if not log.config.is_compacted:
            return None
        return self._part_in_memory(log).ratio

    def gauges(self) -> CleanerGauges:
        """Return Kafka's metrics of the cleaner. Never waits for the disk."""
        self._forget_deleted()
        rounds = list(self._rounds.values())
        read = sum(each.statistics.bytes_read for each in rounds)
        written = sum(each.statistics.bytes_written for each in rounds)
        utilization = max((each.statistics.map_utilization for each in rounds), default=0.0)
        return CleanerGauges(
            max_buffer_utilization_percent=int(100 * utilization),
            recopy_percent=100 * written // max(read, 1),
            max_clean_time_secs=int(max((each.seconds for each in rounds), default=0.0)),
            max_compaction_delay_secs=self._max_delay_ms // 1000,
            # A cleaning that fails ends its log's turn, not the task.
            dead_threads=0,
            uncleanable_partitions=len(self._uncleanable),
            uncleanable_bytes=sum(
                self._part_in_memory(each.log).cleanable_bytes
                for each in self._uncleanable.values()
            ),
            max_dirty_percent=int(100 * self._max_dirty_ratio),
            time_since_last_run_ms=self._now_ms() - self._last_run_ms if self._is_watching else 0,
        )

    # Running

    def reconfigure(self, config: CleanerConfig) -> None:
        """Switch to new settings.

        They apply to cleanings that begin later; those that were limited to another rate begin
        again. Logs that are uncleanable are tried again.
        """
        if config == self.config:
            return
        if config.bytes_per_second != self.config.bytes_per_second:
            for scope in self._throttled:
                scope.cancel(reason="the rate of cleanings has changed")
        self.config = config
        self._uncleanable.clear()
        self._reconfigured.set()

    def note_config(self, config: LogConfig) -> None:
        """Note the settings of a log that was opened, or whose settings have changed."""
        if config.is_compacted:  # no other log wakes the cleaner, which looks at all of them
            self._changed.set()

    async def run(self) -> None:
        """Clean the logs that are due, until cancelled.

        While no topic is compacted, or the cleaner is disabled, it does not wake up: an idle broker
        costs nothing, and virtual time does not stop every 15 s.

        Cancellation: ends at once; a group that is being swapped in is completed first.
        """
        while True:
            self._changed = trio.Event()
            if not self._is_watching:
                self._max_dirty_ratio, self._max_delay_ms = 0.0, 0
                await self._changed.wait()
                continue
            await self.sweep()
            await self._rest()

    async def _rest(self) -> None:
        """Wait for ``log.cleaner.backoff.ms``, or until a setting of the cleaner changes."""
        self._reconfigured = trio.Event()
        with trio.move_on_after(max(self.config.backoff_ms / 1000, BACKOFF_SECONDS_MIN)):
            await self._reconfigured.wait()

    @property
    def _is_watching(self) -> bool:
        """Whether the cleaner looks for logs to clean."""
        return self.config.is_enabled and any(
            log.config.is_compacted for log in self._folder.logs.values()
        )

    async def sweep(self) -> None:
        """Clean every log that is due, the dirtiest first, and return when none is."""
        self._forget_deleted()
        while due := await self._find_due():
            await self._save(due)
            async with trio.open_nursery() as nursery:
                for number in range(min(self.config.threads, len(due))):
                    name = f"log-cleaner {number}"
                    nursery.start_soon(self._clean_all, due, number, name=name)

    async def _find_due(self) -> deque[Log]:
        """Return the logs that are due, the dirtiest first (Kafka: grabFilthiestCompactedLog).

        Kafka chooses one log at a time, and looks at all of them each time.
        """
        self._last_run_ms = self._now_ms()
        due: list[tuple[float, Log]] = []
        max_ratio, max_delay_ms = 0.0, 0
        for some in in_turns(self._folder.logs):
            for key, log in some:
                if not self._may_clean(key, log):
                    continue
                try:
                    await self._reset_first_dirty(log)
                    part = await self._part(log, self._first_dirty(log))
                except Exception as error:  # boundary: one log, as in _clean_guarded()
                    self._note_error(log, error)
                    continue
                max_delay_ms = max(max_delay_ms, part.overdue_ms)
                max_ratio = max(max_ratio, part.ratio)
                if part.is_due(log.config.min_cleanable_dirty_ratio):
                    due.append((part.ratio, log))
            await trio.lowlevel.checkpoint()
        self._max_dirty_ratio, self._max_delay_ms = max_ratio, max_delay_ms
        due.sort(key=lambda each: each[0], reverse=True)
        return deque(log for _, log in due) if self.config.threads else deque()

    async def _save(self, logs: Iterable[Log]) -> None:
        """Bring logs and their recovery points to the disk, before anything is cleaned.

        Recovery after a crash scans what is above the recovery point, and a cleaned segment has
        gaps. Each replacement of segments saves the extents, which say so; these checkpoints are
        what is left if that file is lost.
        """
        for log in logs:
            try:
                await log.flush()
            except ApiError:
                pass  # the cleaning of this log will report it
        try:
            await self._folder.write_checkpoints()
        except OSError as error:
            logger.warning("cannot write the checkpoints before logs are cleaned: %s", error)

    async def _clean_all(self, due: deque[Log], number: int) -> None:
        """Clean logs from ``due``, which others do at the same time, until none is left."""
        async with _Workers(self._can_start_workers) as workers:
            while due:
                log = due.popleft()
                key = log.topic, log.partition
                if self._may_clean(key, log):
                    self._in_progress[key] = trio.Event()
                    await self._clean_guarded(log, workers, number)

    def _may_clean(self, key: PartitionKey, log: Log) -> bool:
        if not log.config.is_compacted or log.is_offline or key in self._in_progress:
            return False
        failed = self._uncleanable.get(key)
        if failed is None or failed.log is not log:
            return self._folder.logs.get(key) is log
        return trio.current_time() >= failed.retry_at

    async def compact(self, log: Log) -> LastCleaning:
        """Clean a whole log now, whether it is due or not.

        The active segment is rolled first, so that only records above the last stable offset, or
        younger than ``min.compaction.lag.ms``, are left out. All of the log counts as dirty, so
        that tombstones go whose time has passed, even if nothing was written since.

        Raises:
            Exception: what made the cleaning fail; the log is not marked as uncleanable.

        Cancellation: the log is as before, or cleaned up to some segment.
        """
        await trio.lowlevel.checkpoint()
        key = log.topic, log.partition
        while key in self._in_progress:
            await self._in_progress[key].wait()
        self._in_progress[key] = trio.Event()
        try:
            async with _Workers(self._can_start_workers) as workers:
                return await self._compact(log, workers)
        except ApiError as error:
            name = f"{log.topic}-{log.partition}"
            if error.message.startswith(name):
                raise
            raise ApiError(error.error_code, f"{name}: {error.message}") from error
        finally:
            self._in_progress.pop(key).set()

    async def _compact(self, log: Log, workers: _Workers) -> LastCleaning:
        log.roll(self._now_ms())
        await self._save([log])
        started, rounds = trio.current_time(), list[CleaningStatistics]()
        offset = log.start_offset
        while True:
            try:
                part = await self._part(log, offset)
                if part.end_offset <= offset:
                    break
                offset, statistics = await self._clean(log, part, workers)
            except CleaningAborted:
                if log.is_offline or not log.config.is_compacted:
                    break
                offset = log.start_offset
                continue
            rounds.append(statistics)
        if not rounds:
            return LastCleaning(self._now_ms(), 0.0, 0, 0, 0, 0)
        seconds = trio.current_time() - started
        self._rounds[_ON_DEMAND] = _Round(rounds[-1], seconds)
        return self._note_success(log, rounds, seconds)

    async def _clean_guarded(self, log: Log, workers: _Workers, number: int) -> None:
        started = trio.current_time()
        try:
            # Computed again: since the search, retention or a compaction on demand may have run.
            part = await self._part(log, self._first_dirty(log))
            if not part.is_due(log.config.min_cleanable_dirty_ratio):
                return
            _, statistics = await self._clean(log, part, workers)
        except Exception as error:  # boundary: one log must not keep the others from being cleaned
            self._note_error(log, error)
            if isinstance(error, WorkerError):
                await workers.replace()
        else:
            seconds = trio.current_time() - started
            self._rounds[number] = _Round(statistics, seconds)
            self._note_success(log, [statistics], seconds)
        finally:
            self._in_progress.pop((log.topic, log.partition)).set()

    # One log

    def _first_dirty(self, log: Log, name: str | None = None) -> int:
        return first_dirty_offset(
            self._folder.first_dirty_offsets.get((log.topic, log.partition)),
            log.start_offset,
            log.end_offset,
            name,
            log.config,
        )

    async def _reset_first_dirty(self, log: Log) -> None:
        """Correct and save the first dirty offset if it is outside of the log; report it once."""
        key = log.topic, log.partition
        stored = self._folder.first_dirty_offsets.get(key)
        if stored is not None and not log.start_offset <= stored <= log.end_offset:
            await self._folder.set_first_dirty(log, self._first_dirty(log, f"{key[0]}-{key[1]}"))

    def _part_in_memory(self, log: Log) -> CleanablePart:
        limit = log.last_stable_offset
        return cleanable_part(
            log.old_segments,
            self._first_dirty(log),
            limit,
            log.config,
            self._now_ms(),
            from_memory=True,
        )

    async def _part(self, log: Log, first_dirty: int) -> CleanablePart:
        segments = log.old_segments
        work = partial(
            cleanable_part,
            segments,
            first_dirty,
            log.last_stable_offset,
            log.config,
            self._now_ms(),
        )
        config = log.config
        if config.min_compaction_lag_ms <= 0 and not config.limits_compaction_lag:
            await trio.lowlevel.checkpoint()
            return work()
        with aborted_if_removed(log, segments):
            return await log.directory.in_thread(work)

    async def _clean(
        self, log: Log, part: CleanablePart, workers: _Workers
    ) -> tuple[int, CleaningStatistics]:
        """Clean a part of a log, and save up to where it is clean; see :func:`.clean_log`."""
        await log.flush(part.end_offset)
        while True:
            what = cleaning_input(log, part, self.config, self._now_ms())
            worker = await workers.for_bytes(part.clean_bytes + part.cleanable_bytes, log)
            # What waits in virtual time must not block the loop.
            rate = None if self._is_virtual else self.config.bytes_per_second
            with trio.CancelScope() as scope:
                if rate is not None:
                    self._throttled.add(scope)
                try:
                    end_offset, statistics = await clean_log(log, part, worker, what, rate)
                finally:
                    self._throttled.discard(scope)
            if not scope.cancelled_caught:
                break
            await workers.replace()  # the process is still busy with the old cleaning
        await self._folder.set_first_dirty(log, end_offset)
        return end_offset, statistics

    # Results

    def _note_success(
        self, log: Log, rounds: Sequence[CleaningStatistics], seconds: float
    ) -> LastCleaning:
        last = LastCleaning(
            self._now_ms(),
            seconds,
            sum(each.bytes_read for each in rounds),
            sum(each.bytes_written for each in rounds),
            sum(each.messages_read for each in rounds),
            sum(each.messages_written for each in rounds),
        )
        self.last_cleanings[log.topic, log.partition] = last
        self._uncleanable.pop((log.topic, log.partition), None)
        logger.info(
            "%s-%d: cleaned in %.1f s: %d bytes and %d records before, %d bytes and %d records now",
            log.topic,
            log.partition,
            seconds,
            last.bytes_read,
            last.messages_read,
            last.bytes_written,
            last.messages_written,
        )
        invalid = sum(each.invalid_messages for each in rounds)
        if invalid:
            logger.warning(
                "%s-%d: removed %d records without a key, which a compacted topic cannot keep",
                log.topic,
                log.partition,
                invalid,
            )
        return last

    def _note_error(self, log: Log, error: Exception) -> None:
        """Note what has ended a cleaning, or the search for logs that are due."""
        is_there = self._folder.logs.get((log.topic, log.partition)) is log
        if is_there and not isinstance(error, (CleaningAborted, SegmentReplaced)):
            self._note_failure(log, error)
        else:
            logger.debug("%s-%d is not cleaned now: %s", log.topic, log.partition, error)

    def _note_failure(self, log: Log, error: Exception) -> None:
        reason = str(error) or type(error).__name__
        passes = isinstance(error, (OSError, WorkerError))
        then = (
            f"it is tried again in {RETRY_SECONDS / 60:.0f} minutes"
            if passes
            else "it is not cleaned again before the next start or change of a log.cleaner setting"
        )
        logger.error(
            "%s-%d is uncleanable; %s: %s",
            log.topic,
            log.partition,
            then,
            reason,
            exc_info=None if isinstance(error, (OSError, ApiError, WorkerError)) else error,
        )
        retry_at = trio.current_time() + RETRY_SECONDS if passes else inf
        key = log.topic, log.partition
        self._uncleanable[key] = _Uncleanable(log, reason, retry_at)

    def _forget_deleted(self) -> None:
        logs = self._folder.logs
        for key, each in list(self._uncleanable.items()):
            if logs.get(key) is not each.log:
                del self._uncleanable[key]
        for key in [key for key in self.last_cleanings if key not in logs]:
            del self.last_cleanings[key]
