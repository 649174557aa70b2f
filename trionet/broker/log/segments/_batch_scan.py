"""Scans a log file and verifies every batch, for recovery."""

from __future__ import annotations

from collections.abc import Iterator

from ....errors import WireFormatError
from ....protocol.records._batch import CRC_START, HEADER_SIZE, BatchHeader, check_crc, read_header
from ....protocol.records._crc32c import crc32c
from ..files._directory import LogFile
from ._index import ENTRY_MAX

# The memory that a scan uses, whatever sizes the file claims.
CHUNK_BYTES = 1048576

_OFFSET_MAX = 2**63 - 2  # the offset after it has to be valid too


def last_offset_max(base_offset: int) -> int:
    """Return the greatest offset that a segment with this base offset can contain."""
    return min(base_offset + ENTRY_MAX, _OFFSET_MAX)


class BatchScan:
    """The valid batches of a file, up to the first invalid one.

    It can be iterated only once. Afterwards, :attr:`position` is the end of the valid part, and
    :attr:`damage` describes the damage there; None if the whole file is valid.

    Args:
        file: the log file.
        size: the size of the file in bytes.
        base_offset: the base offset of the segment.
        gaps_allowed: whether compaction may have removed offsets. If false, a gap counts as damage,
            because the CRC does not cover the base offset of a batch.
    """

    def __init__(self, file: LogFile, size: int, base_offset: int, *, gaps_allowed: bool) -> None:
        self.position = 0
        self.damage: str | None = None
        self.next_offset = base_offset
        self._file = file
        self._size = size
        self._last_offset_max = last_offset_max(base_offset)
        self._gaps_allowed = gaps_allowed

    def __iter__(self) -> Iterator[BatchHeader]:
        """Yield the header of each valid batch, which starts at :attr:`position`. Blocks."""
        while self.position < self._size:
            start = self.position
            chunk = memoryview(self._file.read_at(start, min(CHUNK_BYTES, self._size - start)))
            at = 0
            while len(chunk) - at >= HEADER_SIZE:
                try:
                    header = read_header(chunk, at)
                except WireFormatError as error:
                    self.damage = str(error)
                    return
                self.damage = self._header_damage(header)
                if self.damage is None and at + header.size > len(chunk):
                    if at:
                        break  # the next chunk starts with it
                    if not self._long_batch_is_whole(header):
                        self.damage = "the CRC does not match"
                elif self.damage is None and not check_crc(chunk, at, header):
                    self.damage = "the CRC does not match"
                if self.damage is not None:
                    return
                yield header
                self.next_offset = header.last_offset + 1
                at += header.size
                self.position = start + at
            if self.position == start:
                self.damage = "the file ends inside a batch header"
                return

    def _header_damage(self, header: BatchHeader) -> str | None:
        if header.magic != 2:
            return f"magic is {header.magic}, not 2"
        if header.size > self._size - self.position:
            return f"the file ends inside a batch of {header.size} bytes"
        expected = self.next_offset
        if header.base_offset < expected or (
            header.base_offset > expected and not self._gaps_allowed
        ):
            return f"offset {header.base_offset}, expected {expected}"
        if header.last_offset_delta < 0 or header.last_offset > self._last_offset_max:
            return f"a last offset delta of {header.last_offset_delta} is out of range"
        return None

    def _long_batch_is_whole(self, header: BatchHeader) -> bool:
        """Verify, chunk by chunk, the CRC of a batch that exceeds a chunk."""
        value = 0
        at, end = self.position + CRC_START, self.position + header.size
        while at < end:
            chunk = self._file.read_at(at, min(CHUNK_BYTES, end - at))
            if not chunk:
                return False
            value = crc32c(chunk, value)
            at += len(chunk)
        return value == header.crc
