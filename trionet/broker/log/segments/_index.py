"""The two indexes of a segment, kept in RAM as arrays and on the disk as Kafka keeps them.

Both are sparse and derived: they can be made again from the log file at any time. In RAM they are
native arrays, which ``bisect`` searches without touching a file; on the disk big-endian entries:

* ``.index``: int32 offset relative to the segment's base, int32 position. The offset is the *last*
  one of the batch that starts at the position (Kafka: OffsetIndex).
* ``.timeindex``: int64 timestamp, int32 relative offset. No record up to the offset, the last of
  the batch which holds the timestamp, is newer than the timestamp (Kafka: TimeIndex).

Entries are added at the end, one column before the other: an entry exists when its second column
does. What an append that failed left in the first is dropped by the next, so that both columns grow
or neither, and a thread that searches while the loop appends sees whole entries only. Entries that
are taken back leave by a new pair of columns: a thread goes on with the pair that it took.
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

#: The greatest relative offset and position that an entry can say.
ENTRY_MAX: Final = 2**31 - 1

_SWAPPED = sys.byteorder == "little"
# Shared, never changed: most partitions of a large topic have no entries. Each is told by itself: a
# pair of them is another object in compiled code whenever it is looked at.
_NO_OFFSETS: Final = array("i")
_NO_TIMESTAMPS: Final = array("q")


class OffsetIndex:
    """Offset to position. Offsets are relative to the segment's base offset."""

    __slots__ = ("_columns",)

    def __init__(self) -> None:
        # Offsets and positions; there are as many entries as offsets.
        self._columns = _NO_OFFSETS, _NO_OFFSETS

    def __len__(self) -> int:
        return len(self._columns[0])

    def append(self, last_offset: int, position: int) -> None:
        """Note that the batch which ends with ``last_offset`` starts at ``position``.

        Raises:
            OverflowError: a number has more than 31 bits; nothing was noted.
        """
        offsets, positions = self._columns
        if offsets is _NO_OFFSETS:
            offsets, positions = self._columns = array("i"), array("i")
        del positions[len(offsets) :]
        positions.append(position)
        offsets.append(last_offset)

    def cut(self, count: int) -> None:
        """Take back all entries but the first ``count``."""
        offsets, positions = self._columns
        self._columns = offsets[:count], positions[:count]

    def count_before(self, position: int) -> int:
        """How many entries lie before a position."""
        offsets, positions = self._columns
        return bisect_left(positions, position, 0, len(offsets))

    def floor(self, offset: int) -> tuple[int, int]:
        """Where to start looking for ``offset``: no batch before this position holds it.

        Returns:
            The last offset of the batch at the position, and the position; (-1, 0) if there is no
            entry at or before ``offset``.
        """
        offsets, positions = self._columns
        entry = bisect_right(offsets, offset) - 1
        return (offsets[entry], positions[entry]) if entry >= 0 else (-1, 0)

    def last(self) -> tuple[int, int]:
        """The newest entry, (last offset, position); (-1, 0) without one."""
        offsets, positions = self._columns
        count = len(offsets)
        return (offsets[count - 1], positions[count - 1]) if count else (-1, 0)

    def encode(self, start: int = 0) -> bytes:
        """The file's bytes from entry number ``start`` on; none if there are fewer by now."""
        offsets, positions = self._columns
        count = max(start, len(offsets))
        entries = array("i", bytes(OFFSET_ENTRY_SIZE * (count - start)))
        entries[0::2] = offsets[start:count]
        entries[1::2] = positions[start:count]
        return _big_endian(entries)

    @classmethod
    def decode(cls, data: bytes, log_size: int) -> OffsetIndex | None:
        """Read a file back; None if it cannot be the index of a log file of ``log_size`` bytes."""
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
    """Timestamp to offset. Offsets are relative to the segment's base offset."""

    __slots__ = ("_columns",)

    def __init__(self) -> None:
        # Timestamps and offsets; there are as many entries as timestamps.
        self._columns = _NO_TIMESTAMPS, _NO_OFFSETS

    def __len__(self) -> int:
        return len(self._columns[0])

    def append_if_newer(self, timestamp: int, offset: int) -> None:
        """Note the newest timestamp up to ``offset``, unless it was noted before.

        Raises:
            OverflowError: a number has too many bits; nothing was noted.
        """
        timestamps, offsets = self._columns
        if timestamps is _NO_TIMESTAMPS:
            timestamps, offsets = self._columns = array("q"), array("i")
        if timestamp > (timestamps[-1] if timestamps else -1):
            del offsets[len(timestamps) :]
            offsets.append(offset)
            timestamps.append(timestamp)

    def cut(self, count: int) -> None:
        """Take back all entries but the first ``count``."""
        timestamps, offsets = self._columns
        self._columns = timestamps[:count], offsets[:count]

    def count_before(self, offset: int) -> int:
        """How many entries are of records before an offset."""
        timestamps, offsets = self._columns
        return bisect_left(offsets, offset, 0, len(timestamps))

    def floor(self, timestamp: int) -> int:
        """Where to start looking for records of ``timestamp`` or later: none is before this."""
        timestamps, offsets = self._columns
        entry = bisect_right(timestamps, timestamp) - 1
        return offsets[entry] if entry >= 0 else 0

    def last(self) -> tuple[int, int]:
        """The newest entry, (timestamp, relative offset); (-1, 0) without one."""
        timestamps, offsets = self._columns
        count = len(timestamps)
        return (timestamps[count - 1], offsets[count - 1]) if count else (-1, 0)

    def encode(self, start: int = 0) -> bytes:
        """The file's bytes from entry number ``start`` on; none if there are fewer by now."""
        timestamps, offsets = self._columns
        count = max(start, len(timestamps))
        # Twelve-byte entries: lay both columns out as 32-bit words, three to an entry.
        entries = array("I", bytes(TIME_ENTRY_SIZE * (count - start)))
        halves = array("I", _big_endian(timestamps[start:count]))
        entries[0::3] = halves[0::2]
        entries[1::3] = halves[1::2]
        entries[2::3] = array("I", _big_endian(offsets[start:count]))
        return entries.tobytes()

    @classmethod
    def decode(cls, data: bytes) -> TimeIndex | None:
        """Read a file back; None when it cannot be a time index."""
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
    """Whether the values rise, from at least ``first`` to below ``end``."""
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
