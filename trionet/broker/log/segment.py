"""One segment: a log file of at most ``segment.bytes``, with its indexes (Kafka: LogSegment).

The active segment, the last of a log, grows; the others never change again. An old segment keeps
its file open and its index in RAM only while it is being read; the log decides how many.

Threads may read (``locate``, ``file``, ``index``) while the loop appends. What keeps that safe
without a lock is the order of the writes: entries before their counts, ``end_offset`` before
``size``; a reader takes ``size`` first and then sees an ``end_offset`` at least as new.
"""

from __future__ import annotations

import errno
import logging
import struct
from bisect import bisect_right
from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

from ...errors import ApiError, WireFormatError
from ...protocol.error_codes import CORRUPT_MESSAGE
from ...protocol.records.batch import HEADER_SIZE, PREFIX_SIZE, read_header
from .config import LogConfig
from .directory import GATHER_BUFFERS_MAX, Buffer, Directory, LogFile
from .index import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE, OffsetIndex, TimeIndex
from .page_cache import is_page_cached

logger = logging.getLogger("trionet.broker.log")

# One read covers the batches between two index entries, with Kafka's default of 4 KB between them.
SCAN_BYTES = 8192

# The newest batches whose place is remembered: consumers that keep up need no look-up in a file.
RECENT_BATCHES_MAX = 256

# Base offset, length, (epoch, magic, CRC, attributes), last offset delta.
_PLACE = struct.Struct(">qi11xi")
# Kafka's default; an index that is made again needs no other.
_INDEX_INTERVAL_BYTES = 4096

_RELATIVE_OFFSET_MAX = 2**31 - 1
_base_offset = itemgetter(0)


class BatchPlace(NamedTuple):
    """Where one batch lies in its segment's file."""

    base_offset: int
    last_offset: int
    position: int
    size: int


def file_name(base_offset: int, suffix: str) -> str:
    """``00000000000000000042.log`` and the like."""
    return f"{base_offset:020d}.{suffix}"


