"""The indexes of a segment: arrays in memory, Kafka's index files on disk.

The two indexes for lookups are sparse, and can be rebuilt from the log file at any time. In memory,
they are native arrays, which ``bisect`` can search without reading a file. On disk, they are
big-endian entries:

* ``.index``: int32 offset relative to the segment's base offset, int32 position. The offset is the
  *last* offset of the batch that starts at the position (Kafka: OffsetIndex).
* ``.timeindex``: int64 timestamp, int32 relative offset. The offset is the last offset of the batch
  with the timestamp; no record up to that offset has a greater timestamp (Kafka: TimeIndex).

The third index is that of the aborted transactions (see :mod:`._aborted_transactions`). It cannot
be rebuilt from the log file alone, but only together with the state of the producers at its start.

Threads search the indexes without a lock while the loop appends. An append writes the two columns
of an entry one after the other, and the entry exists once its second column is written. The next
append drops a value that a failed append left in the first column. Removing entries replaces the
pair of columns, so that a thread can continue to use the pair that it has read. Removing entries
that another thread may have saved increments a counter, so that the next save rewrites the files.
See :mod:`._segment` for the reasons.
"""

# Compiled by mypyc.

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from operator import itemgetter
from typing import Final, NamedTuple

from ...._util.files._log_file import LogFile
from ....errors import ApiError, WireFormatError
from ..files._directory import Directory
from ._aborted_transactions import (
    ABORTED_ENTRY_SIZE,
    AbortedTransaction,
    AbortedTransactions,
)
from ._cleaned_file import CleanedFile
from ._log_batches import BatchPlace, file_name, header_at

OFFSET_ENTRY_SIZE: Final = 8
TIME_ENTRY_SIZE: Final = 12

#: The greatest relative offset and position that an entry can hold.
ENTRY_MAX: Final = 2**31 - 1

# Shared and never changed: most partitions of a large topic have no entries. Separate constants,
# because compiled code creates a new tuple object whenever it reads a pair.
_NO_OFFSETS: Final = array("i")
_NO_TIMESTAMPS: Final = array("q")


class _Index:
    """Two columns that rise together; the first, which is appended last, counts the entries."""

    __slots__ = ("_columns",)

    def __init__(self, first: array[int], second: array[int]) -> None:
        self._columns = first, second

    def __len__(self) -> int:
        return len(self._columns[0])

    def cut(self, count: int) -> None:
        """Remove all entries except the first ``count``."""
        first, second = self._columns
        self._columns = first[:count], second[:count]

    def count_before(self, value: int) -> int:
        """Return the number of entries before a value of the second column."""
        first, second = self._columns
        return bisect_left(second, value, 0, len(first))

    def last(self) -> tuple[int, int]:
        """Return the last entry; (-1, 0) if there is none."""
        first, second = self._columns
        count = len(first)
        return (first[count - 1], second[count - 1]) if count else (-1, 0)


