"""One segment: a log file of at most ``segment.bytes``, with its indexes (Kafka: LogSegment).

The active segment, the last of a log, grows; the others never change again. An old segment keeps
its file open and its offset index in memory only while it is being read; the log limits how many.

The problem: threads read (``locate``, ``file``, ``index``) while the loop appends, a failed append
must leave no trace, and index files may be damaged. The choices:

* No lock; the order of the writes makes concurrent reads safe. Index entries are complete before
  they count, and ``end_offset`` is written before ``size``: a reader takes ``size`` first and then
  sees an ``end_offset`` that is at least as new. A lock was refused, because every append and every
  fetch would pay for it, and because an exception between its release and what it guards would
  leave it locked.
* An append first remembers what it is going to change, so that it can be undone by assignments
  alone. Bytes that a failed write left behind are cut off, at once or before the next write.
* An index is derived data. If an entry does not name a batch with its offset, both indexes are
  rebuilt from the batch headers. The log file itself is left alone: it was on the disk before the
  last shutdown, and cutting it would delete records because of a bad index.

Think again if Python loses the GIL: "one assignment is atomic, and assignments are seen in order"
carries this file.
"""

# Compiled by mypyc.

from __future__ import annotations

import errno
import logging
import struct
from bisect import bisect_right
from collections.abc import Iterator
from operator import itemgetter
from typing import Final, NamedTuple

from ....errors import ApiError, WireFormatError
from ....protocol.error_codes import CORRUPT_MESSAGE
from ....protocol.records._batch import HEADER_SIZE, PREFIX_SIZE, BatchHeader, read_header
from ..files._directory import GATHER_BUFFERS_MAX, Buffer, Directory, LogFile
from ..files._page_cache import is_page_cached
from ._index import ENTRY_MAX, OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE, OffsetIndex, TimeIndex
from ._log_config import LogConfig

logger = logging.getLogger("trionet.broker.log")

# How many of the newest batch positions are cached: consumers that keep up need no file lookup.
RECENT_BATCHES_MAX: Final = 256
# One read covers the batches between two index entries, which are 4 KB apart by Kafka's default.
SCAN_BYTES = 8192

# Base offset, length, (epoch, magic, CRC, attributes), last offset delta.
_PLACE = struct.Struct(">qi11xi")
# Kafka's default (index.interval.bytes); good enough for a rebuilt index.
_INDEX_INTERVAL_BYTES = 4096

_base_offset: Final = itemgetter(0)


class BatchPlace(NamedTuple):
    """The position of one batch in the file of its segment."""

    base_offset: int
    last_offset: int
    position: int
    size: int


def file_name(base_offset: int, suffix: str) -> str:
    """The name of a segment's file, such as ``00000000000000000042.log``."""
    return f"{base_offset:020d}.{suffix}"


def is_offset(stem: str) -> bool:
    """Whether a file name without its suffix is an offset."""
    return stem.isascii() and stem.isdigit() and len(stem) <= 20 and int(stem) < 2**63


