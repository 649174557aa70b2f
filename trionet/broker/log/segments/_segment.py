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
from typing import Final

from ..files._directory import GATHER_BUFFERS_MAX, Buffer, Directory
from ._index import ENTRY_MAX, OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE, OffsetIndex, TimeIndex
from ._log_config import LogConfig
from ._stored_segment import BatchPlace, StoredSegment

# How many of the newest batch positions are cached: consumers that keep up need no file lookup.
RECENT_BATCHES_MAX: Final = 256


class Segment(StoredSegment):
    """One log file and its indexes.

    Belongs to the loop, which appends; threads may look up and read meanwhile.
    """

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
        """Write bytes at the end of the file; :meth:`note` and :meth:`grow` then publish them.

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

    def note(self, place: BatchPlace, max_timestamp: int, index_interval: int) -> None:
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

    def __repr__(self) -> str:
        return f"Segment({self.base_offset}..{self.end_offset}, {self.size} bytes)"