class OffsetIndex(_Index):
    """Maps offsets to positions. Offsets are relative to the segment's base offset."""

    __slots__ = ()

    def __init__(
        self, offsets: array[int] = _NO_OFFSETS, positions: array[int] = _NO_OFFSETS
    ) -> None:
        super().__init__(offsets, positions)

    def append(self, last_offset: int, position: int) -> None:
        """Append an entry for the batch that starts at ``position`` and ends with ``last_offset``.

        Raises:
            OverflowError: a value does not fit in 32 bits; nothing was appended.
        """
        offsets, positions = self._columns
        if offsets is _NO_OFFSETS:
            offsets, positions = self._columns = array("i"), array("i")
        del positions[len(offsets) :]
        positions.append(position)
        offsets.append(last_offset)

    def floor(self, offset: int) -> tuple[int, int]:
        """Return the last entry at or before ``offset``, from which to search for ``offset``.

        Returns:
            The last offset and the position of a batch; (-1, 0) if no entry is at or before
            ``offset``.
        """
        offsets, positions = self._columns
        entry = bisect_right(offsets, offset) - 1
        return (offsets[entry], positions[entry]) if entry >= 0 else (-1, 0)

    def offset_at_or_after(self, position: int) -> int:
        """Return the offset of the first entry at or after ``position``; -1 if there is none."""
        entry = self.count_before(position)
        offsets, _ = self._columns
        return offsets[entry] if entry < len(offsets) else -1

    def encode(self, start: int = 0) -> bytes:
        """Encode the entries from index ``start`` onward; empty if there are none."""
        offsets, positions = self._columns
        count = max(start, len(offsets))
        entries = array("i", bytes(OFFSET_ENTRY_SIZE * (count - start)))
        entries[0::2] = offsets[start:count]
        entries[1::2] = positions[start:count]
        return _swapped(entries).tobytes()

    @classmethod
    def decode(cls, data: bytes, log_size: int) -> OffsetIndex | None:
        """Decode an index file; return None if invalid for a log file of ``log_size`` bytes."""
        if len(data) % OFFSET_ENTRY_SIZE:
            return None
        entries = _swapped(array("i", data))
        offsets, positions = entries[0::2], entries[1::2]
        if not _rises(offsets, 0, ENTRY_MAX + 1) or not _rises(positions, 0, log_size):
            return None
        return cls(offsets, positions)