class Segment:
    """One log file and its indexes. The loop appends; threads may look up and read meanwhile.

    One class of many methods, as Kafka's LogSegment: writers and readers share its fields, and the
    order in which these are written is what makes concurrent reads safe.

    Args:
        directory: the partition's folder.
        base_offset: the smallest offset it can hold, which is also its name.
        created_ms: when it was created, or opened if that is unknown.
    """

    __slots__ = (
        "_end_before",
        "_file",
        "_index",
        "_index_cuts",
        "_index_cuts_saved",
        "_index_saved",
        "_is_damage_reported",
        "_is_newest_known",
        "_is_torn",
        "_max_timestamp",
        "_max_timestamp_before",
        "_max_timestamp_offset",
        "_max_timestamp_offset_before",
        "_modified_ms",
        "_recent",
        "_since_index_entry",
        "_size_before",
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
        self.end_offset = base_offset
        self.size = 0
        self.first_timestamp = -1
        self._modified_ms = created_ms
        self._is_newest_known = True
        self._is_damage_reported = False
        self._max_timestamp = -1
        self._max_timestamp_offset = base_offset
        self._file: LogFile | None = None
        self._index: OffsetIndex | None = None
        # Only an active segment keeps its time index in memory.
        self._time_index: TimeIndex | None = None
        self._index_saved = 0
        self._time_index_saved = 0
        # How often index entries were removed that the files may hold already.
        self._index_cuts = 0
        self._index_cuts_saved = 0
        self._since_index_entry = 0
        self._recent: list[BatchPlace] = []
        self._is_torn = False
        # The state before the last append, to undo it: size and end offset (-1: nothing was
        # appended yet), and the greatest timestamp with its offset.
        self._size_before = 0
        self._end_before = -1
        self._max_timestamp_before = -1
        self._max_timestamp_offset_before = base_offset

    @classmethod
    def create(cls, directory: Directory, base_offset: int, now_ms: int) -> Segment:
        """Create an empty segment. Its file exists when this returns; its name is not synced."""
        segment = cls(directory, base_offset, now_ms)
        segment._file = directory.create(segment.name("log"))
        segment.start_indexes()
        return segment

    @classmethod
    def old(cls, directory: Directory, base_offset: int, end_offset: int, now_ms: int) -> Segment:
        """A segment of an earlier run. Its index files are read when they are first needed."""
        segment = cls(directory, base_offset, now_ms)
        segment.end_offset = end_offset
        segment.size = directory.size(segment.name("log"))
        segment._is_newest_known = False
        segment._modified_ms = -1
        return segment

    def name(self, suffix: str) -> str:
        """The name of one of the segment's files."""
        return file_name(self.base_offset, suffix)

    @property
    def file(self) -> LogFile:
        """The open log file."""
        file = self._file
        if file is None:
            file = self._file = self.directory.open(self.name("log"))
        return file

    @property
    def is_loaded(self) -> bool:
        """The file is open and the offset index in memory, so that a lookup opens no file."""
        return self._file is not None and self._index is not None

    def close_file(self) -> None:
        """Drop the reference to the file; ranges of it that are being sent keep it open."""
        self._file = None

    # Growing

    def start_indexes(self) -> None:
        """Start with empty indexes, for a file that is scanned from its start."""
        self._index, self._time_index = OffsetIndex(), TimeIndex()
        self._index_saved = self._time_index_saved = 0
        self._since_index_entry = 0
        self._recent = []
        self.first_timestamp = -1
        self.set_newest(-1, self.base_offset)

    def continue_indexes(self, index: OffsetIndex, time_index: TimeIndex) -> None:
        """Continue with indexes read from files that hold all of their entries."""
        timestamp, offset = time_index.last()
        self.set_newest(timestamp, self.base_offset + offset)
        self._index, self._time_index = index, time_index
        self._index_saved, self._time_index_saved = len(index), len(time_index)
        self._since_index_entry = self.size - index.last()[1]

    def write(self, buffers: list[Buffer], size: int) -> None:
        """Write bytes at the end of the file; call :meth:`index_batch` and :meth:`grow` next.

        Raises:
            OSError: not all bytes could be written; call :meth:`undo_append`.
        """
        self.truncate_torn_end()
        position = self.size
        self._size_before = position
        self._max_timestamp_before = self._max_timestamp
        self._max_timestamp_offset_before = self._max_timestamp_offset
        self._end_before = self.end_offset  # last: it says that the other three are set
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
        """Undo an append, however far it got. Idempotent.

        The bytes it has written are cut off: now or, if that fails, before the next write.

        Args:
            end_offset: the log end offset before the append.
        """
        if self._end_before != end_offset:
            return  # the append had not started to write; the saved state is that of an earlier one
        self._is_torn = True
        # Size before end offset, because readers take the size first.
        size = self.size = self._size_before
        self.end_offset = end_offset
        self._recent = []
        self._max_timestamp = self._max_timestamp_before
        self._max_timestamp_offset = self._max_timestamp_offset_before
        self._remove_index_entries()
        if not size:
            self.first_timestamp = -1
        try:
            self.truncate_torn_end()
        except OSError:
            # The first failure is the one to report; the next write tries again.
            pass

    def _remove_index_entries(self) -> None:
        index, time_index = self._index, self._time_index
        assert index is not None
        assert time_index is not None
        count, time_count = (
            index.count_before(self.size),
            time_index.count_before(self._relative_end),
        )
        if count < len(index) or time_count < len(time_index):
            # The counter first: a thread that is saving entries may or may not have saved these, so
            # the next save has to write the files from the start.
            self._index_cuts += 1
            index.cut(count)
            time_index.cut(time_count)
        self._since_index_entry = self.size - index.last()[1]

    @property
    def _relative_end(self) -> int:
        return self.end_offset - self.base_offset

    def truncate_torn_end(self) -> None:
        """Cut off the bytes that a failed write left behind.

        Raises:
            OSError: they could not be cut off.
        """
        if self._is_torn:
            self.file.truncate(self.size)
            self._is_torn = False

    def index_batch(self, place: BatchPlace, max_timestamp: int, index_interval: int) -> None:
        """Index a written batch; :meth:`grow` then updates ``size`` and ``end_offset``."""
        _, last_offset, position, size = place
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        if position == 0:
            self.first_timestamp = max_timestamp
        if self._since_index_entry > index_interval:
            entry = last_offset - self.base_offset
            # A batch that no entry can express is found by reading on from an earlier one.
            if entry <= ENTRY_MAX and position <= ENTRY_MAX:
                self.index.append(entry, position)
            self._append_time_entry()
            self._since_index_entry = 0
        self._since_index_entry += size
        recent = self._recent
        recent.append(place)
        if len(recent) > RECENT_BATCHES_MAX:
            del recent[: RECENT_BATCHES_MAX // 2]

    def grow(self, size: int, end_offset: int, now_ms: int) -> None:
        """Make written and indexed batches visible to readers."""
        self.end_offset = end_offset
        self.size = size
        self._modified_ms = now_ms

    def _append_time_entry(self) -> None:
        entry = self._max_timestamp_offset - self.base_offset
        if self._max_timestamp >= 0 and entry <= ENTRY_MAX and self._time_index is not None:
            self._time_index.append_if_newer(self._max_timestamp, entry)

    def must_roll(
        self, last_offset: int, newest_ms: int, partition: str, config: LogConfig, now_ms: int
    ) -> bool:
        """Whether an append up to ``last_offset`` needs a new segment, apart from its size.

        The age is the difference between the timestamps of the first and the newest batch, so that
        replayed old data rolls as it did the first time; without timestamps, it is that of the
        segment (Kafka: LogSegment.shouldRoll).
        """
        if not self.size:
            return False
        if self.first_timestamp >= 0 and newest_ms >= 0:
            age_ms = newest_ms - self.first_timestamp
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

    def finish(self) -> None:
        """Append the last time index entry, when the segment ends or the log is closed."""
        self._append_time_entry()

    # Saving

    @property
    def has_unsaved_index(self) -> bool:
        """The index files lack entries, or hold entries that were removed."""
        index, time_index = self._index, self._time_index
        return (
            (index is not None and len(index) > self._index_saved)
            or (time_index is not None and len(time_index) > self._time_index_saved)
            or self._index_cuts != self._index_cuts_saved
        )

    def save_indexes(self) -> None:
        """Append the missing entries to the index files, without syncing. Blocks; thread-safe."""
        cuts = self._index_cuts
        index, time_index = self._index, self._time_index
        if cuts != self._index_cuts_saved:
            # The files may hold entries that were removed: write them from the start.
            for suffix in ("index", "timeindex"):
                self.directory.remove(self.name(suffix))
            self._index_saved = self._time_index_saved = 0
            self._index_cuts_saved = cuts
        if index is not None:
            data = index.encode(self._index_saved)
            self.directory.write(self.name("index"), self._index_saved * OFFSET_ENTRY_SIZE, data)
            self._index_saved += len(data) // OFFSET_ENTRY_SIZE
        if time_index is not None:
            data = time_index.encode(self._time_index_saved)
            position = self._time_index_saved * TIME_ENTRY_SIZE
            self.directory.write(self.name("timeindex"), position, data)
            self._time_index_saved += len(data) // TIME_ENTRY_SIZE

    def release(self) -> None:
        """Close the file and drop the indexes of an old segment; they are loaded when needed."""
        if self.directory.is_durable and not self.has_unsaved_index:
            self._file = self._index = self._time_index = None
            self._recent = []

    def sync(self) -> None:
        """Sync the log file and the saved index files. Blocks."""
        self.file.sync()
        self.sync_indexes()

    def sync_indexes(self) -> None:
        """Sync the saved index files. Blocks."""
        for suffix in ("index", "timeindex"):
            try:
                self.directory.sync_file(self.name(suffix))
            except FileNotFoundError:
                # Those of the active segment are created with their first entries.
                continue

    def drop_indexes(self) -> None:
        """Drop the indexes, in memory and on the disk."""
        for suffix in ("index", "timeindex"):
            self.directory.remove(self.name(suffix))
        self.start_indexes()

    # Timestamps

    @property
    def max_timestamp(self) -> int:
        """The greatest timestamp of the records; -1 without records (may wait for the disk)."""
        if not self._is_newest_known:
            self._load_newest()
        return self._max_timestamp

    @property
    def max_timestamp_offset(self) -> int:
        """The last offset of the batch with the greatest timestamp (may wait for the disk)."""
        if not self._is_newest_known:
            self._load_newest()
        return self._max_timestamp_offset

    def set_newest(self, timestamp: int, offset: int) -> None:
        """Set the greatest timestamp and the last offset of its batch."""
        # Offset before timestamp before flag: threads may read them meanwhile.
        self._max_timestamp_offset = offset
        self._max_timestamp = timestamp
        self._is_newest_known = True

    def _load_newest(self) -> None:
        """Read the end of the time index; if it is implausible, rebuild the indexes."""
        # Two entries, because one proves nothing: zeros, which a crash can leave after the entries,
        # are a valid entry, but not a rising one.
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
            self.rebuild_indexes()
        else:
            timestamp, offset = times.last()
            self.set_newest(timestamp, self.base_offset + offset)

    @property
    def modified_ms(self) -> int:
        """When the log file was last written, in milliseconds (may wait for the disk)."""
        modified_ms = self._modified_ms
        if modified_ms < 0:
            found = self.directory.modified_ms(self.name("log"))
            modified_ms = self._modified_ms = self.created_ms if found is None else found
        return modified_ms

    @property
    def is_newest_known(self) -> bool:
        """Whether :attr:`newest_ms` is known without waiting for the disk."""
        return self._is_newest_known and self._modified_ms >= 0

    @property
    def newest_ms(self) -> int:
        """The time that retention compares: the greatest timestamp, else the last write."""
        newest = self.max_timestamp
        return newest if newest >= 0 else self.modified_ms

    # Indexes

    @property
    def index(self) -> OffsetIndex:
        """The offset index, read from its file if it is not in memory (may wait for the disk)."""
        index = self._index
        if index is None:
            try:
                index = OffsetIndex.decode(self.directory.read(self.name("index")), self.size)
            except FileNotFoundError:
                pass
            if index is None or not self._ends_as_indexed(index):
                return self.rebuild_indexes()[0]
            self._index_saved = len(index)
            self._index = index
        return index

    @property
    def time_index(self) -> TimeIndex:
        """The time index; for an old segment read from its file each time (may wait for it)."""
        index = self._time_index
        if index is None:
            try:
                index = TimeIndex.decode(self.directory.read(self.name("timeindex")))
            except FileNotFoundError:
                pass
            if index is None:
                _, index = self.rebuild_indexes()
        return index

    def rebuild_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        """Rebuild the indexes from the batch headers, in memory and on the disk.

        The log file is not truncated: it was on the disk before the last shutdown. Records after
        bytes that are not a batch cannot be read. Blocks; thread-safe.

        Raises:
            FileNotFoundError: the segment was removed.
        """
        index, time_index, newest, damage = self._index_batches()
        growing = self._time_index
        if growing is not None:
            # The loop may be appending to it, and a flush saving it: the next flush writes the
            # files.
            self._index_cuts += 1
            time_index = growing
        else:
            self.directory.replace(self.name("index"), index.encode())
            self.directory.replace(self.name("timeindex"), time_index.encode())
            self.set_newest(*newest)
            self._index_saved = len(index)
        self._index = index
        logger.warning("%r: rebuilt the indexes of %s", self.directory, self.name("log"))
        if damage is not None:
            logger.error(
                "%r: the records after this position cannot be read: %s", self.directory, damage
            )
        return index, time_index

    def _index_batches(
        self,
    ) -> tuple[OffsetIndex, TimeIndex, tuple[int, int], Exception | None]:
        """Both indexes, the greatest timestamp and its offset, and the damage after the batches."""
        index, time_index = OffsetIndex(), TimeIndex()
        base_offset, next_offset = self.base_offset, self.base_offset
        newest = (-1, base_offset)
        end = since_entry = 0
        damage: Exception | None = None
        try:
            for place in self.places(0):
                if not next_offset <= place.base_offset <= place.last_offset < self.end_offset:
                    offsets = f"{place.base_offset} to {place.last_offset}"
                    raise WireFormatError(f"offsets {offsets} at byte {place.position}")
                header = read_header(self.file.read_at(place.position, HEADER_SIZE))
                if header.max_timestamp > newest[0]:
                    newest = header.max_timestamp, place.last_offset
                entry = place.last_offset - base_offset
                if since_entry > _INDEX_INTERVAL_BYTES and max(entry, place.position) <= ENTRY_MAX:
                    index.append(entry, place.position)
                    time_index.append_if_newer(newest[0], newest[1] - base_offset)
                    since_entry = 0
                since_entry += place.size
                next_offset, end = place.last_offset + 1, place.position + place.size
        except (ApiError, WireFormatError) as error:
            damage = None if self._ends_at(end, next_offset) else error
        if newest[1] - base_offset <= ENTRY_MAX:
            time_index.append_if_newer(newest[0], newest[1] - base_offset)
        return index, time_index, newest, damage

    def _ends_as_indexed(self, index: OffsetIndex) -> bool:
        """Whether the last entry of an old segment's index names a batch."""
        entry, position = index.last()
        if position and not self._is_indexed(entry, position):
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
        """Exclude bytes after the last batch of an old segment. False if ``end`` is not its end.

        A failed append may have left bytes there, and even whole batches; those of the segment
        itself have offsets below the base offset of the next segment.
        """
        if next_offset != self.end_offset or self._time_index is not None:
            return False
        if end < self.size:
            logger.warning(
                "%r: ignoring %d bytes after the last record of %s, from byte %d on",
                self.directory,
                self.size - end,
                self.name("log"),
                end,
            )
            self.size = end
        return True

    def _is_indexed(self, entry: int, position: int) -> bool:
        """Whether the batch at an index entry's position has the entry's last offset."""
        head = self.file.read_at(position, _PLACE.size)
        if len(head) < _PLACE.size:
            return False
        base_offset, length, last_delta = _PLACE.unpack(head)
        last_offset: int = base_offset + last_delta
        return last_offset == self.base_offset + entry and length >= HEADER_SIZE - PREFIX_SIZE

    # Looking up

    def locate(self, offset: int) -> BatchPlace | None:
        """The first batch that ends at or after ``offset``; None if this segment has none.

        Thread-safe. May wait for the disk unless :meth:`can_locate_now`.

        Raises:
            ApiError: CORRUPT_MESSAGE, the bytes found are not a batch.
        """
        place = self._locate_recent(offset)
        if place is not None:
            return place
        try:
            for place in self.places_from(offset):
                if place.last_offset >= offset:
                    self._check_place(place)
                    return place
        except ApiError as error:
            if not self._is_damage_reported:
                self._is_damage_reported = True
                text = "%r: readers get CORRUPT_MESSAGE: %s"
                logger.error(text, self.directory, error)  # noqa: TRY400
            raise
        return None

    def _check_place(self, place: BatchPlace) -> None:
        """Reject a batch beyond the end of the segment: the CRC does not cover its offset.

        Raises:
            ApiError: CORRUPT_MESSAGE.
        """
        if place.last_offset >= self.end_offset:
            raise ApiError(
                CORRUPT_MESSAGE,
                f"{self.name('log')}: the batch at byte {place.position} has offsets"
                f" {place.base_offset} to {place.last_offset}, but the segment ends at"
                f" {self.end_offset}",
            )

    def can_locate_now(self, offset: int) -> bool:
        """Whether :meth:`locate` returns without waiting for the disk."""
        if self._locate_recent(offset) is not None:
            return self._file is not None
        if not self.is_loaded:
            return False
        position = self.index.floor(offset - self.base_offset)[1]
        end = min(position + SCAN_BYTES, self.size) - 1
        return is_page_cached(self.file, position) and is_page_cached(self.file, max(end, 0))

    def _locate_recent(self, offset: int) -> BatchPlace | None:
        recent = self._recent
        found = bisect_right(recent, offset, key=_base_offset) - 1
        if 0 <= found < len(recent):
            place = recent[found]
            # The loop may have shortened the list since the search: the place itself says whether
            # it is the right one.
            if place.base_offset <= offset <= place.last_offset:
                return place
        return None

    def places_from(self, offset: int) -> Iterator[BatchPlace]:
        """The batches from the one that contains ``offset``, or a little before it, to the end.

        Thread-safe; may wait for the disk.

        Raises:
            ApiError: CORRUPT_MESSAGE, the bytes found are not a batch.
        """
        entry, position = self.index.floor(offset - self.base_offset)
        if position and not self._is_indexed(entry, position):
            position = self.rebuild_indexes()[0].floor(offset - self.base_offset)[1]
        return self.places(position)

    def places(self, position: int) -> Iterator[BatchPlace]:
        """The batches from ``position``, where one starts, to the end. Reads headers only.

        Thread-safe; may wait for the disk.

        Raises:
            ApiError: CORRUPT_MESSAGE, the bytes found are not a batch.
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
                    CORRUPT_MESSAGE,
                    f"{self.name('log')}: no record batch starts at byte {position}",
                )
            position += at

    def read_header(self, position: int) -> BatchHeader:
        """Read the whole header of the batch at a position. Blocks."""
        return read_header(self.file.read_at(position, HEADER_SIZE))

    def __repr__(self) -> str:
        return f"Segment({self.base_offset}..{self.end_offset}, {self.size} bytes)"
