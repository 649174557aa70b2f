"""One segment: a log file of at most ``segment.bytes``, with its indexes (Kafka: LogSegment).

Only the active segment, the last of a log, grows; older segments never change. An old segment opens
its file and loads its offset index when it is read, and the log limits the number of old segments
in this state.

The problem: threads read (``locate``, ``file``, ``index``) while the loop appends, a failed append
must leave no trace, and index files may be damaged. The choices:

* Use no lock; the order of writes makes concurrent reads safe. An index entry counts only once it
  is complete. An append writes ``end_offset`` before ``size``, and a reader reads ``size`` first,
  so that the ``end_offset`` it reads is at least as new. Rejected: a lock, because every append and
  fetch would pay for it, and because an exception at the wrong point would leave it locked.
* Never lower ``size`` or ``end_offset`` when an append is undone. No order of lowering them would
  be safe: a reader could combine the old ``size`` with the new ``end_offset``, and return the bytes
  of the undone append. An append can therefore be undone only until ``end_offset`` has advanced;
  after that, it is completed.
* Before an append changes anything, save the state that it will change, so that undoing it takes
  only assignments. Bytes left by a failed write are cut off immediately or before the next write.
* Treat indexes as derived data. If an index entry does not match a batch, both indexes are rebuilt
  from the batch headers. The log file is not changed: it was on disk before the last shutdown, and
  truncating it would delete records because of a damaged index.
* Compaction replaces segments with a new one, whose files take over the names of the first. A
  thread that still uses an old segment reads the old bytes from its open file and its indexes in
  memory, but must not take the new files for those of the old segment. So segments are marked as
  replaced before any name changes, and the mark is checked after each use of a name
  (:class:`SegmentReplaced`).

Reconsider if Python loses the GIL: this module relies on assignments being atomic and becoming
visible in order.
"""

# Compiled by mypyc.

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from typing import TypeVar

from ...._util._logging import get_logger
from ...._util.files._log_file import GATHER_BUFFERS_MAX, Buffer, LogFile
from ....errors import ApiError
from ....protocol.error_codes import CORRUPT_MESSAGE
from ..files._directory import Directory
from ._cleaned_file import CleanedFile
from ._log_batches import BatchPlace, batches_from, file_name, has_batch_at, header_at
from ._log_config import LogConfig
from ._segment_indexes import (
    ENTRY_MAX,
    OFFSET_ENTRY_SIZE,
    TIME_ENTRY_SIZE,
    OffsetIndex,
    SegmentIndexes,
    TimeIndex,
    index_batches,
)

logger = get_logger("trionet.broker.log")

T = TypeVar("T")


class SegmentReplaced(Exception):
    """Raised when a replaced segment needs a file whose name may be that of its successor's file.

    Look the records up again in the current segments of the log.
    """


