"""The two indexes of a segment: arrays in memory, Kafka's index files on disk.

Both indexes are sparse, and can be rebuilt from the log file at any time. In memory, they are
native arrays, which ``bisect`` can search without reading a file. On disk, they are big-endian
entries:

* ``.index``: int32 offset relative to the segment's base offset, int32 position. The offset is the
  *last* offset of the batch that starts at the position (Kafka: OffsetIndex).
* ``.timeindex``: int64 timestamp, int32 relative offset. The offset is the last offset of the batch
  with the timestamp; no record up to that offset has a greater timestamp (Kafka: TimeIndex).

Threads search the indexes without a lock while the loop appends. An append writes the two columns
of an entry one after the other, and the entry exists once its second column is written. The next
append drops a value that a failed append left in the first column. Removing entries replaces the
pair of columns, so that a thread can continue to use the pair that it has read.
"""

# Compiled by mypyc.

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import Final

OFFSET_ENTRY_SIZE: Final = 8
TIME_ENTRY_SIZE: Final = 12

#: The greatest relative offset and position that an entry can hold.
ENTRY_MAX: Final = 2**31 - 1

_SWAPPED = sys.byteorder == "little"
# Shared and never changed: most partitions of a large topic have no entries. Separate constants,
# because compiled code creates a new tuple object whenever it reads a pair.
_NO_OFFSETS: Final = array("i")
_NO_TIMESTAMPS: Final = array("q")


class OffsetIndex:
    """Maps offsets to positions. Offsets are relative to the segment's base offset."""

    __slots__ = ("_columns",)

    def __init__(self) -> None:
        # Positions and offsets; there are as many entries as offsets, which are appended last.
        self._columns = _NO_OFFSETS, _NO_OFFSETS

    def __len__(self) -> int:
        return len(self._columns[0])

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

    def cut(self, count: int) -> None:
        """Remove all entries except the first ``count``."""
        offsets, positions = self._columns
        self._columns = offsets[:count], positions[:count]

    def count_before(self, position: int) -> int:
        """Return the number of entries before a position."""
        offsets, positions = self._columns
        return bisect_left(positions, position, 0, len(offsets))

    def floor(self, offset: int) -> tuple[int, int]:
        """Return the last entry at or before ``offset``, from which to search for ``offset``.

        Returns:
            The last offset and the position of a batch; (-1, 0) if no entry is at or before
            ``offset``.
        """
        offsets, positions = self._columns
        entry = bisect_right(offsets, offset) - 1
        return (offsets[entry], positions[entry]) if entry >= 0 else (-1, 0)

    def last(self) -> tuple[int, int]:
        """Return the last entry as (last offset, position); (-1, 0) if there is none."""
        offsets, positions = self._columns
        count = len(offsets)
        return (offsets[count - 1], positions[count - 1]) if count else (-1, 0)

    def encode(self, start: int = 0) -> bytes:
        """Encode the entries from index ``start`` onward; empty if there are none."""
        offsets, positions = self._columns
        count = max(start, len(offsets))
        entries = array("i", bytes(OFFSET_ENTRY_SIZE * (count - start)))
        entries[0::2] = offsets[start:count]
        entries[1::2] = positions[start:count]
        return _big_endian(entries)

    @classmethod
    def decode(cls, data: bytes, log_size: int) -> OffsetIndex | None:
        """Decode an index file; return None if invalid for a log file of ``log_size`` bytes."""
        if len(data) % OFFSET_ENTRY_SIZE:
            return None
        entries = _native(array("i", data))
        offsets, positions = entries[0::2], entries[1::2]
        if not _rises(offsets, 0, ENTRY_MAX + 1) or not _rises(positions, 0, log_size):
            return None
        index = cls()
        index._columns = offsets, positions
        return index


class TimeIndex:
    """Maps timestamps to offsets. Offsets are relative to the segment's base offset."""

    __slots__ = ("_columns",)

    def __init__(self) -> None:
        # Timestamps and offsets; there are as many entries as timestamps, which are appended last.
        self._columns = _NO_TIMESTAMPS, _NO_OFFSETS

    def __len__(self) -> int:
        return len(self._columns[0])

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

    def cut(self, count: int) -> None:
        """Remove all entries except the first ``count``."""
        timestamps, offsets = self._columns
        self._columns = timestamps[:count], offsets[:count]

    def count_before(self, offset: int) -> int:
        """Return the number of entries before an offset."""
        timestamps, offsets = self._columns
        return bisect_left(offsets, offset, 0, len(timestamps))

    def floor(self, timestamp: int) -> int:
        """Return the offset from which to search for records at or after ``timestamp``."""
        timestamps, offsets = self._columns
        entry = bisect_right(timestamps, timestamp) - 1
        return offsets[entry] if entry >= 0 else 0

    def last(self) -> tuple[int, int]:
        """Return the last entry as (timestamp, relative offset); (-1, 0) if there is none."""
        timestamps, offsets = self._columns
        count = len(timestamps)
        return (timestamps[count - 1], offsets[count - 1]) if count else (-1, 0)

    def encode(self, start: int = 0) -> bytes:
        """Encode the entries from index ``start`` onward; empty if there are none."""
        timestamps, offsets = self._columns
        count = max(start, len(timestamps))
        # Twelve-byte entries: both columns as 32-bit words, three per entry.
        entries = array("I", bytes(TIME_ENTRY_SIZE * (count - start)))
        halves = array("I", _big_endian(timestamps[start:count]))
        entries[0::3] = halves[0::2]
        entries[1::3] = halves[1::2]
        entries[2::3] = array("I", _big_endian(offsets[start:count]))
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
        timestamps = _native(array("q", halves.tobytes()))
        offsets = _native(array("i", words[2::3].tobytes()))
        if not _rises(offsets, 0, ENTRY_MAX + 1) or not _rises(timestamps, 0, 2**63):
            return None
        index = cls()
        index._columns = timestamps, offsets
        return index


def _rises(values: array[int], first: int, end: int) -> bool:
    """Return whether the values strictly increase, from ``first`` or more to below ``end``."""
    if not values:
        return True
    in_order = all(before < after for before, after in pairwise(values))
    return in_order and values[0] >= first and values[-1] < end


def _big_endian(values: array[int]) -> bytes:
    if _SWAPPED:
        values.byteswap()
    return values.tobytes()


def _native(values: array[int]) -> array[int]:
    if _SWAPPED:
        values.byteswap()
    return values
