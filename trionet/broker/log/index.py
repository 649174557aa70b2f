"""The two indexes of a segment, kept in RAM as arrays and on the disk as Kafka keeps them.

Both are sparse and derived: they can be made again from the log file at any time. In RAM they are
native arrays, which ``bisect`` searches without touching a file; on the disk big-endian entries:

* ``.index``: int32 offset relative to the segment's base, int32 position. The offset is the *last*
  one of the batch that starts at the position (Kafka: OffsetIndex).
* ``.timeindex``: int64 timestamp, int32 relative offset. No record up to the offset, the last of
  the batch which holds the timestamp, is newer than the timestamp (Kafka: TimeIndex).

Entries are only ever added at the end, positions before offsets: a thread that searches while the
loop appends sees whole entries only.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from itertools import pairwise

OFFSET_ENTRY_SIZE = 8
TIME_ENTRY_SIZE = 12

_SWAPPED = sys.byteorder == "little"


class OffsetIndex:
    """Offset to position. Offsets are relative to the segment's base offset."""

    __slots__ = ("_offsets", "_positions")

    def __init__(self) -> None:
        self._offsets = array("i")
        self._positions = array("i")

    def __len__(self) -> int:
        return len(self._offsets)

    def append(self, last_offset: int, position: int) -> None:
        """Note that the batch which ends with ``last_offset`` starts at ``position``."""
        self._positions.append(position)
        self._offsets.append(last_offset)

    def floor(self, offset: int) -> int:
        """Where to start looking for ``offset``: no batch before this position holds it."""
        entry = bisect_right(self._offsets, offset) - 1
        return self._positions[entry] if entry >= 0 else 0

    def last_position(self) -> int:
        """The position of the newest entry, 0 without one."""
        return self._positions[-1] if self._positions else 0

    def encode(self, start: int = 0) -> bytes:
        """The file's bytes from entry number ``start`` on."""
        count = len(self._offsets)
        entries = array("i", bytes(OFFSET_ENTRY_SIZE * (count - start)))
        entries[0::2] = self._offsets[start:count]
        entries[1::2] = self._positions[start:count]
        return _big_endian(entries)

    @classmethod
    def decode(cls, data: bytes, log_size: int) -> OffsetIndex | None:
        """Read a file back; None if it cannot be the index of a log file of ``log_size`` bytes."""
        if len(data) % OFFSET_ENTRY_SIZE:
            return None
        entries = _native(array("i", data))
        index = cls()
        index._offsets = entries[0::2]
        index._positions = entries[1::2]
        if not _rises(index._offsets, 0, 2**31) or not _rises(index._positions, 0, log_size):
            return None
        return index


class TimeIndex:
    """Timestamp to offset. Offsets are relative to the segment's base offset."""

    __slots__ = ("_offsets", "_timestamps")

    def __init__(self) -> None:
        self._timestamps = array("q")
        self._offsets = array("i")

    def __len__(self) -> int:
        return len(self._timestamps)

    def append_if_newer(self, timestamp: int, offset: int) -> None:
        """Note the newest timestamp up to ``offset``, unless it was noted before."""
        if timestamp > (self._timestamps[-1] if self._timestamps else -1):
            self._offsets.append(offset)
            self._timestamps.append(timestamp)

    def floor(self, timestamp: int) -> int:
        """Where to start looking for records of ``timestamp`` or later: none is before this."""
        entry = bisect_right(self._timestamps, timestamp) - 1
        return self._offsets[entry] if entry >= 0 else 0

    def last(self) -> tuple[int, int]:
        """The newest entry, (timestamp, relative offset); (-1, 0) without one."""
        return (self._timestamps[-1], self._offsets[-1]) if self._timestamps else (-1, 0)

    def encode(self, start: int = 0) -> bytes:
        """The file's bytes from entry number ``start`` on."""
        count = len(self._timestamps)
        # Twelve-byte entries: lay both columns out as 32-bit words, three to an entry.
        entries = array("I", bytes(TIME_ENTRY_SIZE * (count - start)))
        halves = array("I", _big_endian(self._timestamps[start:count]))
        entries[0::3] = halves[0::2]
        entries[1::3] = halves[1::2]
        entries[2::3] = array("I", _big_endian(self._offsets[start:count]))
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
        index = cls()
        index._timestamps = _native(array("q", halves.tobytes()))
        index._offsets = _native(array("i", words[2::3].tobytes()))
        if not _rises(index._offsets, 0, 2**31) or not _rises(index._timestamps, 0, 2**63):
            return None
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