class Segment:
    """One log file and its indexes. The loop appends while threads may look up and read.

    Args:
        directory: the partition's directory.
        base_offset: the smallest offset that the segment can hold, which also names its files.
        created_ms: the time when the segment was created or, if that is unknown, opened.

    Attributes:
        indexes: the indexes of the segment, in memory and in the index files.
        end_offset: the offset after the last record.
        size: the size of the batches in the file, in bytes.
        size_before: the value of ``size`` before the last append.
        bytes_before: the size of the segments before this one when it was created, or when the log
            was opened: with the position in the file, a position in the log that never changes.
        is_replaced: whether cleaning has put another segment in the place of this one.
        is_held: whether the file and the indexes must stay in memory, because the files do not have
            their names yet, or because files of a cleaning that has failed could not be removed.
    """

    __slots__ = (
        "_end_before",
        "_file",
        "_is_damage_reported",
        "_is_torn",
        "_modified_ms",
        "base_offset",
        "bytes_before",
        "created_ms",
        "directory",
        "end_offset",
        "indexes",
        "is_held",
        "is_replaced",
        "size",
        "size_before",
    )

    def __init__(self, directory: Directory, base_offset: int, created_ms: int) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.indexes = SegmentIndexes(directory, base_offset)
        self.end_offset = base_offset
        self.size = 0
        self.bytes_before = 0
        self.is_replaced = False
        self.is_held = False
        self._modified_ms = created_ms
        self._is_damage_reported = False
        self._file: LogFile | None = None
        self._is_torn = False
        # The size and the end offset before the last append; -1: nothing was appended yet.
        self.size_before = 0
        self._end_before = -1

    @classmethod
    def create(cls, directory: Directory, base_offset: int, now_ms: int) -> Segment:
        """Create an empty segment and its log file, whose name is not yet synced."""
        segment = cls(directory, base_offset, now_ms)
        segment._file = directory.create(segment.name("log"))
        segment.indexes.start()
        return segment

    @classmethod
    def old(cls, directory: Directory, base_offset: int, end_offset: int, now_ms: int) -> Segment:
        """Return a segment from an earlier run. Its index files are read when first needed."""
        segment = cls(directory, base_offset, now_ms)
        segment.end_offset = end_offset
        segment.size = directory.size(segment.name("log"))
        segment.indexes.is_newest_known = False
        segment._modified_ms = -1
        return segment

    @classmethod
    def cleaned(cls, replaced: list[Segment], cleaned: CleanedFile, file: LogFile) -> Segment:
        """Return the segment that compaction has made of ``replaced``, which is to replace them.

        Its files do not have their names yet, so it is held. Like Kafka's (Cleaner.cleanSegments),
        it has the modification time of the last replaced segment, by which retention judges
        segments without timestamps. Blocks.
        """
        first, last = replaced[0], replaced[-1]
        segment = cls(first.directory, first.base_offset, first.created_ms)
        segment.end_offset = last.end_offset
        segment.size = cleaned.size
        segment.bytes_before = first.bytes_before
        segment._modified_ms = last.modified_ms
        segment._file = file
        segment.is_held = True
        segment.indexes.start_cleaned(cleaned)
        return segment

    def name(self, suffix: str) -> str:
        """Return the name of the segment's file with a given suffix."""
        return file_name(self.base_offset, suffix)

    @property
    def file(self) -> LogFile:
        """The log file, opened if necessary."""
        file = self._file
        if file is None:
            file = self._file = self._by_name(lambda: self.directory.open(self.name("log")))
        return file

    def _by_name(self, read: Callable[[], T]) -> T:
        """Return what ``read()`` gets from a file of this segment, which it finds by its name.

        Raises:
            SegmentReplaced: the file may be that of the segment's successor.
        """
        try:
            found = read()
        except FileNotFoundError:
            self._raise_if_replaced()
            raise
        self._raise_if_replaced()
        return found

    def _raise_if_replaced(self) -> None:
        if self.is_replaced:
            raise SegmentReplaced(f"{self!r} has been replaced by a cleaned segment")

    @property
    def is_loaded(self) -> bool:
        """Whether the file is open and the offset index is in memory, so lookups open no file."""
        return self._file is not None and self.indexes.offsets is not None

    def close_file(self) -> None:
        """Drop the reference to the file, which ranges that are being sent keep open."""
        self._file = None

    def release(self) -> None:
        """Close the file and drop the indexes of an old segment; both are reloaded when needed."""
        if self.directory.is_durable and not self.is_held and not self.indexes.has_unsaved:
            self._file = None
            self.indexes.release()

    # Growing

    def write(self, buffers: list[Buffer], size: int) -> None:
        """Write batches at the end of the file; the caller must index them and call :meth:`grow`.

        Raises:
            OSError: not all bytes could be written; call :meth:`undo_append`.
        """
        self.truncate_torn_end()
        position = self.size
        self.size_before = position
        self.indexes.note_append()
        self._end_before = self.end_offset  # last: it says that the others are set
        if len(buffers) <= GATHER_BUFFERS_MAX:
            written = self.file.write_at(position, buffers)
        else:
            written = 0
            for first in range(0, len(buffers), GATHER_BUFFERS_MAX):
                piece = buffers[first : first + GATHER_BUFFERS_MAX]
                written += self.file.write_at(position + written, piece)
        if written != size:
            raise OSError(errno.ENOSPC, f"only {written} of {size} bytes could be written")

    def undo_append(self, end_offset: int) -> None:
        """Undo an append that failed at any point before :meth:`grow`. Idempotent.

        Cuts off the written bytes, or leaves that to the next write if truncating the file fails.

        Args:
            end_offset: the log end offset before the append.
        """
        if self._end_before != end_offset:
            return  # the append had not started to write; the saved state is that of an earlier one
        self._is_torn = True
        self.indexes.undo(self.size, end_offset)
        try:
            self.truncate_torn_end()
        except OSError:
            # The first failure is the one to report; the next write tries again.
            pass

    def truncate_torn_end(self) -> None:
        """Cut off the bytes that a failed write left at the end of the file.

        Raises:
            OSError: the file could not be truncated.
        """
        if self._is_torn:
            self.file.truncate(self.size)
            self._is_torn = False

    def grow(self, size: int, end_offset: int, now_ms: int) -> None:
        """Make batches that have been written and indexed visible to readers."""
        self.end_offset = end_offset
        self.size = size
        self._modified_ms = now_ms

    def must_roll(
        self, last_offset: int, newest_ms: int, partition: str, config: LogConfig, now_ms: int
    ) -> bool:
        """Return whether an append up to ``last_offset`` needs a new segment.

        Checks the age, the offsets and the index sizes, but not the size of the log file. The age
        is the difference between the timestamps of the first batch and of the new batch, so that
        replaying old data rolls segments at the same points. Without timestamps, it is the time
        since the segment was created (Kafka: LogSegment.shouldRoll).
        """
        if not self.size:
            return False
        if self.indexes.first_timestamp >= 0 and newest_ms >= 0:
            age_ms = newest_ms - self.indexes.first_timestamp
        else:
            age_ms = now_ms - self.created_ms
        index_bytes = config.segment_index_bytes
        # One entry of the time index stays free for the one that finish() appends.
        return (
            (
                age_ms > config.segment_ms - config.segment_jitter_ms
                and age_ms > config.segment_age_ms_max(f"{partition}/{self.base_offset}")
            )
            or last_offset - self.base_offset > ENTRY_MAX
            or len(self.index) >= index_bytes // OFFSET_ENTRY_SIZE
            or len(self.time_index) >= index_bytes // TIME_ENTRY_SIZE - 1
        )

    # Timestamps

    @property
    def newest(self) -> tuple[int, int]:
        """The greatest timestamp (-1 without records), and the last offset of its batch.

        May wait for the disk.
        """
        indexes = self.indexes
        if not indexes.is_newest_known:
            found = self._by_name(indexes.read_newest)
            if found is None:
                self.rebuild_indexes()
            else:
                indexes.set_newest(*found)
        offset = indexes.max_timestamp_offset
        return indexes.max_timestamp, offset

    @property
    def modified_ms(self) -> int:
        """The time of the last write to the log file, in milliseconds. May wait for the disk."""
        modified_ms = self._modified_ms
        if modified_ms < 0:
            found = self._by_name(lambda: self.directory.modified_ms(self.name("log")))
            modified_ms = self._modified_ms = self.created_ms if found is None else found
        return modified_ms

    @property
    def is_newest_known(self) -> bool:
        """Whether :attr:`newest` and :attr:`modified_ms` are available without disk access."""
        return self.indexes.is_newest_known and self._modified_ms >= 0

    @property
    def first_timestamp(self) -> int:
        """The greatest timestamp of the first batch; -1 without any. May wait for the disk.

        Raises:
            WireFormatError: no batch starts there.
        """
        indexes = self.indexes
        if indexes.first_timestamp < 0 and self.size:
            indexes.first_timestamp = header_at(self.file, 0).max_timestamp
        return indexes.first_timestamp

    # Indexes

    @property
    def index(self) -> OffsetIndex:
        """The offset index, read from its file if it is not in memory. May wait for the disk."""
        index = self.indexes.offsets
        if index is None:
            index = self._by_name(lambda: self.indexes.read_offsets(self.size))
            if index is None or not self._ends_as_indexed(index):
                return self.rebuild_indexes()[0]
            self.indexes.keep(index)
        return index

    @property
    def time_index(self) -> TimeIndex:
        """The time index; an old segment reads it from its file. May wait for the disk."""
        index = self.indexes.times
        if index is None:
            index = self._by_name(self.indexes.read_times)
            if index is None:
                _, index = self.rebuild_indexes()
        return index

    def rebuild_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Rebuild the indexes from the batch headers, in memory and on disk.

        Does not truncate the log file, which was on disk before the last shutdown. Records after
        damaged bytes cannot be read. Blocks; thread-safe.

        Raises:
            FileNotFoundError: the segment was removed.
            SegmentReplaced: the files belong to the segment's successor.
        """
        rebuilt = index_batches(self.file, self.places(0), self.base_offset, self.end_offset)
        damage = rebuilt.damage
        if damage is not None and self._ends_at(rebuilt.end, rebuilt.next_offset):
            damage = None
        self._raise_if_replaced()
        time_index = self.indexes.replace(rebuilt)
        if self.is_replaced:
            # The files may have been written over those of the successor, which rebuilds them.
            self.indexes.remove_files()
            self._raise_if_replaced()
        logger.warning("%r: rebuilt the indexes of %s", self.directory, self.name("log"))
        if damage is not None:
            logger.error(
                "%r: the records after the damage cannot be read: %s", self.directory, damage
            )
        return rebuilt.offsets, time_index

    def _ends_as_indexed(self, index: OffsetIndex) -> bool:
        """Return whether the last index entry of an old segment points to a batch.

        If so, bytes after the last batch are excluded (:meth:`_ends_at`).
        """
        entry, position = index.last()
        if position and not has_batch_at(self.file, position, self.base_offset + entry):
            return False
        end, next_offset = position, self.base_offset
        try:
            for place in self.places(position):
                if place.last_offset >= self.end_offset:
                    break
                end, next_offset = place.position + place.size, place.last_offset + 1
        except ApiError:
            pass  # a read of that position raises it again
        self._ends_at(end, next_offset)
        return True

    def _ends_at(self, end: int, next_offset: int) -> bool:
        """Exclude the bytes after ``end``, where the last batch of an old segment ends.

        Returns False, and changes nothing, if the batches do not end at the segment's end offset.

        A failed append may have left bytes after the last batch, or even whole batches, whose
        offsets are at or above the base offset of the next segment.
        """
        if next_offset != self.end_offset or self.indexes.times is not None:
            return False
        if end < self.size:
            logger.warning(
                "%r: ignoring %d bytes after the last record of %s, starting at byte %d",
                self.directory,
                self.size - end,
                self.name("log"),
                end,
            )
            self.size = end
        return True

    # Looking up

    def locate(self, offset: int) -> BatchPlace | None:
        """Return the first batch that ends at or after ``offset``; None if there is none.

        Thread-safe. May wait for the disk unless the batch is one of the newest.

        Raises:
            ApiError: CORRUPT_MESSAGE if the bytes found are not a batch.
        """
        place = self.indexes.find_recent(offset)
        if place is not None:
            return place
        try:
            for place in self.places_from(offset):
                if place.last_offset < offset:
                    continue
                if place.last_offset < self.end_offset:
                    return place
                # The CRC does not cover the offset of a batch.
                raise ApiError(
                    CORRUPT_MESSAGE,
                    f"{self.name('log')}: the batch at byte {place.position} has offsets"
                    f" {place.base_offset} to {place.last_offset}, but the segment ends at"
                    f" {self.end_offset}",
                )
        except ApiError as error:
            if not self._is_damage_reported:
                self._is_damage_reported = True
                text = "%r: readers get CORRUPT_MESSAGE: %s"
                logger.error(text, self.directory, error)  # noqa: TRY400
            raise
        return None

    def places_from(self, offset: int) -> Iterator[BatchPlace]:
        """Yield the batches, starting at or shortly before the batch that contains ``offset``.

        Thread-safe; may wait for the disk.

        Raises:
            ApiError: CORRUPT_MESSAGE if the bytes found are not a batch.
        """
        entry, position = self.index.floor(offset - self.base_offset)
        if position and not has_batch_at(self.file, position, self.base_offset + entry):
            position = self.rebuild_indexes()[0].floor(offset - self.base_offset)[1]
        return self.places(position)

    def end_of(self, position: int) -> int:
        """Return an offset at or above which no record is before ``position``. Never blocks."""
        index = self.indexes.offsets
        after = -1 if index is None else index.offset_at_or_after(position)
        return self.end_offset if after < 0 else self.base_offset + after

    def places(self, position: int) -> Iterator[BatchPlace]:
        """Yield the batches, starting with the one at ``position``. Reads only headers.

        Thread-safe; may wait for the disk.

        Raises:
            ApiError: CORRUPT_MESSAGE if the bytes found are not a batch.
        """
        return batches_from(self.file, position, self.size, self.base_offset)

    def __repr__(self) -> str:
        return f"Segment({self.base_offset}..{self.end_offset}, {self.size} bytes)"
