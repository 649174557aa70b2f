"""The log of one partition, in Kafka's on-disk format (Kafka: UnifiedLog and LocalLog).

An append writes to the page cache in the loop and does not wait; :meth:`Log.flush` makes records
durable. Only lookups by timestamp decode individual records.

A failed append leaves the log consistent. Every batch is validated and every decision is made
before the first byte is written. If a disk error or any other exception occurs later, the append is
settled: immediately or, at the latest, before the next append. If the end offset of the segment has
not advanced yet, the append is undone. Otherwise readers may have seen the records, and the append
is completed.
"""

# Compiled by mypyc.

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping
from operator import attrgetter
from typing import Final, TypeVar

import trio

from ..._util._logging import get_logger
from ..._util._raising import raise_from
from ..._util.files._log_file import Buffer, LogFile
from ...errors import ApiError
from ...protocol.error_codes import (
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
)
from ...protocol.records._records import EndTransactionMarker, encode_marker
from ._durability import Durability, FlushRound
from .files._checkpoint_files import Extent
from .files._directory import Directory, run_blocking
from .recovery._log_loader import LastShutdown, LogLoader
from .segments import _reading as reading
from .segments import _swap as swap
from .segments._aborted_transactions import AbortedTransaction
from .segments._cleaned_file import CleanedFile
from .segments._log_batches import BatchPlace, file_name
from .segments._log_config import LogConfig
from .segments._reading import LogRead, OffsetAndTimestamp
from .segments._segment import Segment, SegmentReplaced
from .segments._segments import Segments, count_aborted, remove_segments, start_offset_due
from .state._leader_epochs import LEADER_EPOCH_FILE, EpochEnd, LeaderEpochs
from .state._open_transactions import OpenTransactions
from .state._producer_state import (
    ProducerEntry,
    check_marker,
    remove_expired,
    remove_snapshots_before,
    with_marker,
    write_snapshot,
)
from .validation._record_checks import check_records
from .validation._validation import (
    Appended,
    Assignment,
    TransactionChanges,
    assign,
    assign_marker,
    buffers_to_write,
    check_batches,
)

logger = get_logger("trionet.broker.log")

T = TypeVar("T")

#: Creates a named tuple without the keyword handling of its class, which takes most of the time.
_tuple: Final = tuple.__new__
# The offset after a marker has to be valid too.
_MARKER_OFFSET_MAX: Final = 2**63 - 2

_base_offset = attrgetter("base_offset")


