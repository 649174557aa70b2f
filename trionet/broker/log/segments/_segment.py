"""One segment: a log file of at most ``segment.bytes``, with its indexes (Kafka: LogSegment).

The active segment, the last of a log, grows; the others never change again. An old segment keeps
its file open and its index in RAM only while it is being read; the log decides how many.

Threads may read (``locate``, ``file``, ``index``) while the loop appends. What keeps that safe
without a lock is the order of the writes: entries before their counts, ``end_offset`` before
``size``; a reader takes ``size`` first and then sees an ``end_offset`` at least as new.
"""

# Compiled by mypyc.

from __future__ import annotations

import errno
from typing import Final

from ..files._directory import GATHER_BUFFERS_MAX, Buffer, Directory
from ._index import ENTRY_MAX, OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE, OffsetIndex, TimeIndex
from ._log_config import LogConfig
from ._stored_segment import BatchPlace, StoredSegment

# The newest batches whose place is remembered: consumers that keep up need no look-up in a file.
RECENT_BATCHES_MAX: Final = 256


class Segment(StoredSegment):
    """One log file and its indexes; see the module for what threads may do."""

    __slots__ = (
        "_end_before",
        "_index_cuts_saved",
        "_is_torn",
        "_max_timestamp_before",
        "_max_timestamp_offset_before",
        "_since_index_entry",
        "_size_before",
        "_time_index_saved",
        "first_timestamp",
    )

    def __init__(self, directory: Directory, base_offset: int, created_ms: int) -> None:
        super().__init__(directory, base_offset, created_ms)
        self.first_timestamp = -1
        self._time_index_saved = 0
        self._index_cuts_saved = 0
        self._since_index_entry = 0
        self._is_torn = False
        # What the last append changes and nothing else tells: the size and the end offset before
        # it (-1: there was none), and the newest timestamp with its offset.
        self._size_before = 0
        self._end_before = -1
        self._max_timestamp_before = -1
        self._max_timestamp_offset_before = base_offset

    @classmethod
    def create(cls, directory: Directory, base_offset: int, now_ms: int) -> Segment:
        """A new, empty segment; its file exists when this returns (its name is not synced)."""
        segment = cls(directory, base_offset, now_ms)
        segment._file = directory.create(segment.name("log"))
        segment.start_indexes()
        return segment

    @classmethod
    def old(cls, directory: Directory, base_offset: int, end_offset: int, now_ms: int) -> Segment:
        """A segment of an earlier run. What its index files say is read when it is first needed."""
        segment = cls(directory, base_offset, now_ms)
        segment.end_offset = end_offset
        segment.size = directory.size(segment.name("log"))
        segment._newest_is_known = False
        segment._modified_ms = -1
        return segment

    # Growing

    def start_indexes(self) -> None:
        """Begin with empty indexes, that of a file scanned from its start."""
        self._index, self._time_index = OffsetIndex(), TimeIndex()
        self._index_saved = self._time_index_saved = 0
        self._since_index_entry = 0
        self._recent = []
        self.first_timestamp = -1
        self.set_newest(-1, self.base_offset)

    def continue_indexes(self, index: OffsetIndex, time_index: TimeIndex) -> None:
        """Go on with the indexes of an earlier run, whose files hold all their entries."""
        timestamp, offset = time_index.last()
        self.set_newest(timestamp, self.base_offset + offset)
        self._index, self._time_index = index, time_index
        self._index_saved, self._time_index_saved = len(index), len(time_index)
        self._since_index_entry = self.size - index.last()[1]

    def write(self, buffers: list[Buffer], size: int) -> None:
        """Add bytes to the file; :meth:`note` and :meth:`grow` make them part of the segment.

        Raises:
            OSError: not all of them could be written; see :meth:`go_back`.
        """
        self.mend()
        position = self.size
        self._size_before = position
        self._max_timestamp_before = self._max_timestamp
        self._max_timestamp_offset_before = self._max_timestamp_offset
        self._end_before = self.end_offset  # the last: it says that the others are there
        if len(buffers) <= GATHER_BUFFERS_MAX:
            written = self.file.write_at(position, buffers)
        else:
            written = 0
            for first in range(0, len(buffers), GATHER_BUFFERS_MAX):
                piece = buffers[first : first + GATHER_BUFFERS_MAX]
                written += self.file.write_at(position + written, piece)
        if written != size:
            raise OSError(errno.ENOSPC, f"{written} of {size} bytes could be written")

    def go_back(self, end_offset: int) -> None:
        """Take back an append, whatever of it has happened; repeating it changes nothing.

        What it has written is cut off, now or, where that fails, before the next write.

        Args:
            end_offset: where the append began.
        """
        if self._end_before != end_offset:
            return  # it had not begun to write, and that was said of another
        self._is_torn = True
        # In this order: readers take the size first.
        size = self.size = self._size_before
        self.end_offset = end_offset
        self._recent = []
        self._max_timestamp = self._max_timestamp_before
        self._max_timestamp_offset = self._max_timestamp_offset_before
        self._take_back_entries()
        if not size:
            self.first_timestamp = -1
        try:
            self.mend()
        except OSError:
            # What failed first says more; the next write tries again.
            pass

    def _take_back_entries(self) -> None:
        index, time_index = self._index, self._time_index
        assert index is not None
        assert time_index is not None
        count, time_count = (
            index.count_before(self.size),
            time_index.count_before(self._relative_end),
        )
        if count < len(index) or time_count < len(time_index):
            # First: a thread that saves entries meanwhile has saved some of these, or has not.
            self._index_cuts += 1
            index.cut(count)
            time_index.cut(time_count)
        self._since_index_entry = self.size - index.last()[1]

    @property
    def _relative_end(self) -> int:
        return self.end_offset - self.base_offset

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
            entry = last_offset - self.base_offset
            # What no entry can say is found without one.
            if entry <= ENTRY_MAX and position <= ENTRY_MAX:
                self.index.append(entry, position)
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
        entry = self._max_timestamp_offset - self.base_offset
        if self._max_timestamp >= 0 and entry <= ENTRY_MAX and self._time_index is not None:
            self._time_index.append_if_newer(self._max_timestamp, entry)

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
            or last_offset - self.base_offset > ENTRY_MAX
            or len(self.index) >= index_bytes // OFFSET_ENTRY_SIZE
            or len(self.time_index) >= index_bytes // TIME_ENTRY_SIZE - 1
        )

    def finish(self) -> None:
        """The last time index entry, made when the segment ends or the log is closed."""
        self._note_time()

    # Saving

    @property
    def has_unsaved_index(self) -> bool:
        """Index entries exist that are in RAM only, or in the files only."""
        index, time_index = self._index, self._time_index
        return (
            (index is not None and len(index) > self._index_saved)
            or (time_index is not None and len(time_index) > self._time_index_saved)
            or self._index_cuts != self._index_cuts_saved
        )

    def save_indexes(self) -> None:
        """Write what the index files lack (creating them); not synced. Blocks, thread-safe."""
        cuts = self._index_cuts
        index, time_index = self._index, self._time_index
        if cuts != self._index_cuts_saved:
            # The files may hold entries that were taken back: write them from the start.
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
        """Close the file and forget the indexes of an old segment; they are loaded when needed."""
        if self.directory.is_durable and not self.has_unsaved_index:
            self._file = self._index = self._time_index = None
            self._recent = []

    def __repr__(self) -> str:
        return f"Segment({self.base_offset}..{self.end_offset}, {self.size} bytes)"