class TimeIndex(_Index):
    """Maps timestamps to offsets. Offsets are relative to the segment's base offset."""

    __slots__ = ()

    def __init__(
        self, timestamps: array[int] = _NO_TIMESTAMPS, offsets: array[int] = _NO_OFFSETS
    ) -> None:
        super().__init__(timestamps, offsets)

    def append_if_newer(self, timestamp: int, offset: int) -> None:
        """Append the greatest timestamp up to ``offset``, unless the last entry is at least as new.

        Raises:
            OverflowError: a value does not fit in its column; nothing was appended.
        """
        timestamps, offsets = self._columns
        if timestamps is _NO_TIMESTAMPS:
            timestamps, offsets = self._columns = array("q"), array("i")
        if timestamp > (timestamps[-1] if timestamps else -1):
            del offsets[len(timestamps) :]
            offsets.append(offset)
            timestamps.append(timestamp)

    def floor(self, timestamp: int) -> int:
        """Return the offset from which to search for records at or after ``timestamp``."""
        timestamps, offsets = self._columns
        entry = bisect_right(timestamps, timestamp) - 1
        return offsets[entry] if entry >= 0 else 0

    def encode(self, start: int = 0) -> bytes:
        """Encode the entries from index ``start`` onward; empty if there are none."""
        timestamps, offsets = self._columns
        count = max(start, len(timestamps))
        # Twelve-byte entries: both columns as 32-bit words, three per entry.
        entries = array("I", bytes(TIME_ENTRY_SIZE * (count - start)))
        halves = array("I", _swapped(timestamps[start:count]).tobytes())
        entries[0::3] = halves[0::2]
        entries[1::3] = halves[1::2]
        entries[2::3] = array("I", _swapped(offsets[start:count]).tobytes())
        return entries.tobytes()

    @classmethod
    def decode(cls, data: bytes) -> TimeIndex | None:
        """Decode an index file; return None if it is not a valid time index."""
        if len(data) % TIME_ENTRY_SIZE:
            return None
        words = array("I", data)
        halves = array("I", bytes(len(data) // 3 * 2))
        halves[0::2] = words[0::3]
        halves[1::2] = words[1::3]
        timestamps = _swapped(array("q", halves.tobytes()))
        offsets = _swapped(array("i", words[2::3].tobytes()))
        if not _rises(offsets, 0, ENTRY_MAX + 1) or not _rises(timestamps, 0, 2**63):
            return None
        return cls(timestamps, offsets)


def _rises(values: array[int], first: int, end: int) -> bool:
    """Return whether the values strictly increase, from ``first`` or more to below ``end``."""
    if not values:
        return True
    in_order = all(before < after for before, after in pairwise(values))
    return in_order and values[0] >= first and values[-1] < end


def _swapped(values: array[int]) -> array[int]:
    """Convert an array in place between the native order of bytes and that of the files."""
    if sys.byteorder == "little":
        values.byteswap()
    return values


# How many of the newest batch positions are cached: consumers that keep up need no file lookup.
RECENT_BATCHES_MAX: Final = 256

# Kafka's default (index.interval.bytes); good enough for a rebuilt index.
_INDEX_INTERVAL_BYTES = 4096

_base_offset: Final = itemgetter(0)


class RebuiltIndexes(NamedTuple):
    """Indexes built from the batch headers of a log file."""

    offsets: OffsetIndex
    times: TimeIndex
    newest: tuple[int, int]
    """The greatest timestamp, and the last offset of its batch."""
    end: int
    """The position after the last valid batch."""
    next_offset: int
    """The offset after the last valid batch."""
    damage: Exception | None
    """The damage after the last valid batch, if any."""


class SegmentIndexes:
    """The indexes of one segment, and its greatest timestamp.

    Args:
        directory: the partition's directory.
        base_offset: the base offset of the segment.

    Attributes:
        offsets: the offset index; None if it is not in memory.
        times: the time index; None if it is not in memory.
        first_timestamp: the greatest timestamp of the first batch; -1 if unknown.
        max_timestamp: the greatest timestamp; -1 without records.
        max_timestamp_offset: the last offset of the batch with the greatest timestamp.
        is_newest_known: whether ``max_timestamp`` and its offset are known.
        aborted: the aborted transactions whose markers are in the segment; None without any.
        is_aborted_known: whether ``aborted`` is right; if not, the file is damaged.
    """

    __slots__ = (
        "_aborted_saved",
        "_base_offset",
        "_cuts",
        "_cuts_saved",
        "_directory",
        "_max_timestamp_before",
        "_max_timestamp_offset_before",
        "_offsets_saved",
        "_recent",
        "_since_entry",
        "_times_saved",
        "aborted",
        "first_timestamp",
        "is_aborted_known",
        "is_newest_known",
        "max_timestamp",
        "max_timestamp_offset",
        "offsets",
        "times",
    )

    def __init__(self, directory: Directory, base_offset: int) -> None:
        self._directory = directory
        self._base_offset = base_offset
        self.offsets: OffsetIndex | None = None
        self.times: TimeIndex | None = None
        self.first_timestamp = -1
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self.is_newest_known = True
        self.aborted: AbortedTransactions | None = None
        self.is_aborted_known = True
        self._aborted_saved = 0
        self._recent: list[BatchPlace] = []
        self._since_entry = 0
        self._offsets_saved = 0
        self._times_saved = 0
        # How often entries were removed that the files may hold already.
        self._cuts = 0
        self._cuts_saved = 0
        # The greatest timestamp before the last append, to undo it.
        self._max_timestamp_before = -1
        self._max_timestamp_offset_before = base_offset

    # Growing

    def start(self) -> None:
        """Start with empty indexes, for a new file or one that is scanned from its start."""
        self.offsets, self.times = OffsetIndex(), TimeIndex()
        self._offsets_saved = self._times_saved = self._aborted_saved = 0
        self.aborted = None
        self.is_aborted_known = True
        self._since_entry = 0
        self._recent = []
        self.first_timestamp = -1
        self.set_newest(-1, self._base_offset)

    def resume(self, offsets: OffsetIndex, times: TimeIndex, log_size: int) -> None:
        """Continue with complete indexes that were read from their files."""
        timestamp, offset = times.last()
        self.set_newest(timestamp, self._base_offset + offset)
        self.offsets, self.times = offsets, times
        self._offsets_saved, self._times_saved = len(offsets), len(times)
        self._since_entry = log_size - offsets.last()[1]

    def start_cleaned(self, cleaned: CleanedFile) -> None:
        """Start with the complete indexes of a file that cleaning has written."""
        self.offsets = OffsetIndex(cleaned.offsets, cleaned.positions)
        self.times = TimeIndex(cleaned.timestamps, cleaned.timestamp_offsets)
        self._offsets_saved, self._times_saved = len(self.offsets), len(self.times)
        self.first_timestamp = cleaned.first_timestamp
        self.set_newest(cleaned.max_timestamp, cleaned.max_timestamp_offset)
        for transaction in cleaned.aborted:
            self.add_aborted(transaction)
        self._aborted_saved = len(cleaned.aborted)

    def note_append(self) -> None:
        """Save the state that an append will change, for :meth:`undo`."""
        self._max_timestamp_before = self.max_timestamp
        self._max_timestamp_offset_before = self.max_timestamp_offset

    def add(self, place: BatchPlace, max_timestamp: int, interval: int) -> None:
        """Add a batch that has been written to the file.

        Args:
            place: the position of the batch.
            max_timestamp: the greatest timestamp in the batch.
            interval: the value of ``index.interval.bytes``.
        """
        _, last_offset, position, size = place
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if position == 0:
            self.first_timestamp = max_timestamp
        if self._since_entry > interval:
            entry = last_offset - self._base_offset
            offsets = self.offsets
            assert offsets is not None
            # A batch that no entry can express is found by reading on from an earlier one.
            if entry <= ENTRY_MAX and position <= ENTRY_MAX:
                offsets.append(entry, position)
            self.finish()
            self._since_entry = 0
        self._since_entry += size
        recent = self._recent
        recent.append(place)
        if len(recent) > RECENT_BATCHES_MAX:
            del recent[: RECENT_BATCHES_MAX // 2]

    def finish(self) -> None:
        """Add the greatest timestamp to the time index, unless the last entry already has it."""
        entry = self.max_timestamp_offset - self._base_offset
        if self.max_timestamp >= 0 and entry <= ENTRY_MAX and self.times is not None:
            self.times.append_if_newer(self.max_timestamp, entry)

    def add_aborted(self, transaction: AbortedTransaction) -> None:
        """Add a transaction whose abort marker is in the file, unless it was added before."""
        if self.aborted is None:
            self.aborted = AbortedTransactions()
        self.aborted.add(transaction)

    def undo(self, log_size: int, end_offset: int) -> None:
        """Remove the batches that start at position ``log_size`` or later. Idempotent.

        Args:
            log_size: the size of the log file before these batches.
            end_offset: the log end offset before these batches.
        """
        self._recent = []
        self.max_timestamp = self._max_timestamp_before
        self.max_timestamp_offset = self._max_timestamp_offset_before
        offsets, times = self.offsets, self.times
        assert offsets is not None
        assert times is not None
        count = offsets.count_before(log_size)
        time_count = times.count_before(end_offset - self._base_offset)
        if count < len(offsets) or time_count < len(times):
            # The counter first: a thread that is saving entries may or may not have saved these, so
            # the next save has to write the files from the start.
            self._cuts += 1
            offsets.cut(count)
            times.cut(time_count)
        self._since_entry = log_size - offsets.last()[1]
        if not log_size:
            self.first_timestamp = -1

    # Looking up

    def find_recent(self, offset: int) -> BatchPlace | None:
        """Return the place of the batch that contains ``offset``, if it is one of the newest."""
        recent = self._recent
        found = bisect_right(recent, offset, key=_base_offset) - 1
        if 0 <= found < len(recent):
            place = recent[found]
            # The loop may have shortened the list since the search: the place itself says whether
            # it is the right one.
            if place.base_offset <= offset <= place.last_offset:
                return place
        return None

    def set_newest(self, timestamp: int, offset: int) -> None:
        """Set the greatest timestamp and the last offset of its batch."""
        # Offset before timestamp before flag: threads may be reading them.
        self.max_timestamp_offset = offset
        self.max_timestamp = timestamp
        self.is_newest_known = True

    # Files

    @property
    def has_unsaved(self) -> bool:
        """Whether the files lack entries or contain entries that were removed."""
        offsets, times, aborted = self.offsets, self.times, self.aborted
        return (
            (offsets is not None and len(offsets) > self._offsets_saved)
            or (times is not None and len(times) > self._times_saved)
            or (aborted is not None and len(aborted) > self._aborted_saved)
            or self._cuts != self._cuts_saved
        )

    def save(self) -> None:
        """Append the missing entries to the files, without syncing. Blocks; thread-safe."""
        cuts = self._cuts
        offsets, times, aborted = self.offsets, self.times, self.aborted
        directory = self._directory
        if cuts != self._cuts_saved:
            # The files may hold entries that were removed: write them from the start.
            self.remove_files()
            self._offsets_saved = self._times_saved = 0
            self._cuts_saved = cuts
        if offsets is not None:
            data = offsets.encode(self._offsets_saved)
            directory.write(self._name("index"), self._offsets_saved * OFFSET_ENTRY_SIZE, data)
            self._offsets_saved += len(data) // OFFSET_ENTRY_SIZE
        if times is not None:
            data = times.encode(self._times_saved)
            directory.write(self._name("timeindex"), self._times_saved * TIME_ENTRY_SIZE, data)
            self._times_saved += len(data) // TIME_ENTRY_SIZE
        if aborted is not None:
            saved = self._aborted_saved
            data = aborted.encode(saved)
            if data:
                directory.write(self._name("txnindex"), saved * ABORTED_ENTRY_SIZE, data)
                self._aborted_saved = saved + len(data) // ABORTED_ENTRY_SIZE

    def encode(self) -> dict[str, bytes]:
        """Encode all indexes, which are in memory: the contents of the files by their suffixes."""
        offsets, times, aborted = self.offsets, self.times, self.aborted
        assert offsets is not None
        assert times is not None
        return {
            "index": offsets.encode(),
            "timeindex": times.encode(),
            "txnindex": b"" if aborted is None else aborted.encode(),
        }

    def sizes(self) -> tuple[int, int]:
        """Return the sizes of the offset index and of the time index, in bytes. May block.

        An index that is not in memory, and whose file is missing, has 0 bytes until it is rebuilt.
        """
        offsets, times = self.offsets, self.times
        return (
            self._file_size("index") if offsets is None else len(offsets) * OFFSET_ENTRY_SIZE,
            self._file_size("timeindex") if times is None else len(times) * TIME_ENTRY_SIZE,
        )

    def _file_size(self, suffix: str) -> int:
        try:
            return self._directory.size(self._name(suffix))
        except FileNotFoundError:
            return 0

    def sync(self) -> None:
        """Sync the saved files. Blocks."""
        suffixes = ["index", "timeindex"]
        if self.aborted is not None:
            suffixes.append("txnindex")
        for suffix in suffixes:
            try:
                self._directory.sync_file(self._name(suffix))
            except FileNotFoundError:
                # Those of the active segment are created with their first entries.
                continue

    def drop(self) -> None:
        """Remove the index files and start with empty indexes."""
        self.remove_files()
        self._directory.remove(self._name("txnindex"))
        self.start()

    def release(self) -> None:
        """Drop the indexes of an old segment from memory, except for the aborted transactions."""
        self.offsets = self.times = None
        self._recent = []

    def read_offsets(self, log_size: int) -> OffsetIndex | None:
        """Read the offset index from its file; None if the file is missing or invalid."""
        try:
            return OffsetIndex.decode(self._directory.read(self._name("index")), log_size)
        except FileNotFoundError:
            return None

    def read_times(self) -> TimeIndex | None:
        """Read the time index from its file; None if the file is missing or invalid."""
        try:
            return TimeIndex.decode(self._directory.read(self._name("timeindex")))
        except FileNotFoundError:
            return None

    def load_aborted(self) -> None:
        """Read the aborted transactions from their file, which exists. Blocks."""
        data = self._directory.read(self._name("txnindex"))
        aborted = AbortedTransactions.decode(data, self._base_offset)
        if aborted is None:
            self.is_aborted_known = False
        elif len(aborted):
            self.aborted, self._aborted_saved = aborted, len(aborted)

    def replace_aborted(self, transactions: list[AbortedTransaction]) -> None:
        """Replace the aborted transactions, in memory and on disk. Blocks."""
        self.aborted, self._aborted_saved = None, 0
        self.is_aborted_known = True
        if not transactions:
            self._directory.remove(self._name("txnindex"))
            return
        aborted = self.aborted = AbortedTransactions()
        for transaction in transactions:
            aborted.add(transaction)
        self._directory.replace(self._name("txnindex"), aborted.encode())
        self._aborted_saved = len(aborted)

    def keep(self, offsets: OffsetIndex) -> None:
        """Keep in memory an old segment's offset index that was read from its file."""
        self._offsets_saved = len(offsets)
        self.offsets = offsets

    def read_newest(self) -> tuple[int, int] | None:
        """Read the greatest timestamp, and the last offset of its batch, from the time index.

        Returns:
            The last entry of the file; None if the file is missing or invalid.
        """
        # Two entries, because one proves nothing: zeros, which a crash can leave after the entries,
        # are a valid entry, but not a rising one.
        name = self._name("timeindex")
        times = None
        try:
            size = self._directory.size(name)
            if not size % TIME_ENTRY_SIZE:
                start = max(0, size - 2 * TIME_ENTRY_SIZE)
                times = TimeIndex.decode(self._directory.read(name, start))
        except FileNotFoundError:
            pass
        if times is None:
            return None
        timestamp, offset = times.last()
        return timestamp, self._base_offset + offset

    def replace(self, rebuilt: RebuiltIndexes) -> TimeIndex:
        """Replace the indexes, in memory and on disk, with rebuilt ones; return the time index.

        Blocks; thread-safe.
        """
        offsets, times = rebuilt.offsets, rebuilt.times
        growing = self.times
        if growing is not None:
            # The loop may be appending to it, and a flush saving it: the next flush writes the
            # files.
            self._cuts += 1
            times = growing
        else:
            self._directory.replace(self._name("index"), offsets.encode())
            self._directory.replace(self._name("timeindex"), times.encode())
            self.set_newest(*rebuilt.newest)
            self._offsets_saved = len(offsets)
        self.offsets = offsets
        return times

    def remove_files(self) -> None:
        """Remove the files of the two indexes for lookups, which can be rebuilt."""
        for suffix in ("index", "timeindex"):
            self._directory.remove(self._name(suffix))

    def _name(self, suffix: str) -> str:
        return file_name(self._base_offset, suffix)


def index_batches(
    file: LogFile, batches: Iterator[BatchPlace], base_offset: int, end_offset: int
) -> RebuiltIndexes:
    """Build the indexes of a segment from its batch headers, up to the first invalid batch. Blocks.

    Args:
        file: the log file.
        batches: the batches in the log file.
        base_offset: the base offset of the segment.
        end_offset: the end offset of the segment; a batch that extends beyond it is invalid.
    """
    offsets, times = OffsetIndex(), TimeIndex()
    next_offset = base_offset
    newest = (-1, base_offset)
    end = since_entry = 0
    damage: Exception | None = None
    try:
        for place in batches:
            if not next_offset <= place.base_offset <= place.last_offset < end_offset:
                found = f"{place.base_offset} to {place.last_offset}"
                raise WireFormatError(f"unexpected offsets {found} at byte {place.position}")
            header = header_at(file, place.position)
            if header.max_timestamp > newest[0]:
                newest = header.max_timestamp, place.last_offset
            entry = place.last_offset - base_offset
            if since_entry > _INDEX_INTERVAL_BYTES and max(entry, place.position) <= ENTRY_MAX:
                offsets.append(entry, place.position)
                times.append_if_newer(newest[0], newest[1] - base_offset)
                since_entry = 0
            since_entry += place.size
            next_offset, end = place.last_offset + 1, place.position + place.size
    except (ApiError, WireFormatError) as error:
        damage = error
    if newest[1] - base_offset <= ENTRY_MAX:
        times.append_if_newer(newest[0], newest[1] - base_offset)
    return RebuiltIndexes(offsets, times, newest, end, next_offset, damage)