class Log:
    """The log of one partition. Creating it opens the log, blocks, and may scan everything.

    A log belongs to one ``trio.run()``. Methods documented as thread-safe may also be called from
    other threads.

    Like Kafka's UnifiedLog, this is one class with many methods. Append, read, flush and deletion
    share the offsets below, and their larger parts live in separate modules (segments, validation,
    durability). Splitting the class would cost every append and fetch another attribute lookup, or
    keep closed logs in memory through reference cycles.

    Args:
        directory: the partition's directory; without segments, an empty log is created.
        config: the topic's settings; None for Kafka's defaults.
        topic: the topic's name.
        partition: the partition's number.
        topic_id: the topic's 16-byte id; all zeros if unknown.
        last_shutdown: how the last run ended; by default, with an unclean shutdown and no records
            known to be on disk, so that the whole log is scanned.
        now_ms: the current time.
        parent: see :class:`.Durability`.
        limiter: see :class:`.Durability`.
        save_start: saves the start offset; None if it is not saved.
        save_extent: saves the extent; None if it is not saved.

    Raises:
        MissingRecordsError: records are missing, and ``last_shutdown`` does not allow that.
        OSError: the directory cannot be read or written.

    Attributes:
        topic: the topic's name.
        partition: the partition's number.
        topic_id: the topic's 16-byte id; all zeros if unknown.
        directory: the partition's directory.
        config: the topic's settings; a new value takes effect with the next append.
        start_offset: the log start offset, which is the lowest readable offset.
        end_offset: the log end offset, which will be the offset of the next record.
        leader_id: the id of the partition's leader, set by elections; -1 if there is none.
        leader_epoch: the leader epoch of subsequently appended records.
        epochs: the start offsets of the leader epochs.
        coordinator_epoch: the greatest epoch of a transaction coordinator that has written a marker
            here; -1 if none has. Those of expired producers may be missing.
        stable: the key under which fetches with ``read_committed`` wait for
            :meth:`take_stable_bytes`.
        cleaned_to: the offset below which compaction may have left gaps between offsets, whatever
            the topic's policy is now; 0 if nothing was cleaned.
        replacements: changes whenever :attr:`extent` changes because of :meth:`replace_segments`.
    """

    def __init__(
        self,
        directory: Directory,
        config: LogConfig | None = None,
        *,
        topic: str = "",
        partition: int = 0,
        topic_id: bytes = bytes(16),
        last_shutdown: LastShutdown | None = None,
        now_ms: int,
        parent: Directory | None = None,
        limiter: trio.CapacityLimiter | None = None,
        save_start: Callable[[], Awaitable[None]] | None = None,
        save_extent: Callable[[Log], Awaitable[None]] | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config: LogConfig = config or LogConfig()
        self.directory = directory
        self._name = f"{topic}-{partition}"
        last_shutdown = last_shutdown or LastShutdown()
        loaded = LogLoader(directory, self._name, self.config, last_shutdown, now_ms)
        self._segments = Segments(loaded.load())
        self.epochs: LeaderEpochs = loaded.epochs
        self.leader_id = -1
        self.leader_epoch: int = loaded.epochs.latest
        self.start_offset: int = loaded.start_offset
        self.end_offset: int = self._segments.active.end_offset
        self._producers = loaded.producers
        self._transactions: OpenTransactions = loaded.transactions
        self.coordinator_epoch: int = loaded.coordinator_epoch
        self.stable = object()
        self._offline_reason: str | None = None
        self._now_ms = now_ms
        self._is_as_closed = last_shutdown.was_clean and loaded.is_as_closed
        self._removals = 0  # running calls of delete_before() that remove segments
        self._unsettled: Assignment | None = None  # the append that has started and not ended
        self._is_rolling = False  # the file of the next segment may exist already
        self.cleaned_to: int = loaded.cleaned_to
        self.replacements = 0
        # By how much a replacement of segments that may already be on disk shrinks the log, in
        # bytes and in aborted transactions.
        self._shrink = 0, 0
        # Held while segments below the active one are removed or replaced.
        self._changing_segments = trio.Lock()
        self._save_start = save_start
        self._save_extent = save_extent
        self._durability = Durability(
            directory,
            parent,
            self._name,
            self.end_offset,
            self._segments,
            loaded.epochs,
            limiter,
        )
        self._stable_bytes_taken = 0
        self.take_stable_bytes()

    # Appending

    def append(
        self,
        records: Buffer,
        now_ms: int,
        transaction_version: int = -1,
        *,
        records_are_checked: bool = False,
    ) -> Appended:
        """Append all batches in the records field of a produce request, or none of them.

        Assigns offsets to the records. Does not wait or sync: if :attr:`must_flush` is true
        afterwards, the response to the producer must wait for :meth:`flush`.

        Args:
            records: whole batches in format 2; not referenced after the call.
            now_ms: the current time.
            transaction_version: the version of the transaction protocol if the request names a
                transactional id: 0 or 1, or from 2 on (KIP-890) a producer that is not known here
                must begin with sequence 0. By default, the batches must not be transactional.
            records_are_checked: whether :func:`.check_records_in_steps` has accepted the records,
                so that they are not checked again one by one.

        Raises:
            RecordsRejectedError: nothing was appended: records have no key, and the log is
                compacted; or their timestamps are too old (``message.timestamp.before.max.ms``).
            ApiError: nothing was appended: UNSUPPORTED_FOR_MESSAGE_FORMAT, CORRUPT_MESSAGE,
                MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, INVALID_RECORD, INVALID_TIMESTAMP,
                TRANSACTIONAL_ID_AUTHORIZATION_FAILED (the batches are transactional, and the
                request names no transactional id), INVALID_TXN_STATE (the producer has an open
                transaction, and a batch does not belong to it), OUT_OF_ORDER_SEQUENCE_NUMBER,
                INVALID_PRODUCER_EPOCH, KAFKA_STORAGE_ERROR (the disk is full or failed, or the log
                is closed).
        """
        if self._offline_reason is not None or self._durability.failure is not None:
            self._raise_offline()
        if self._unsettled is not None:
            self._settle_append()  # it may move the end offset, and change the producers
        self._now_ms = now_ms
        config = self.config
        headers = check_batches(records, config, now_ms, transaction_version)
        if config.checks_records and not records_are_checked:
            check_records(records, headers, config, self._name, now_ms)
        append_time_ms = now_ms if config.stamps_append_time else -1
        assignment = assign(
            headers, self._producers, self.end_offset, append_time_ms, transaction_version
        )
        batches, _, size, first_offset, last_offset, duplicate_timestamp, _ = assignment
        if batches:
            # A second view would take as long as writing the header of a batch.
            view = records if isinstance(records, memoryview) else memoryview(records)
            buffers = buffers_to_write(view, batches, self.leader_epoch, append_time_ms)
            self._store(assignment, buffers, now_ms)
        elif append_time_ms >= 0:
            append_time_ms = duplicate_timestamp
        start_offset = self.start_offset
        fields = (first_offset, last_offset, append_time_ms, start_offset, size)
        return _tuple(Appended, fields)

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        is_commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        now_ms: int,
    ) -> Appended:
        """Append the marker that ends a producer's transaction, whether one is open or not.

        Does not wait or sync, like :meth:`append`. Afterwards the producer has this epoch.

        Args:
            producer_id: the id of the producer.
            producer_epoch: the producer's epoch after the transaction: in version 2, one more than
                that of its batches (KIP-890).
            is_commit: whether the transaction is committed; False aborts it.
            coordinator_epoch: the epoch of the transaction coordinator.
            transaction_version: the version of the transaction protocol: 0, 1 or 2.
            now_ms: the current time.

        Raises:
            ApiError: nothing was appended: INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED
                (see :func:`.check_marker`); KAFKA_STORAGE_ERROR.
        """
        if self._offline_reason is not None or self._durability.failure is not None:
            self._raise_offline()
        if self._unsettled is not None:
            self._settle_append()
        self._now_ms = now_ms
        offset = self.end_offset
        entry = self._producers.get(producer_id)
        check_marker(entry, producer_id, producer_epoch, coordinator_epoch, transaction_version)
        if offset > _MARKER_OFFSET_MAX:
            raise ApiError(KAFKA_STORAGE_ERROR, f"{self._name}: no offset is left for a marker")
        data = encode_marker(
            EndTransactionMarker(is_commit, coordinator_epoch),
            timestamp=now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_offset=offset,
            leader_epoch=self.leader_epoch,
        )
        after = with_marker(entry, producer_epoch, coordinator_epoch, now_ms)
        self._store(assign_marker(data, is_commit, after), [data], now_ms)
        return Appended(offset, offset, -1, self.start_offset, len(data))

    def _raise_offline(self) -> None:
        raise ApiError(KAFKA_STORAGE_ERROR, self._offline_reason or self._durability.failure or "")

    def _store(self, assignment: Assignment, buffers: list[Buffer], now_ms: int) -> None:
        batches, producers, size, _, _, _, transactions = assignment
        last_offset = batches[-1].last_offset
        try:
            if self._is_rolling:
                self._settle_roll()
            segment = self._segments.all[-1]
            config = self.config
            # An empty segment takes a marker, whatever its size; other batches fit.
            is_full = size > config.segment_bytes - segment.size and segment.size > 0
            if is_full or segment.must_roll(
                last_offset, batches[-1].max_timestamp, self._name, config, now_ms
            ):
                segment = self._roll(now_ms)
            self._is_as_closed = False
            self._unsettled = assignment
            segment.write(buffers, size)
            position = segment.size
            indexes, interval = segment.indexes, config.index_interval_bytes
            for _, _, batch_size, base_offset, batch_last_offset, timestamp in batches:
                place = _tuple(BatchPlace, (base_offset, batch_last_offset, position, batch_size))
                indexes.add(place, timestamp, interval)
                position += batch_size
            self._durability.note_append(now_ms)
            segment.grow(position, last_offset + 1, now_ms)
            self.end_offset = last_offset + 1
            self._producers.update(producers)
            if transactions is not None:
                self._change_transactions(segment, transactions, producers)
            self._unsettled = None
        except OSError as error:
            self._settle_append()
            text = f"{self._name}: appending {size} bytes failed: {error}"
            raise_from(ApiError(KAFKA_STORAGE_ERROR, text), error)
        except BaseException:
            self._settle_append()
            raise

    def _settle(self) -> None:
        """Complete or undo an append or a roll that an exception has interrupted.

        Raises:
            OSError: rolling was interrupted, and the file of the new segment cannot be removed.
        """
        self._settle_append()
        if self._is_rolling:
            self._settle_roll()

    def _settle_append(self) -> None:
        assignment = self._unsettled
        if assignment is not None:
            segment, end_offset = self._segments.active, assignment.batches[-1].last_offset + 1
            if segment.end_offset == end_offset:
                segment.grow(segment.size_before + assignment.size, end_offset, self._now_ms)
                self.end_offset = end_offset
                self._producers.update(assignment.producers)
                if assignment.transactions is not None:
                    self._change_transactions(
                        segment, assignment.transactions, assignment.producers
                    )
            else:
                segment.undo_append(self.end_offset)
            self._unsettled = None

    def _change_transactions(
        self,
        segment: Segment,
        changes: TransactionChanges,
        producers: Mapping[int, ProducerEntry],
    ) -> None:
        """Begin and end transactions, whose batches are in the segment. Can be repeated."""
        begun, producer_id, is_commit = changes
        transactions = self._transactions
        position = segment.bytes_before + segment.size_before
        for beginner_id, first_offset, at in begun:
            transactions.begin(beginner_id, first_offset, position + at)
        if producer_id >= 0:
            marker_offset = segment.end_offset - 1
            if not is_commit:
                aborted = transactions.aborted(producer_id, marker_offset)
                if aborted is not None:
                    segment.indexes.add_aborted(aborted)
            transactions.end(producer_id, marker_offset, self.high_watermark)
            epoch = producers[producer_id].coordinator_epoch
            self.coordinator_epoch = max(self.coordinator_epoch, epoch)

    # Rolling

    def _roll(self, now_ms: int) -> Segment:
        """Start a new segment. Creates only a file; the next flush does the slow work."""
        finished = self._segments.active
        finished.truncate_torn_end()
        finished.indexes.finish()
        self._is_rolling = True
        segment = Segment.create(self.directory, self.end_offset, now_ms)
        segment.bytes_before = finished.bytes_before + finished.size
        self._is_as_closed = False
        if self.directory.is_durable:
            # Before the segment is added: if it were not synced later, a power failure could lose
            # it.
            self._durability.note_roll(finished, dict(self._producers))
        self._segments.add(segment)
        self._is_rolling = False
        return segment

    def roll(self, now_ms: int) -> None:
        """Start a new segment, unless the active one is empty; the next flush does the slow work.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR if the new segment cannot be created.
        """
        if self._offline_reason is not None or self._durability.failure is not None:
            self._raise_offline()
        if not self._segments.active.size:
            return
        try:
            self._settle()
            self._roll(now_ms)
        except OSError as error:
            text = f"{self._name}: cannot create a new segment: {error}"
            raise_from(ApiError(KAFKA_STORAGE_ERROR, text), error)

    def _settle_roll(self) -> None:
        # If the last segment grew past the base offset of this empty file, the next startup would
        # take that file for the end of the log.
        if self._segments.active.base_offset != self.end_offset:
            self.directory.remove(file_name(self.end_offset, "log"))
        self._is_rolling = False

    # Reading

    @property
    def high_watermark(self) -> int:
        """The first offset that is not yet visible to consumers.

        It equals the log end offset or, with ``flush.messages=1`` on disk, the recovery point, so
        that consumers never see a record that a power failure can still lose.
        """
        if self.config.flush_messages <= 1 and self.directory.is_durable:
            return self._durability.recovery_point
        return self.end_offset

    @property
    def last_stable_offset(self) -> int:
        """The first offset that is not yet visible to ``read_committed`` consumers.

        It is the first offset of the oldest open transaction, or of an ended one whose marker is
        not below the high watermark, so that a power failure could open it again; without them, it
        is the high watermark. It never moves back. Only for the task of the loop.
        """
        high_watermark = self.high_watermark
        transactions = self._transactions
        if transactions.is_empty:
            return high_watermark
        offset, _ = transactions.first_unstable(high_watermark)
        return max(self.start_offset, min(offset, high_watermark))

    def take_stable_bytes(self) -> int:
        """Return how many bytes have come below the last stable offset since the last call.

        Without open transactions, these are the bytes of each append, with ``flush.messages=1``
        once they are on disk. The bytes of a transaction, and those after its begin, count when its
        marker does. Only for the task of the loop.
        """
        active = self._segments.active
        stable_bytes = active.bytes_before + active.size
        if self.config.flush_messages <= 1 and self.directory.is_durable:
            stable_bytes = self._durability.durable_bytes
        transactions = self._transactions
        if not transactions.is_empty:
            _, position = transactions.first_unstable(self.high_watermark)
            stable_bytes = min(stable_bytes, position)
        taken = max(0, stable_bytes - self._stable_bytes_taken)
        self._stable_bytes_taken += taken
        return taken

    @property
    def open_transactions(self) -> Mapping[int, int]:
        """The first offset of each open transaction, by producer id, ascending. Changes later."""
        return self._transactions.first_offsets

    @property
    def producers(self) -> Mapping[int, ProducerEntry]:
        """The state of the producers with ids. The mapping changes later, its entries do not."""
        return self._producers

    def aborted_transactions(self, from_offset: int, up_to: int) -> list[tuple[int, int]]:
        """Return the aborted transactions with records in a range that a consumer reads.

        Some may have no records there; consumers tolerate that. Only for the task of the loop, and
        only after the last stable offset was taken that bounds the read: what was below it then is
        decided. Does not wait for the disk.

        Args:
            from_offset: the first offset of the range.
            up_to: the offset after its last record, at most the last stable offset; see
                :meth:`end_of`.

        Returns:
            The producer id and the first offset of each, in the order of their markers.
        """
        found: list[tuple[int, int]] = []
        segments = self._segments.all
        first = max(bisect_right(segments, from_offset, key=_base_offset) - 1, 0)
        for number in range(first, len(segments)):
            aborted = segments[number].indexes.aborted
            if aborted is not None and aborted.find(from_offset, up_to, found):
                break
        return found

    def is_active(self, segment: Segment) -> bool:
        """Whether a segment is the one to which records are appended."""
        return segment is self._segments.active

    def end_of(self, read: LogRead) -> int:
        """Return an offset at or above which no record is in a range that was read.

        It is not always the lowest one, because only the offset index is asked, and only if it is
        in memory (Kafka: LogSegment.fetchUpperBoundOffset).
        """
        records = read.records
        return read.segment.end_of(records.offset + records.count)

    def read(
        self, offset: int, max_bytes: int, *, min_one_message: bool = True, up_to: int | None = None
    ) -> LogRead:
        """Return the file range that starts with the batch that contains ``offset``.

        Thread-safe. Waits for the disk if the needed parts of the log file or index are not in
        memory.

        Args:
            offset: the first offset to read; from :attr:`start_offset` to :attr:`end_offset`,
                inclusive.
            max_bytes: the maximum size of the range, which may end inside a batch.
            min_one_message: whether to return the whole first batch even if it exceeds
                ``max_bytes`` (KIP-74). If false, a first batch that does not fit makes the range
                empty.
            up_to: the offset at which to stop (exclusive); by default and at most,
                :attr:`high_watermark`.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE; CORRUPT_MESSAGE if the bytes on disk are not a batch.
        """
        read = self._read(offset, max_bytes, min_one_message, up_to, cached_only=False)
        assert read is not None
        return read

    def read_cached(
        self, offset: int, max_bytes: int, *, min_one_message: bool = True, up_to: int | None = None
    ) -> LogRead | None:
        """Like :meth:`read`, but return None if reading or sending would wait for the disk.

        If this returns None, call :meth:`read_warm` in a thread.
        """
        return self._read(offset, max_bytes, min_one_message, up_to, cached_only=True)

    def read_warm(
        self, offset: int, max_bytes: int, min_one_message: bool = True, up_to: int | None = None
    ) -> LogRead:
        """Like :meth:`read`, but also read the range into the page cache; call it in a thread.

        Raises:
            OSError: the range cannot be read from disk.
        """
        read = self.read(offset, max_bytes, min_one_message=min_one_message, up_to=up_to)
        reading.warm(read.records)
        return read

    def _read(
        self,
        offset: int,
        max_bytes: int,
        min_one_message: bool,
        up_to: int | None,
        *,
        cached_only: bool,
    ) -> LogRead | None:
        visible = self.high_watermark
        if up_to is None or up_to > visible:
            up_to = visible
        if not self.start_offset <= offset <= self.end_offset:
            raise ApiError(
                OFFSET_OUT_OF_RANGE,
                f"{self._name}: offset {offset} is out of range; expected {self.start_offset} to"
                f" {self.end_offset}",
            )
        segments = self._segments
        active = segments.active  # read once: while this runs in a thread, the log may roll
        is_new = offset >= active.base_offset
        while True:
            try:
                read = reading.read_range(
                    [active] if is_new else segments.all,
                    offset,
                    max_bytes,
                    up_to,
                    min_one_message=min_one_message,
                    cached_only=cached_only,
                )
            except SegmentReplaced:
                # In a thread, even the active segment may have been rolled and cleaned meanwhile.
                is_new = False
                continue
            if read is not None and not is_new:
                segments.note_use(read.segment)
            return read

    def _search(self, search: Callable[[list[Segment]], T]) -> T:
        """Call ``search`` with all segments; repeat it if some are replaced or removed meanwhile.

        Thread-safe.
        """
        while True:
            segments = self._segments.all
            try:
                return search(segments)
            except (SegmentReplaced, FileNotFoundError):
                if self._segments.all is segments:
                    raise

    def offset_for_timestamp(
        self, timestamp: int, up_to: int | None = None
    ) -> OffsetAndTimestamp | None:
        """Return the first record with a timestamp of at least ``timestamp``, or None.

        Thread-safe. May read large parts of the log and decode batches; call it in a thread.

        Args:
            timestamp: the timestamp, in milliseconds.
            up_to: the offset at which to stop (exclusive); by default and at most,
                :attr:`high_watermark`.

        Raises:
            ApiError: CORRUPT_MESSAGE if the bytes on disk are not a batch.
        """
        visible = self.high_watermark
        limit = visible if up_to is None else min(up_to, visible)
        found = self._search(
            lambda every: reading.first_at_or_after(every, timestamp, self.start_offset, limit)
        )
        self._segments.release_idle()
        return found

    def beginnings_before(self, timestamp: float, now_ms: int) -> list[int]:
        """Return the offsets for a ListOffsets version 0 request, in descending order.

        They are the base offsets of the segments last written at or before ``timestamp`` and,
        unless it is in the past, the log end offset. None exceeds the high watermark; see
        :func:`reading.beginnings_before`. Thread-safe. May wait for the disk unless
        ``timestamp`` is infinity.
        """
        visible = self.high_watermark
        offsets = self._search(
            lambda every: reading.beginnings_before(
                every, self.start_offset, self.end_offset, timestamp, now_ms
            )
        )
        if offsets and offsets[0] > visible:
            return [visible, *(offset for offset in offsets if offset <= visible)]
        return offsets

    def max_timestamp_offset(self) -> OffsetAndTimestamp | None:
        """Return the first record with the greatest timestamp (KIP-734); None if there is none.

        Thread-safe; call it in a thread, like :meth:`offset_for_timestamp`.

        Raises:
            ApiError: CORRUPT_MESSAGE if the bytes on disk are not a batch.
        """
        found = self._search(lambda every: reading.newest(every, self.start_offset))
        self._segments.release_idle()
        return found

    # Leader epochs

    def check_leader_epoch(self, epoch: int) -> None:
        """Check the leader epoch that a client sent with its request (KIP-320).

        Args:
            epoch: the leader epoch known to the client; -1 if unknown.

        Raises:
            ApiError: FENCED_LEADER_EPOCH if the client's epoch is older than the current one;
                UNKNOWN_LEADER_EPOCH if it is newer.
        """
        if epoch < 0 or epoch == self.leader_epoch:
            return
        code = FENCED_LEADER_EPOCH if epoch < self.leader_epoch else UNKNOWN_LEADER_EPOCH
        raise ApiError(
            code, f"{self._name}: the current leader epoch is {self.leader_epoch}, not {epoch}"
        )

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """Return the end offset of a leader epoch; see :meth:`LeaderEpochs.end_of`."""
        return self.epochs.end_of(epoch, self.end_offset)

    async def begin_epoch(self, epoch: int) -> None:
        """Start a leader epoch for subsequent appends. It is durable when this returns.

        Args:
            epoch: the new epoch, which must be greater than :attr:`leader_epoch`.

        Raises:
            ValueError: the epoch is not greater than the current one.
            ApiError: KAFKA_STORAGE_ERROR if the epoch could not be saved; it takes effect
                nevertheless.

        Cancellation: the epoch has started, but a power failure before the next flush may undo it.
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

    # Durability

    @property
    def recovery_point(self) -> int:
        """The offset below which records survive a power failure; in memory, the log end offset."""
        if not self.directory.is_durable:
            return self.end_offset
        return self._durability.recovery_point

    @property
    def stored_recovery_point(self) -> int:
        """The recovery point that may be written to the checkpoint file."""
        if not self.directory.is_durable:
            return self.end_offset
        return self._durability.stored_recovery_point

    @property
    def extent(self) -> Extent:
        """The part of the log that is on disk, with which the next startup compares the files."""
        base_offset, position = self._durability.stored_position
        fewer_bytes, fewer_aborted = self._shrink
        return Extent(
            self.topic_id,
            self.start_offset,
            self._durability.stored_recovery_point,
            base_offset,
            position,
            sum(each.size for each in self._segments.all if each.base_offset < base_offset)
            - fewer_bytes,
            self.leader_epoch,
            count_aborted(self._segments.all, self._durability.stored_recovery_point)
            - fewer_aborted,
            self.cleaned_to,
        )

    @property
    def unflushed_messages(self) -> int:
        """The number of records that a power failure could lose; 0 in memory."""
        return self.end_offset - self.recovery_point

    @property
    def must_flush(self) -> bool:
        """Whether ``flush.messages`` has been reached, so the response must wait for a flush."""
        return 0 < self.unflushed_messages >= self.config.flush_messages

    @property
    def is_offline(self) -> bool:
        """Whether appends are rejected because a sync failed or the log is closed or deleted."""
        return self._offline_reason is not None or self._durability.failure is not None

    @property
    def has_unflushed_segments(self) -> bool:
        """Whether any rolled segment has not been flushed yet; a crash would have it scanned."""
        return self._durability.has_rolled

    def flush_due(self, now_ms: int) -> int | None:
        """Return the offset up to which a flush is due now; None if no flush is due.

        A flush is due when ``flush.messages`` or ``flush.ms`` has been reached, or when a rolled
        segment is not yet on disk.
        """
        if not self.directory.is_durable or self.is_offline:
            return None
        return self._durability.due(now_ms, self.config.flush_messages, self.config.flush_ms)

    async def flush(self, up_to: int | None = None) -> None:
        """Wait until everything below ``up_to`` survives a power failure.

        Concurrent calls share an fsync, which runs in a thread.

        Args:
            up_to: an offset; by default, :attr:`end_offset` at the time of the call.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR. If an fsync failed, every waiting call raises it, and the
                log rejects subsequent appends but remains readable.

        Cancellation: a task that is running the fsync first waits for it to finish; all other tasks
        stop waiting immediately. The fsync completes in either case.
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

        Also true while files are being removed, since a power failure may bring them back,
        incomplete.
        """
        return self._removals > 0 or self.start_offset > self.first_segment_offset

    @property
    def first_segment_offset(self) -> int:
        """The base offset of the first segment, which may be below the start offset."""
        return self._segments.all[0].base_offset

    @property
    def size(self) -> int:
        """The size of all segments, in bytes."""
        return self._segments.size

    @property
    def retention_may_block(self) -> bool:
        """Whether :meth:`retention_due` may wait for the disk and should be called in a thread."""
        return not all(each.is_newest_known for each in self._segments.all)

    def retention_due(self, now_ms: int) -> int | None:
        """Return the log start offset that retention requires now; None if nothing is due."""
        self._now_ms = now_ms
        return self._search(
            lambda every: start_offset_due(
                every, self.config, self.start_offset, self.high_watermark, now_ms
            )
        )

    async def delete_before(self, offset: int) -> None:
        """Delete the records below ``offset``, for DeleteRecords and retention.

        The records become unreadable immediately. Segments that lie entirely below ``offset`` are
        then removed in a thread; ranges that are being sent from them stay readable.

        Args:
            offset: the new log start offset; ignored if it is below the current one.

        Raises:
            ApiError: OFFSET_OUT_OF_RANGE if ``offset`` is above the high watermark;
                KAFKA_STORAGE_ERROR if a new segment cannot be created.
            OSError: a file cannot be removed; the records are unreadable nevertheless.

        Cancellation: all or nothing.
        """
        await trio.lowlevel.checkpoint()
        if offset > self.high_watermark:
            raise ApiError(
                OFFSET_OUT_OF_RANGE,
                f"{self._name}: offset {offset} is above the high watermark {self.high_watermark}",
            )
        if offset == self.end_offset and not self.is_offline:
            self.roll(self._now_ms)
        self.start_offset = max(self.start_offset, offset)
        self.epochs.remove_below(self.start_offset)
        # Bounded: the end of a replacement of segments, one fsync that may still be writing their
        # index files, some for the snapshots of producers and the file of the start offsets, and
        # some unlinks.
        with trio.CancelScope(shield=True):
            async with self._changing_segments:
                # Otherwise, a deletion may have removed the directory.
                if self._offline_reason is None:
                    await self._remove_segments()

    async def _remove_segments(self) -> None:
        """Remove the segments that lie entirely below the start offset."""
        removed = self._segments.remove_below(self.start_offset)
        self._removals += bool(removed)
        base_offset = self._segments.all[0].base_offset
        self._durability.forget_before(base_offset, self.start_offset)
        if removed:
            await self._save_snapshots()
        await self._durability.idle()
        if removed:
            is_start_saved = await self._save_start_offset()
            await self.directory.in_thread(lambda: self._remove_files(removed, base_offset))
            self._removals -= 1
            # If the disk was full, there is space now.
            await self._save_snapshots()
            if not is_start_saved:
                await self._save_start_offset()

    def _remove_files(self, removed: list[Segment], base_offset: int) -> None:
        remove_segments(self.directory, removed)
        remove_snapshots_before(self.directory, base_offset)

    async def _save_snapshots(self) -> None:
        """Save what the records to be removed say of their producers."""
        try:
            await self._durability.save_snapshots()
        except (ApiError, OSError) as error:
            # The disk may be full, and removing the files frees space.
            logger.warning("%s: cannot save yet what is known of producers: %s", self._name, error)

    async def _save_start_offset(self) -> bool:
        """Save the start offset, or the next startup would report deleted records as missing.

        Returns:
            Whether that was possible.
        """
        if self._save_start is None:
            return True
        try:
            await self._save_start()
        except OSError as error:
            # The disk may be full, and removing the files frees space.
            logger.warning("%s: cannot save the new log start offset yet: %s", self._name, error)
            return False
        return True

    def expire_producers(self, now_ms: int) -> None:
        """Remove the idempotent producers that have been idle for ``producer.id.expiration.ms``."""
        remove_expired(self._producers, now_ms, self.config.producer_id_expiration_ms)

    # Compaction

    @property
    def old_segments(self) -> list[Segment]:
        """The segments before the active one, ascending. The list does not change later."""
        return self._segments.all[:-1]

    def last_records(self) -> dict[int, tuple[int, int]]:
        """Return the last record of each producer that has not expired, by producer id.

        Returns:
            The offset of the last record, -1 if the producer has only a marker here, and the epoch
            (Kafka: UnifiedLog.lastRecordsOfActiveProducers).
        """
        return {
            producer_id: (entry.batches[-1].last_offset if entry.batches else -1, entry.epoch)
            for producer_id, entry in self._producers.items()
        }

    def aborted_below(self, offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions whose markers are below ``offset``, by marker."""
        found: list[AbortedTransaction] = []
        for segment in self._segments.all:
            if segment.indexes.aborted is not None and segment.base_offset < offset:
                found += segment.indexes.aborted.entries_before(offset)
        return found

    async def replace_segments(
        self, replaced: list[Segment], cleaned: CleanedFile, file: LogFile
    ) -> bool:
        """Put a cleaned segment in the place of those that it was made from.

        Readers that have found a range in the replaced segments can still send it. For the steps,
        each of which survives a crash, see :mod:`.segments._swap`.

        Args:
            replaced: segments of :attr:`old_segments`, one after the other, that lie below
                :attr:`stored_recovery_point`: no scan after a crash starts inside cleaned segments.
            cleaned: describes the file.
            file: the file, synced, which has the name of the log file of the first replaced
                segment with ``.cleaned`` after it.

        Returns:
            False if nothing was replaced, because a segment is not in the log any more, or because
            the log rejects appends (the next startup then removes the file). The round of
            compaction must end then: a tombstone or an abort marker must not go before older
            records.

        Raises:
            OSError: a file cannot be written, renamed or removed. Either nothing was replaced, or
                the new segment is in place and the next startup gives its files their names. The
                log must not be cleaned again until then.
            ValueError: the segments are not on disk, or an earlier call has raised OSError.

        Cancellation: all or nothing. Waits for the end of each step.
        """
        await trio.lowlevel.checkpoint()
        is_done = False
        # Bounded: writes of indexes, fsyncs and unlinks; the log file is on disk already.
        with trio.CancelScope(shield=True):
            async with self._changing_segments:
                if self.is_offline:
                    pass  # a deletion may be renaming and removing the directory
                elif self._segments.contains(replaced):
                    await self._replace_segments(replaced, cleaned, file)
                    is_done = True
                else:
                    base_offset = replaced[0].base_offset
                    await run_blocking(self.directory, swap.undo, self.directory, base_offset)
        return is_done

    async def _replace_segments(
        self, replaced: list[Segment], cleaned: CleanedFile, file: LogFile
    ) -> None:
        if replaced[-1].end_offset > self.stored_recovery_point:
            raise ValueError(f"{self._name}: flush {replaced[-1]!r} before it is replaced")
        if any(segment.is_held for segment in replaced):
            raise ValueError(f"{self._name}: an earlier replacement of segments has failed")
        segment = await run_blocking(self.directory, Segment.cleaned, replaced, cleaned, file)
        await self._commit(replaced, segment)
        # In memory too: freeing a gigabyte of pages takes a tenth of a second.
        await self.directory.in_thread(lambda: swap.finish(segment, replaced))
        segment.is_held = False
        segment.release()

    async def _commit(self, replaced: list[Segment], segment: Segment) -> None:
        """Replace segments in memory and on disk, except for the final names of the files."""
        cleaned_to = self.cleaned_to
        try:
            failure = await self._write_and_commit(replaced, segment)
            if failure is None:
                self._segments.replace(replaced, segment)
                return
            self.cleaned_to = cleaned_to
            await self._undo(replaced)
            raise failure
        finally:
            self._shrink = 0, 0
            self.replacements += 1

    async def _write_and_commit(self, replaced: list[Segment], segment: Segment) -> OSError | None:
        """Make the files of a cleaned segment count; return the error if that is impossible."""
        try:
            await run_blocking(self.directory, swap.write_indexes, segment)
            self._begin_shrinking(replaced, segment)
            if self.directory.is_durable and self._save_extent is not None:
                # Before the smaller files count: the next startup compares them with these sizes.
                await self._save_extent(self)
            await run_blocking(self.directory, swap.commit, segment)
        except OSError as error:
            return error
        return None

    async def _undo(self, replaced: list[Segment]) -> None:
        """Remove the files of a cleaned segment that could not be made to count."""
        first = replaced[0]
        try:
            await run_blocking(self.directory, swap.undo, self.directory, first.base_offset)
        except OSError as error:
            logger.warning("%s: cannot remove the files of a cleaning: %s", self._name, error)
            # Its files may count at the next startup, unless those of the segment go before.
            first.is_held = True

    def _begin_shrinking(self, replaced: list[Segment], segment: Segment) -> None:
        """Let :attr:`extent` describe both what is on disk now and the log after a replacement."""
        end_offset = segment.end_offset
        fewer_bytes = sum(each.size for each in replaced) - segment.size
        fewer_aborted = count_aborted(replaced, end_offset) - count_aborted([segment], end_offset)
        # A startup that finds more than it expects misses nothing.
        self._shrink = max(0, fewer_bytes), max(0, fewer_aborted)
        self.cleaned_to = max(self.cleaned_to, end_offset)
        self.replacements += 1

    # Closing

    def reject_appends(self, reason: str) -> None:
        """Make all subsequent appends raise KAFKA_STORAGE_ERROR with ``reason``."""
        self._offline_reason = self._offline_reason or reason

    async def abandon(self) -> None:
        """Stop flushing, wait for a running flush to finish, and close the log files.

        Always a checkpoint. Pending calls to :meth:`flush` raise KAFKA_STORAGE_ERROR.
        """
        self._durability.abandon(f"{self._name} was deleted")
        await self._durability.idle()
        async with self._changing_segments:
            for segment in self._segments.all:
                segment.close_file()

    async def close(self) -> None:
        """Reject further appends and flush everything, so that the next startup needs no scan.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR if a flush failed; the log is then not cleanly closed.
            OSError: a file could not be written.

        Cancellation: the log rejects appends, but is not cleanly closed.
        """
        self.reject_appends(f"{self._name} is closed")
        self._settle()
        async with self._changing_segments:
            await self._durability.idle()  # last, since a flush may begin during any other wait
            try:
                round = self.begin_close()
                await run_blocking(self.directory, self.close_files, round)
                self.end_close(round)
            finally:
                self.end_close(None)

    @property
    def is_quiet(self) -> bool:
        """Whether no flush is running in a thread, and no segment is being removed or replaced."""
        return not self._durability.is_running and not self._changing_segments.locked()

    def begin_close(self) -> FlushRound | None:
        """Reject further appends to a log that is quiet; :meth:`close_files` goes on in a thread.

        A caller with many logs closes them in these three steps, with one thread for many, where
        :meth:`close` needs a thread for each. None may be changed or flushed in between.

        Returns:
            What is not on disk; None if everything is.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR if an earlier sync failed.
        """
        self.reject_appends(f"{self._name} is closed")
        self._settle()
        if not self.directory.is_durable or self._durability.is_durable(self.end_offset):
            return None
        self._durability.raise_if_failed()
        return self._durability.begin_round()

    def close_files(self, round: FlushRound | None, *, syncs_parent: bool = True) -> None:
        """Write and sync all files of a log that is being closed. Blocks.

        Args:
            round: the result of :meth:`begin_close`.
            syncs_parent: whether to sync the data directory if needed; if not, the caller does it.

        Raises:
            ApiError, OSError: see :meth:`close`.
        """
        epochs_are_saved = self.epochs.is_saved
        if round is not None:
            failure = self._durability.write_round(round, syncs_parent=syncs_parent)
            if failure is not None:
                self._durability.note_failure(failure)
                self._durability.raise_if_failed()
            epochs_are_saved = True
        if not self._is_as_closed:
            self._finish(epochs_are_saved=epochs_are_saved)

    def end_close(self, round: FlushRound | None) -> None:
        """Note the end of :meth:`close_files`; ``round`` is None if it failed."""
        if round is not None:
            self._durability.end_round(round)
        self._durability.release_round()

    def _finish(self, *, epochs_are_saved: bool) -> None:
        active = self._segments.active
        active.truncate_torn_end()
        active.indexes.finish()
        for segment in self._segments.all:
            if segment.indexes.has_unsaved or segment is active:
                segment.indexes.save()
        active.indexes.sync()
        if not epochs_are_saved and self.size:
            # Without the file, an empty log starts with epoch 0.
            self.directory.replace(LEADER_EPOCH_FILE, self.epochs.encode())
        write_snapshot(self.directory, self.end_offset, self._producers)

    def __repr__(self) -> str:
        return f"Log({self._name}, {self.start_offset}..{self.end_offset})"
