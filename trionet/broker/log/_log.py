"""One partition's log: batches in, file ranges out, in Kafka's on-disk format.

Appends are writes to the page cache, made in the loop and never waited for; what is on the disk is
the business of :meth:`Log.flush`. Nothing here looks at single records except look-ups by time.

The order of an append is what makes a failure harmless: every batch is checked and every decision
taken before the first byte is written. Whatever goes wrong behind that, an error of the disk or any
other exception, is settled before the next append: all of it is taken back, until the end of the
log has moved, and all of it has happened from then on.
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
from typing import Final

import trio

from ..._util._raising import raise_from
from ...errors import ApiError
from ...protocol.error_codes import KAFKA_STORAGE_ERROR, OFFSET_OUT_OF_RANGE
from ._offset_assignment import Appended, Assignment, assign, buffers_of
from ._readable_log import ReadableLog
from ._validation import check_batches
from .files._directory import Buffer, Directory
from .files._extents import Extent
from .files._threads import run_blocking
from .recovery._clean_start import sync_indexes
from .recovery._log_loader import Stop
from .segments._log_config import LogConfig
from .segments._retention import start_offset_due
from .segments._segment import Segment
from .segments._segment_files import remove_segments
from .segments._stored_segment import BatchPlace, file_name
from .state._leader_epochs import LEADER_EPOCH_FILE
from .state._producer_recovery import write_snapshot
from .state._producer_state import expired

logger = logging.getLogger("trionet.broker.log")

#: Without the checks of its arguments' names, which take longer than the rest.
_tuple: Final = tuple.__new__


class Log(ReadableLog):
    """One partition's log; made by :meth:`open`, in the broker by a ``LogFolder``.

    Belongs to one trio loop. The methods that say so may also be called in threads meanwhile.
    """

    @classmethod
    def open(
        cls,
        directory: Directory,
        config: LogConfig | None = None,
        *,
        now_ms: int,
        stop: Stop | None = None,
        topic: str = "",
        partition: int = 0,
    ) -> Log:
        """Open the log in a folder, or start one. Blocks, and scans after an unclean stop.

        Args:
            directory: the partition's folder.
            config: the topic's settings; Kafka's defaults by default.
            now_ms: the clock.
            stop: how the last run ended; unclean, with nothing known to be on the disk, by default.
            topic: the topic's name.
            partition: the partition's number.

        Raises:
            OSError: the folder cannot be read or written.
        """
        config, stop = config or LogConfig(), stop or Stop()
        return cls(directory, config, stop=stop, now_ms=now_ms, topic=topic, partition=partition)

    # Appending

    def append(self, records: Buffer, now_ms: int) -> Appended:
        """Store the batches of one produce request's field, all or none, in one write.

        Assigns the offsets. Neither waits nor syncs; when :attr:`must_flush` is true afterwards,
        the answer to the producer has to wait for :meth:`flush`.

        Args:
            records: whole batches of format 2. Not referenced after the return.
            now_ms: the broker's clock.

        Raises:
            ApiError: nothing was stored and the log is as before. UNSUPPORTED_FOR_MESSAGE_FORMAT,
                CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_RECORD,
                INVALID_TIMESTAMP, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH,
                KAFKA_STORAGE_ERROR (the disk is full or failed, or the log is closed).
        """
        if self._refusal is not None or self._durability.failure is not None:
            raise ApiError(KAFKA_STORAGE_ERROR, self._refusal or self._durability.failure or "")
        self._now_ms = now_ms
        config = self.config
        headers = check_batches(records, config, now_ms)
        append_time_ms = now_ms if config.stamps_append_time else -1
        assignment = assign(headers, self._producers, self.end_offset, append_time_ms)
        batches, _, size, first_offset, last_offset, duplicate_timestamp = assignment
        if batches:
            # One more view takes as long as writing the head of a batch.
            view = records if isinstance(records, memoryview) else memoryview(records)
            buffers = buffers_of(view, batches, self.leader_epoch, append_time_ms)
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
                segment.note(place, timestamp, interval)
                position += batch_size
            self._durability.note_append(now_ms)
            segment.grow(position, last_offset + 1, now_ms)
            self.end_offset = last_offset + 1
            self._producers.update(producers)
            self._unsettled = None
        except OSError as error:
            self._settle_append()
            text = f"{self._name}: storing {size} bytes failed: {error}"
            raise_from(ApiError(KAFKA_STORAGE_ERROR, text), error)
        except BaseException:
            self._settle_append()
            raise

    def _settle(self) -> None:
        """Bring to an end what an exception has interrupted.

        Raises:
            OSError: a segment that was not begun has left a file which cannot be removed.
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
                self._segments.active.go_back(self.end_offset)
            self._unsettled = None

    async def begin_epoch(self, epoch: int) -> None:
        """Give records another leader epoch from now on; on the disk when this returns.

        Args:
            epoch: higher than :attr:`leader_epoch`.

        Raises:
            ValueError: it is not.
            ApiError: KAFKA_STORAGE_ERROR, it could not be written down. It is in use all the same.

        Cancellation: it has begun in any case; unless this returns, a power cut may make it
        forgotten until the next flush.
        """
        if epoch <= self.leader_epoch:
            raise ValueError(f"{self._name}: epoch {epoch} does not follow {self.leader_epoch}")
        self.leader_epoch = epoch
        self.epochs.assign(epoch, self.end_offset)
        if not self.directory.is_durable:
            await trio.lowlevel.checkpoint()
            return
        await self._durability.save_epochs()

    # Rolling

    def _roll(self, now_ms: int) -> Segment:
        """Start a new segment at the end. One file is made; everything slow is left to a flush."""
        finished = self._segments.active
        finished.mend()
        finished.finish()
        self._is_rolling = True
        segment = Segment.create(self.directory, self.end_offset, now_ms)
        self._is_as_closed = False
        if self.directory.is_durable:
            # Before the segment counts: what is not synced later could be lost by a power cut.
            self._durability.note_roll(finished, dict(self._producers))
        self._segments.add(segment)
        self._is_rolling = False
        return segment

    def _settle_roll(self) -> None:
        # Were the last segment to grow beyond the name of the next one, a start would find the end
        # of the log in that empty file.
        if self._segments.active.base_offset != self.end_offset:
            self.directory.remove(file_name(self.end_offset, "log"))
        self._is_rolling = False

    # Durability

    @property
    def recovery_point(self) -> int:
        """Everything below this offset survives a power cut (in memory: the end of the log)."""
        if not self.directory.is_durable:
            return self.end_offset
        return self._durability.recovery_point

    @property
    def stored_recovery_point(self) -> int:
        """The recovery point to write into the checkpoint file."""
        if not self.directory.is_durable:
            return self.end_offset
        return self._durability.stored_recovery_point

    @property
    def extent(self) -> Extent:
        """What of the log is on the disk, to compare with what the next start finds."""
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
        """How many offsets would not survive a power cut now."""
        return self.end_offset - self.recovery_point

    @property
    def must_flush(self) -> bool:
        """``flush.messages`` is reached: the answer to the producer has to wait for a flush."""
        return 0 < self.unflushed_messages >= self.config.flush_messages

    @property
    def is_offline(self) -> bool:
        """Appends are refused: a sync failed, or the log is closed or deleted."""
        return self._refusal is not None or self._durability.failure is not None

    @property
    def has_unflushed_segments(self) -> bool:
        """A segment has ended and is not on the disk: a start after a crash would scan it."""
        return self._durability.has_rolled

    def flush_due(self, now_ms: int) -> int | None:
        """The offset up to which the policy wants a flush now, None for none.

        By ``flush.messages``, by ``flush.ms``, or because a finished segment is not on the disk.
        """
        if not self.directory.is_durable or self.is_offline:
            return None
        return self._durability.due(now_ms, self.config.flush_messages, self.config.flush_ms)

    async def flush(self, up_to: int | None = None) -> None:
        """Return when everything below ``up_to`` survives a power cut.

        All who wait at the same time share an fsync, made in a thread.

        Args:
            up_to: :attr:`end_offset` at the moment of the call by default.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR. If an fsync failed, every waiter gets it and the log
                takes no more appends; it can still be read.

        Cancellation: the task that runs the fsync leaves when that has ended, all others at once.
        Nothing is lost, and the fsync counts, either way.
        """
        if not self.directory.is_durable:
            await trio.lowlevel.checkpoint()
            return
        target = self.end_offset if up_to is None else min(up_to, self.end_offset)
        await self._durability.flush(target)

    # Removing

    @property
    def starts_inside_segment(self) -> bool:
        """The names of the files do not tell the start offset.

        Those of files that are being removed do not either: a power cut may bring them back, and
        without what was not on the disk yet.
        """
        return self._removals > 0 or self.start_offset > self._segments.all[0].base_offset

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return self._segments.size

    @property
    def segment_count(self) -> int:
        """How many segments there are, the active one included."""
        return len(self._segments)

    @property
    def retention_may_block(self) -> bool:
        """Whether :meth:`retention_due` has to wait for the disk: call it in a thread then."""
        return not all(each.newest_is_at_hand for each in self._segments.all)

    def retention_due(self, now_ms: int) -> int | None:
        """The log start offset that retention wants now, None if nothing is to be removed."""
        self._now_ms = now_ms
        return start_offset_due(
            self._segments.all, self.config, self.start_offset, self.high_watermark, now_ms
        )

    async def delete_before(self, offset: int) -> None:
        """Remove the records below ``offset``; for DeleteRecords and retention.

        They cannot be read any more from the moment of the call. Whole segments below are then
        removed in a thread; ranges of them that are being sent stay readable.

        Args:
            offset: the new log start offset; a lower one than the present changes nothing.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE, above the high watermark; KAFKA_STORAGE_ERROR.

        Cancellation: nothing is done, or all of it.
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
                text = f"{self._name}: no new segment can be made: {error}"
                raise_from(ApiError(KAFKA_STORAGE_ERROR, text), error)
        self.start_offset = max(self.start_offset, offset)
        self.epochs.remove_below(self.start_offset)
        removed = self._segments.remove_below(self.start_offset)
        self._removals += bool(removed)
        self._durability.forget_before(self._segments.all[0].base_offset, self.start_offset)
        # Bounded: one fsync that may still be writing their index files, one of the file that says
        # where the log starts, and some unlinks.
        with trio.CancelScope(shield=True):
            await self._durability.idle()
            if removed:
                await self._note_start()
                await self.directory.in_thread(lambda: remove_segments(self.directory, removed))
                self._removals -= 1

    async def _note_start(self) -> None:
        """Write down where the log starts before files go, or a start would report them missing."""
        if self._save_start is None:
            return
        try:
            await self._save_start()
        except OSError as error:
            # The disk may be full, and what is to go makes room.
            logger.warning("%s: its new start is not written down yet: %s", self._name, error)

    def expire_producers(self, now_ms: int) -> None:
        """Forget the idempotent producers that were idle for ``producer.id.expiration.ms``."""
        for producer_id in expired(self._producers, now_ms, self.config.producer_id_expiration_ms):
            del self._producers[producer_id]

    # Closing

    def refuse(self, reason: str) -> None:
        """Take no more appends: each raises KAFKA_STORAGE_ERROR with ``reason``."""
        self._refusal = self._refusal or reason

    async def abandon(self) -> None:
        """Flush nothing any more; return when no thread is at work and no file is held open.

        Always a checkpoint. Who waits for a flush gets KAFKA_STORAGE_ERROR.
        """
        self._durability.abandon(f"{self._name} was deleted")
        await self._durability.idle()
        for segment in self._segments.all:
            segment.let_go()

    async def close(self) -> None:
        """Take no more appends and put everything on the disk, so that no scan is needed.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR, an fsync failed: the stop is not a clean one.
            OSError: a file could not be written.

        Cancellation: the log takes no more appends, but its stop is not a clean one.
        """
        self.refuse(f"{self._name} is closed")
        self._settle()
        await self.flush()
        await self._durability.idle()
        if not self._is_as_closed:
            await run_blocking(self.directory, self._finish)

    def _finish(self) -> None:
        active = self._segments.active
        active.mend()
        active.finish()
        for segment in self._segments.all:
            if segment.has_unsaved_index or segment is active:
                segment.save_indexes()
        sync_indexes(active)
        if not self.epochs.is_saved and self.size:
            # An empty log without the file is one that begins with epoch 0.
            self.directory.replace(LEADER_EPOCH_FILE, self.epochs.encode())
        write_snapshot(self.directory, self.end_offset, self._producers)

    def __repr__(self) -> str:
        return f"Log({self._name}, {self.start_offset}..{self.end_offset})"
