"""One partition's log: appends batches and reads file ranges, in Kafka's on-disk format.

(Kafka: UnifiedLog and LocalLog.) An append writes to the page cache, in the loop, and waits for
nothing; :meth:`Log.flush` makes records durable. Only lookups by time decode single records.

The order of an append is what makes a failure harmless. Every batch is checked and every decision
made before the first byte is written. If anything fails after that, an error of the disk or any
other exception, the next append settles it first: until the log end offset has moved, the whole
append is undone; from then on, it counts as done.
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
from typing import Final

import trio

from ..._util._raising import raise_from
from ...errors import ApiError
from ...protocol.error_codes import KAFKA_STORAGE_ERROR, OFFSET_OUT_OF_RANGE
from ._offset_assignment import Appended, Assignment, assign, buffers_to_write
from ._readable_log import ReadableLog
from ._validation import check_batches
from .files._directory import Buffer, Directory, run_blocking
from .files._extents import Extent
from .recovery._log_loader import LastShutdown
from .segments._log_config import LogConfig
from .segments._segment import BatchPlace, Segment, file_name
from .segments._segments import remove_segments, start_offset_due
from .state._leader_epochs import LEADER_EPOCH_FILE
from .state._producer_recovery import write_snapshot
from .state._producer_state import expired

logger = logging.getLogger("trionet.broker.log")

#: Creates named tuples without their keyword handling, which takes longer than the rest.
_tuple: Final = tuple.__new__


class Log(ReadableLog):
    """One partition's log; opened by :meth:`open`, in the broker by a ``LogFolder``.

    Belongs to one trio loop. Methods documented as thread-safe may also be called in threads.
    """

    @classmethod
    def open(
        cls,
        directory: Directory,
        config: LogConfig | None = None,
        *,
        now_ms: int,
        last_shutdown: LastShutdown | None = None,
        topic: str = "",
        partition: int = 0,
    ) -> Log:
        """Open the log in a folder, or create one. Blocks; scans after an unclean shutdown.

        Args:
            directory: the partition's folder.
            config: the topic's settings; Kafka's defaults by default.
            now_ms: the current time.
            last_shutdown: how the last run ended; by default unclean, with nothing known to be on
                the disk.
            topic: the topic's name.
            partition: the partition's number.

        Raises:
            OSError: the folder cannot be read or written.
        """
        config, last_shutdown = config or LogConfig(), last_shutdown or LastShutdown()
        return cls(
            directory,
            config,
            last_shutdown=last_shutdown,
            now_ms=now_ms,
            topic=topic,
            partition=partition,
        )

    # Appending

    def append(self, records: Buffer, now_ms: int) -> Appended:
        """Append the batches of one records field of a produce request, all or none, in one write.

        Assigns the offsets. Neither waits nor syncs; if :attr:`must_flush` is true afterwards, the
        response to the producer has to wait for :meth:`flush`.

        Args:
            records: whole batches of format 2. Not referenced after the call.
            now_ms: the current time.

        Raises:
            ApiError: nothing was appended, and the log is unchanged:
                UNSUPPORTED_FOR_MESSAGE_FORMAT, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE,
                RECORD_LIST_TOO_LARGE, INVALID_RECORD, INVALID_TIMESTAMP,
                OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, KAFKA_STORAGE_ERROR (the disk
                is full or failed, or the log is closed).
        """
        if self._offline_reason is not None or self._durability.failure is not None:
            raise ApiError(
                KAFKA_STORAGE_ERROR, self._offline_reason or self._durability.failure or ""
            )
        self._now_ms = now_ms
        config = self.config
        headers = check_batches(records, config, now_ms)
        append_time_ms = now_ms if config.stamps_append_time else -1
        assignment = assign(headers, self._producers, self.end_offset, append_time_ms)
        batches, _, size, first_offset, last_offset, duplicate_timestamp = assignment
        if batches:
            # A second view would take as long as writing the header of a batch.
            view = records if isinstance(records, memoryview) else memoryview(records)
            buffers = buffers_to_write(view, batches, self.leader_epoch, append_time_ms)
            self._store(assignment, buffers, now_ms)
        elif append_time_ms >= 0:
            append_time_ms = duplicate_timestamp
        start_offset = self.start_offset
        fields = (first_offset, last_offset, append_time_ms, start_offset, size, not batches)
        return _tuple(Appended, fields)

    def _store(self, assignment: Assignment, buffers: list[Buffer], now_ms: int) -> None:
        batches, producers, size, _, _, _ = assignment
        last_offset = batches[-1].last_offset
        try:
            if self._unsettled is not None or self._is_rolling:
                self._settle()
            segment = self._segments.all[-1]
            config = self.config
            if size > config.segment_bytes - segment.size or segment.must_roll(
                last_offset, batches[-1].max_timestamp, self._name, config, now_ms
            ):
                segment = self._roll(now_ms)
            self._is_as_closed = False
            self._unsettled = assignment
            segment.write(buffers, size)
            position = segment.size
            interval = config.index_interval_bytes
            for _, _, batch_size, base_offset, batch_last_offset, timestamp in batches:
                place = _tuple(BatchPlace, (base_offset, batch_last_offset, position, batch_size))
                segment.index_batch(place, timestamp, interval)
                position += batch_size
            self._durability.note_append(now_ms)
            segment.grow(position, last_offset + 1, now_ms)
            self.end_offset = last_offset + 1
            self._producers.update(producers)
            self._unsettled = None
        except OSError as error:
            self._settle_append()
            text = f"{self._name}: appending {size} bytes failed: {error}"
            raise_from(ApiError(KAFKA_STORAGE_ERROR, text), error)
        except BaseException:
            self._settle_append()
            raise

    def _settle(self) -> None:
        """Finish or undo what an exception has interrupted.

        Raises:
            OSError: rolling was interrupted, and the file of the new segment cannot be removed.
        """
        self._settle_append()
        if self._is_rolling:
            self._settle_roll()

    def _settle_append(self) -> None:
        assignment = self._unsettled
        if assignment is not None:
            if self.end_offset > assignment.batches[-1].last_offset:
                self._producers.update(assignment.producers)
            else:
                self._segments.active.undo_append(self.end_offset)
            self._unsettled = None

    async def begin_epoch(self, epoch: int) -> None:
        """Start a leader epoch: records appended from now on get it. Durable when this returns.

        Args:
            epoch: greater than :attr:`leader_epoch`.

        Raises:
            ValueError: the epoch is not greater.
            ApiError: KAFKA_STORAGE_ERROR, the epoch could not be saved. It is used all the same.

        Cancellation: the epoch has started in any case; unless this returns, a power failure may
        undo it until the next flush.
        """
        if epoch <= self.leader_epoch:
            raise ValueError(
                f"{self._name}: leader epoch {epoch} is not greater than {self.leader_epoch}"
            )
        self.leader_epoch = epoch
        self.epochs.assign(epoch, self.end_offset)
        if not self.directory.is_durable:
            await trio.lowlevel.checkpoint()
            return
        await self._durability.save_epochs()

    # Rolling

    def _roll(self, now_ms: int) -> Segment:
        """Start a new segment. Creates one file; everything slow is left to the next flush."""
        finished = self._segments.active
        finished.truncate_torn_end()
        finished.finish()
        self._is_rolling = True
        segment = Segment.create(self.directory, self.end_offset, now_ms)
        self._is_as_closed = False
        if self.directory.is_durable:
            # Before the segment is added: if it were not synced later, a power failure could lose
            # it.
            self._durability.note_roll(finished, dict(self._producers))
        self._segments.add(segment)
        self._is_rolling = False
        return segment

    def _settle_roll(self) -> None:
        # If the last segment grew past the base offset of this empty file, the next start would
        # take that file for the end of the log.
        if self._segments.active.base_offset != self.end_offset:
            self.directory.remove(file_name(self.end_offset, "log"))
        self._is_rolling = False

    # Durability

    @property
    def recovery_point(self) -> int:
        """Everything below this offset survives a power failure (in memory: the log end offset)."""
        if not self.directory.is_durable:
            return self.end_offset
        return self._durability.recovery_point

    @property
    def stored_recovery_point(self) -> int:
        """The recovery point as the checkpoint file may state it."""
        if not self.directory.is_durable:
            return self.end_offset
        return self._durability.stored_recovery_point

    @property
    def extent(self) -> Extent:
        """The part of the log that is on the disk; the next start compares its files with it."""
        base_offset, position = self._durability.stored_position
        return Extent(
            self.topic_id,
            self.start_offset,
            self._durability.stored_recovery_point,
            base_offset,
            position,
            sum(each.size for each in self._segments.all if each.base_offset < base_offset),
            self.leader_epoch,
        )

    @property
    def unflushed_messages(self) -> int:
        """How many offsets a power failure would lose now."""
        return self.end_offset - self.recovery_point

    @property
    def must_flush(self) -> bool:
        """``flush.messages`` is reached: the response to the producer has to wait for a flush."""
        return 0 < self.unflushed_messages >= self.config.flush_messages

    @property
    def is_offline(self) -> bool:
        """Appends are rejected: a sync failed, or the log is closed or deleted."""
        return self._offline_reason is not None or self._durability.failure is not None

    @property
    def has_unflushed_segments(self) -> bool:
        """A finished segment is not on the disk yet: after a crash it would be scanned."""
        return self._durability.has_rolled

    def flush_due(self, now_ms: int) -> int | None:
        """The offset up to which a flush is due now; None: no flush is due.

        Due by ``flush.messages``, by ``flush.ms``, or because a finished segment is not on the
        disk.
        """
        if not self.directory.is_durable or self.is_offline:
            return None
        return self._durability.due(now_ms, self.config.flush_messages, self.config.flush_ms)

    async def flush(self, up_to: int | None = None) -> None:
        """Return when everything below ``up_to`` survives a power failure.

        Concurrent calls share an fsync, which runs in a thread.

        Args:
            up_to: by default :attr:`end_offset` at the time of the call.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR. If an fsync failed, every waiting call raises it and the
                log rejects appends from then on; it can still be read.

        Cancellation: the task that runs the fsync returns when the fsync has ended, all others at
        once. Either way nothing is lost, and the fsync counts.
        """
        if not self.directory.is_durable:
            await trio.lowlevel.checkpoint()
            return
        target = self.end_offset if up_to is None else min(up_to, self.end_offset)
        await self._durability.flush(target)

    # Removing

    @property
    def starts_inside_segment(self) -> bool:
        """Whether the start offset cannot be derived from the names of the segment files.

        True also while files are being removed: a power failure may restore them, incomplete.
        """
        return self._removals > 0 or self.start_offset > self._segments.all[0].base_offset

    @property
    def size(self) -> int:
        """The size of all segments, in bytes."""
        return self._segments.size

    @property
    def segment_count(self) -> int:
        """The number of segments, including the active one."""
        return len(self._segments)

    @property
    def retention_may_block(self) -> bool:
        """Whether :meth:`retention_due` may wait for the disk and should be called in a thread."""
        return not all(each.is_newest_known for each in self._segments.all)

    def retention_due(self, now_ms: int) -> int | None:
        """The log start offset that retention calls for now; None: nothing is to be deleted."""
        self._now_ms = now_ms
        return start_offset_due(
            self._segments.all, self.config, self.start_offset, self.high_watermark, now_ms
        )

    async def delete_before(self, offset: int) -> None:
        """Delete the records below ``offset``, for DeleteRecords and retention.

        They cannot be read from the time of the call on. Segments that are entirely below are then
        removed in a thread; ranges of them that are being sent stay readable.

        Args:
            offset: the new log start offset; one below the current start offset changes nothing.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE, above the high watermark; KAFKA_STORAGE_ERROR.

        Cancellation: all or nothing.
        """
        await trio.lowlevel.checkpoint()
        if offset > self.high_watermark:
            raise ApiError(
                OFFSET_OUT_OF_RANGE,
                f"{self._name}: offset {offset} is above the high watermark {self.high_watermark}",
            )
        if offset == self.end_offset and self._segments.active.size and not self.is_offline:
            try:
                self._settle()
                self._roll(self._now_ms)
            except OSError as error:
                text = f"{self._name}: cannot create a new segment: {error}"
                raise_from(ApiError(KAFKA_STORAGE_ERROR, text), error)
        self.start_offset = max(self.start_offset, offset)
        self.epochs.remove_below(self.start_offset)
        removed = self._segments.remove_below(self.start_offset)
        self._removals += bool(removed)
        self._durability.forget_before(self._segments.all[0].base_offset, self.start_offset)
        # Bounded: one fsync that may still be writing their index files, one for the file of the
        # start offsets, and some unlinks.
        with trio.CancelScope(shield=True):
            await self._durability.idle()
            if removed:
                await self._save_start_offset()
                await self.directory.in_thread(lambda: remove_segments(self.directory, removed))
                self._removals -= 1

    async def _save_start_offset(self) -> None:
        """Save the start offset; a start would report files removed before as missing."""
        if self._save_start is None:
            return
        try:
            await self._save_start()
        except OSError as error:
            # The disk may be full, and removing the files frees space.
            logger.warning("%s: the new log start offset is not saved yet: %s", self._name, error)

    def expire_producers(self, now_ms: int) -> None:
        """Remove the idempotent producers that were idle for ``producer.id.expiration.ms``."""
        for producer_id in expired(self._producers, now_ms, self.config.producer_id_expiration_ms):
            del self._producers[producer_id]

    # Closing

    def reject_appends(self, reason: str) -> None:
        """Reject all appends from now on: each raises KAFKA_STORAGE_ERROR with ``reason``."""
        self._offline_reason = self._offline_reason or reason

    async def abandon(self) -> None:
        """Stop flushing; return when no thread is running and no file is held open.

        Always a checkpoint. Pending calls of :meth:`flush` raise KAFKA_STORAGE_ERROR.
        """
        self._durability.abandon(f"{self._name} was deleted")
        await self._durability.idle()
        for segment in self._segments.all:
            segment.close_file()

    async def close(self) -> None:
        """Reject appends and flush everything, so that the next start needs no scan.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR, an fsync failed: the shutdown is not clean.
            OSError: a file could not be written.

        Cancellation: the log rejects appends, but its shutdown is not clean.
        """
        self.reject_appends(f"{self._name} is closed")
        self._settle()
        await self.flush()
        await self._durability.idle()
        if not self._is_as_closed:
            await run_blocking(self.directory, self._finish)

    def _finish(self) -> None:
        active = self._segments.active
        active.truncate_torn_end()
        active.finish()
        for segment in self._segments.all:
            if segment.has_unsaved_index or segment is active:
                segment.save_indexes()
        active.sync_indexes()
        if not self.epochs.is_saved and self.size:
            # Without the file, an empty log starts with epoch 0.
            self.directory.replace(LEADER_EPOCH_FILE, self.epochs.encode())
        write_snapshot(self.directory, self.end_offset, self._producers)

    def __repr__(self) -> str:
        return f"Log({self._name}, {self.start_offset}..{self.end_offset})"