class Segment:
    """One log file and its indexes; see the module for what threads may do.

    Args:
        directory: the partition's folder.
        base_offset: the smallest offset it can hold; its name.
        created_ms: when it was made (or opened, if that is not known any more).
    """

    __slots__ = (
        "_file",
        "_index",
        "_index_saved",
        "_is_torn",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_modified_ms",
        "_newest_is_known",
        "_recent",
        "_since_index_entry",
        "_time_index",
        "_time_index_saved",
        "base_offset",
        "created_ms",
        "directory",
        "end_offset",
        "first_timestamp",
        "size",
    )

    def __init__(self, directory: Directory, base_offset: int, created_ms: int) -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.created_ms = created_ms
        self._modified_ms = created_ms
        self.end_offset = base_offset
        self.size = 0
        self.first_timestamp = -1
        self._newest_is_known = True
        self._max_timestamp = -1
        self._max_timestamp_offset = base_offset
        self._file: LogFile | None = None
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._index_saved = 0
        self._time_index_saved = 0
        self._since_index_entry = 0
        self._recent: list[BatchPlace] = []
        self._is_torn = False

    @classmethod
    def create(cls, directory: Directory, base_offset: int, now_ms: int) -> Segment:
        """A new, empty segment; its file exists when this returns (its name is not synced)."""
        segment = cls(directory, base_offset, now_ms)
        segment._file = directory.create(segment.name("log"))
        segment.start_indexes()
        return segment

    def name(self, suffix: str) -> str:
        """The name of one of its files."""
        return file_name(self.base_offset, suffix)

    @classmethod
    def old(cls, directory: Directory, base_offset: int, end_offset: int, now_ms: int) -> Segment:
        """A segment of an earlier run. What its index files say is read when it is first needed."""
        segment = cls(directory, base_offset, now_ms)
        segment.end_offset = end_offset
        segment.size = directory.size(segment.name("log"))
        segment._newest_is_known = False
        segment._modified_ms = -1
        return segment

    @property
    def file(self) -> LogFile:
        """The open log file."""
        file = self._file
        if file is None:
            file = self._file = self.directory.open(self.name("log"))
        return file

    @property
    def index(self) -> OffsetIndex:
        """The offset index, read from its file when it is not in RAM (may wait for the disk)."""
        index = self._index
        if index is None:
            try:
                index = OffsetIndex.decode(self.directory.read(self.name("index")), self.size)
            except FileNotFoundError:
                pass
            if index is None:
                index, _ = self.index_again()
            self._index_saved = len(index)
            self._index = index
        return index

    @property
    def time_index(self) -> TimeIndex:
        """The time index; that of an old segment is read anew each time (may wait for the disk)."""
        index = self._time_index
        if index is None:
            try:
                index = TimeIndex.decode(self.directory.read(self.name("timeindex")))
            except FileNotFoundError:
                pass
            if index is None:
                _, index = self.index_again()
        return index

    def index_again(self) -> tuple[OffsetIndex, TimeIndex]:
        """Make the indexes of an old segment anew from its batch headers, in RAM and on the disk.

        Nothing is cut: the log file was on the disk before the last stop. What lies behind bytes
        that are no batch cannot be read. Blocks; thread-safe.

        Raises:
            FileNotFoundError: the segment was removed.
        """
        again = Segment(self.directory, self.base_offset, self.created_ms)
        again.start_indexes()
        damage = None
        try:
            for place in self.places(0):
                header = read_header(self.file.read_at(place.position, HEADER_SIZE))
                again.note(place, header.max_timestamp, _INDEX_INTERVAL_BYTES)
        except (ApiError, WireFormatError) as error:
            damage = error
        again.finish()
        index, time_index = again.index, again.time_index
        self.directory.replace(self.name("index"), index.encode())
        self.directory.replace(self.name("timeindex"), time_index.encode())
        self.set_newest(again.max_timestamp, again.max_timestamp_offset)
        logger.warning("%r: the indexes of %s were made again", self.directory, self.name("log"))
        if damage is not None:
            logger.error("%r: records behind cannot be read: %s", self.directory, damage)
        return index, time_index

    @property
    def max_timestamp(self) -> int:
        """The greatest timestamp of its records, -1 without any (may wait for the disk)."""
        if not self._newest_is_known:
            self._learn_newest()
        return self._max_timestamp

    @property
    def max_timestamp_offset(self) -> int:
        """The last offset of the batch that has it (may wait for the disk)."""
        if not self._newest_is_known:
            self._learn_newest()
        return self._max_timestamp_offset

    def set_newest(self, timestamp: int, offset: int) -> None:
        """Take what was found to be the greatest timestamp."""
        # In this order: a thread may look at them meanwhile.
        self._max_timestamp_offset = offset
        self._max_timestamp = timestamp
        self._newest_is_known = True

    def _learn_newest(self) -> None:
        """Read the end of the time index; if it cannot be right, make the indexes again."""
        # Two entries, because one says nothing: zeros, which a crash can leave behind the entries,
        # are a possible entry but not one that rises.
        name = self.name("timeindex")
        times = None
        try:
            size = self.directory.size(name)
            if not size % TIME_ENTRY_SIZE:
                start = max(0, size - 2 * TIME_ENTRY_SIZE)
                times = TimeIndex.decode(self.directory.read(name, start))
        except FileNotFoundError:
            pass
        if times is None:
            self.index_again()
        else:
            timestamp, offset = times.last()
            self.set_newest(timestamp, self.base_offset + offset)

    @property
    def modified_ms(self) -> int:
        """When its file was last written, in milliseconds (may wait for the disk)."""
        modified_ms = self._modified_ms
        if modified_ms < 0:
            found = self.directory.modified_ms(self.name("log"))
            modified_ms = self._modified_ms = self.created_ms if found is None else found
        return modified_ms

    @property
    def newest_is_at_hand(self) -> bool:
        """Whether :attr:`newest_ms` would be told without waiting for the disk."""
        return self._newest_is_known and self._modified_ms >= 0

    @property
    def is_loaded(self) -> bool:
        """File and offset index are at hand: looking something up opens no file."""
        return self._file is not None and self._index is not None

    @property
    def newest_ms(self) -> int:
        """The age of the segment for retention: its newest timestamp, else its last change."""
        newest = self.max_timestamp
        return newest if newest >= 0 else self.modified_ms

    # Growing

    def start_indexes(self) -> None:
        """Begin with empty indexes, that of a file scanned from its start."""
        self._index, self._time_index = OffsetIndex(), TimeIndex()
        self._index_saved = self._time_index_saved = 0
        self._since_index_entry = 0
        self.set_newest(-1, self.base_offset)

    def continue_indexes(self, index: OffsetIndex, time_index: TimeIndex) -> None:
        """Go on with the indexes of an earlier run, whose files hold all their entries."""
        timestamp, offset = time_index.last()
        self.set_newest(timestamp, self.base_offset + offset)
        self._index, self._time_index = index, time_index
        self._index_saved, self._time_index_saved = len(index), len(time_index)
        self._since_index_entry = self.size - index.last_position()

    def write(self, buffers: list[Buffer], size: int) -> None:
        """Add bytes to the file; :meth:`note` and :meth:`grow` make them part of the segment.

        Raises:
            OSError: nothing was added. What a failed write left behind is cut off, now or before
                the next one.
        """
        self.mend()
        position = self.size
        written = 0
        try:
            for first in range(0, len(buffers), GATHER_BUFFERS_MAX):
                piece = buffers[first : first + GATHER_BUFFERS_MAX]
                written += self.file.write_at(position + written, piece)
            if written != size:
                raise OSError(errno.ENOSPC, f"{written} of {size} bytes could be written")
        except OSError:
            self._is_torn = True
            try:
                self.mend()
            except OSError:
                # The error that came first says more; the next write tries again.
                pass
            raise

    def mend(self) -> None:
        """Cut off what a failed write left.

        Raises:
            OSError: it is still there.
        """
        if self._is_torn:
            self.file.truncate(self.size)
            self._is_torn = False

    def note(self, place: BatchPlace, max_timestamp: int, index_interval: int) -> None:
        """Index a batch that was written; ``size`` and ``end_offset`` follow by :meth:`grow`."""
        _, last_offset, position, size = place
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        if position == 0:
            self.first_timestamp = max_timestamp
        if self._since_index_entry > index_interval:
            self.index.append(last_offset - self.base_offset, position)
            self._note_time()
            self._since_index_entry = 0
        self._since_index_entry += size
        recent = self._recent
        recent.append(place)
        if len(recent) > RECENT_BATCHES_MAX:
            del recent[: RECENT_BATCHES_MAX // 2]

    def grow(self, size: int, end_offset: int, now_ms: int) -> None:
        """Make noted batches readable."""
        self.end_offset = end_offset
        self.size = size
        self._modified_ms = now_ms

    def _note_time(self) -> None:
        if self._max_timestamp >= 0 and self._time_index is not None:
            self._time_index.append_if_newer(
                self._max_timestamp, self._max_timestamp_offset - self.base_offset
            )

    def must_roll(
        self, last_offset: int, newest_ms: int, partition: str, config: LogConfig, now_ms: int
    ) -> bool:
        """Whether another segment has to take an append up to ``last_offset``; size apart.

        The age is that of the first batch against the newest one's timestamp, so that old data
        written again rolls as it did the first time; without timestamps the clock counts
        (Kafka: LogSegment.shouldRoll).
        """
        if not self.size:
            return False
        if self.first_timestamp >= 0 and newest_ms >= 0:
            age_ms = newest_ms - self.first_timestamp
        else:
            age_ms = now_ms - self.created_ms
        index_bytes = config.segment_index_bytes
        # One place of the time index stays free for the entry made when the segment is finished.
        return (
            (
                age_ms > config.segment_ms - config.segment_jitter_ms
                and age_ms > config.segment_age_ms_max(f"{partition}/{self.base_offset}")
            )
            or last_offset - self.base_offset > _RELATIVE_OFFSET_MAX
            or len(self.index) >= index_bytes // OFFSET_ENTRY_SIZE
            or len(self.time_index) >= index_bytes // TIME_ENTRY_SIZE - 1
        )

    def finish(self) -> None:
        """The last time index entry, made when the segment ends or the log is closed."""
        self._note_time()

    # Saving

    @property
    def has_unsaved_index(self) -> bool:
        """Index entries exist that are in RAM only."""
        index, time_index = self._index, self._time_index
        return (index is not None and len(index) > self._index_saved) or (
            time_index is not None and len(time_index) > self._time_index_saved
        )

    def save_indexes(self) -> None:
        """Write what the index files lack (creating them); not synced. Blocks, thread-safe."""
        index, time_index = self._index, self._time_index
        if index is not None:
            count = len(index)
            data = index.encode(self._index_saved)[
                : (count - self._index_saved) * OFFSET_ENTRY_SIZE
            ]
            self.directory.write(self.name("index"), self._index_saved * OFFSET_ENTRY_SIZE, data)
            self._index_saved = count
        if time_index is not None:
            count = len(time_index)
            data = time_index.encode(self._time_index_saved)
            data = data[: (count - self._time_index_saved) * TIME_ENTRY_SIZE]
            self.directory.write(
                self.name("timeindex"), self._time_index_saved * TIME_ENTRY_SIZE, data
            )
            self._time_index_saved = count

    def release(self) -> None:
        """Close the file and forget the indexes of an old segment; they are loaded when needed."""
        if self.directory.is_durable and not self.has_unsaved_index:
            self._file = self._index = self._time_index = None
            self._recent = []

    def let_go(self) -> None:
        """Hold the file no longer; whoever sends a range of it still does."""
        self._file = None

    # Looking up

    def locate(self, offset: int) -> BatchPlace | None:
        """The first batch that ends at or after ``offset``; None when there is none here.

        Thread-safe. May wait for the disk unless :meth:`can_locate_now`.

        Raises:
            ApiError: CORRUPT_MESSAGE, the bytes found are no batch.
        """
        place = self._locate_recent(offset)
        if place is not None:
            return place
        position = self.index.floor(offset - self.base_offset)
        return next((place for place in self.places(position) if place.last_offset >= offset), None)

    def can_locate_now(self, offset: int) -> bool:
        """Whether :meth:`locate` would answer without waiting for the disk."""
        if self._locate_recent(offset) is not None:
            return self._file is not None
        if not self.is_loaded:
            return False
        position = self.index.floor(offset - self.base_offset)
        end = min(position + SCAN_BYTES, self.size) - 1
        return is_page_cached(self.file, position) and is_page_cached(self.file, max(end, 0))

    def _locate_recent(self, offset: int) -> BatchPlace | None:
        recent = self._recent
        found = bisect_right(recent, offset, key=_base_offset) - 1
        if 0 <= found < len(recent):
            place = recent[found]
            # The list may have been shortened between the search and now: what was found says
            # itself whether it is the right one.
            if place.base_offset <= offset <= place.last_offset:
                return place
        return None

    def places(self, position: int) -> Iterator[BatchPlace]:
        """The batches from ``position``, where one starts, to the end; reads headers only.

        Thread-safe; may wait for the disk.

        Raises:
            ApiError: CORRUPT_MESSAGE, the bytes found are no batch.
        """
        file, limit = self.file, self.size
        while position < limit:
            chunk = file.read_at(position, min(SCAN_BYTES, limit - position))
            at, last_start = 0, len(chunk) - _PLACE.size
            while at <= last_start:
                base_offset, length, last_delta = _PLACE.unpack_from(chunk, at)
                size = length + PREFIX_SIZE
                if size < HEADER_SIZE or last_delta < 0:
                    break
                yield BatchPlace(base_offset, base_offset + last_delta, position + at, size)
                at += size
            if not at:
                raise ApiError(
                    CORRUPT_MESSAGE, f"{self.name('log')}: no record batch at byte {position}"
                )
            position += at

    def __repr__(self) -> str:
        return f"Segment({self.base_offset}..{self.end_offset}, {self.size} bytes)"
