"""The aborted transactions of one segment (Kafka: TransactionIndex, AbortedTxn).

A transaction is entered in the index of the segment that contains its abort marker. Consumers with
``read_committed`` get the entries that concern what they fetch, and skip those records.

On disk, ``.txnindex`` has 34 big-endian bytes for each transaction: int16 version (0), int64
producer id, int64 first offset, int64 last offset (that of the marker), int64 last stable offset
after the marker. The last offsets rise strictly. The file exists only with entries.

In memory, the entries are four columns, which stay there as long as their segment: a fetch must
not wait for the disk to learn what it has to skip. The loop adds entries while a thread saves them.
The last column counts the entries, and is appended to last; the next entry drops the values that an
interrupted one left in the other columns.
"""

# Compiled by mypyc.

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from typing import Final, NamedTuple

ABORTED_ENTRY_SIZE: Final = 34

_VERSION: Final = 0
_ENTRY = struct.Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    """A transaction that an abort marker has ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    """The offset of the marker."""
    stable_offset: int
    """The first offset of the oldest transaction that was still open after the marker; without one,
    the offset after the marker. All that is below is decided, whatever the high watermark was."""


class AbortedTransactions:
    """The aborted transactions whose markers are in one segment, in the order of their markers."""

    __slots__ = ("_first_offsets", "_last_offsets", "_producer_ids", "_stable_offsets")

    def __init__(self) -> None:
        self._producer_ids = array("q")
        self._first_offsets = array("q")
        self._last_offsets = array("q")
        self._stable_offsets = array("q")

    def __len__(self) -> int:
        return len(self._stable_offsets)

    def add(self, transaction: AbortedTransaction) -> None:
        """Add a transaction, unless its marker or a later one was added before."""
        producer_id, first_offset, last_offset, stable_offset = transaction
        count = len(self._stable_offsets)
        if count and self._last_offsets[count - 1] >= last_offset:
            return
        for column in (self._producer_ids, self._first_offsets, self._last_offsets):
            del column[count:]
        self._producer_ids.append(producer_id)
        self._first_offsets.append(first_offset)
        self._last_offsets.append(last_offset)
        self._stable_offsets.append(stable_offset)

    def count_before(self, offset: int) -> int:
        """Return the number of transactions whose markers are below ``offset``."""
        return bisect_left(self._last_offsets, offset, 0, len(self))

    def entries_before(self, offset: int) -> list[AbortedTransaction]:
        """Return the transactions whose markers are below ``offset``."""
        columns = self._producer_ids, self._first_offsets, self._last_offsets, self._stable_offsets
        count = self.count_before(offset)
        return [
            AbortedTransaction(*(column[entry] for column in columns)) for entry in range(count)
        ]

    def find(self, from_offset: int, up_to: int, found: list[tuple[int, int]]) -> bool:
        """Find transactions with records from ``from_offset`` to below ``up_to``.

        Args:
            from_offset: the first offset that is read.
            up_to: the offset after the last one that is read.
            found: the list to which the producer id and the first offset of each are added.

        Returns:
            Whether that is all: no later marker ends a transaction with records in the range.
        """
        count = len(self)
        for entry in range(self.count_before(from_offset), count):
            first_offset = self._first_offsets[entry]
            if first_offset < up_to:
                found.append((self._producer_ids[entry], first_offset))
            if self._stable_offsets[entry] >= up_to:
                return True
        return False

    def encode(self, start: int = 0) -> bytes:
        """Encode the entries from index ``start`` onward; empty if there are none."""
        return b"".join(
            _ENTRY.pack(
                _VERSION,
                self._producer_ids[entry],
                self._first_offsets[entry],
                self._last_offsets[entry],
                self._stable_offsets[entry],
            )
            for entry in range(start, len(self))
        )

    @classmethod
    def decode(cls, data: bytes, base_offset: int) -> AbortedTransactions | None:
        """Decode an index file; return None if invalid for a segment with this base offset."""
        if len(data) % ABORTED_ENTRY_SIZE:
            return None
        index = cls()
        before = base_offset - 1
        for version, producer_id, first_offset, last_offset, stable in _ENTRY.iter_unpack(data):
            # Zeros, which a crash can leave, are no entry: a transaction has a record before its
            # marker.
            if version != _VERSION or last_offset <= max(before, first_offset):
                return None
            index.add(AbortedTransaction(producer_id, first_offset, last_offset, stable))
            before = last_offset
        return index
