"""Writes a cleaned segment, and builds its indexes on the way."""

# Compiled by mypyc.

from __future__ import annotations

import errno
from array import array
from collections.abc import Callable
from typing import Final

from ...._util.files._log_file import GATHER_BUFFERS_MAX, Buffer, LogFile
from ....protocol.records._batch import BatchHeader, empty_batch
from ..segments._aborted_transactions import AbortedTransaction
from ..segments._cleaned_file import CleanedFile
from ..segments._segment_indexes import ENTRY_MAX

#: The batches are written in parts of about this size, in bytes.
_WRITE_BYTES: Final = 1024 * 1024
#: The number of offsets that one batch can take.
_BATCH_OFFSETS_MAX: Final = 2**31


class CleanedFileWriter:
    """Appends batches to the log file of a cleaned segment.

    Args:
        file: an empty file.
        base_offset: the base offset of the segment.
        index_interval_bytes: the value of ``index.interval.bytes``.
        on_io: called with the number of bytes before they are written.
    """

    __slots__ = (
        "_base_offset",
        "_buffered",
        "_buffers",
        "_file",
        "_first_timestamp",
        "_interval",
        "_max_timestamp",
        "_max_timestamp_offset",
        "_next_offset",
        "_offsets",
        "_on_io",
        "_positions",
        "_run_end",
        "_run_source",
        "_run_start",
        "_since_entry",
        "_size",
        "_timestamp_offsets",
        "_timestamps",
    )

    def __init__(
        self,
        file: LogFile,
        base_offset: int,
        index_interval_bytes: int,
        on_io: Callable[[int], None],
    ) -> None:
        self._file = file
        self._base_offset = base_offset
        self._interval = index_interval_bytes
        self._on_io = on_io
        self._next_offset = base_offset
        self._size = 0
        self._buffers: list[Buffer] = []
        self._buffered = 0
        # Neighbouring unchanged batches, which become one buffer.
        self._run_source = b""
        self._run_start = 0
        self._run_end = 0
        self._offsets = array("i")
        self._positions = array("i")
        self._timestamps = array("q")
        self._timestamp_offsets = array("i")
        self._since_entry = 0
        self._first_timestamp = -1
        self._max_timestamp = -1
        self._max_timestamp_offset = base_offset

    def copy(self, header: BatchHeader, source: bytes, pos: int) -> None:
        """Append a batch as it is at a position of a buffer.

        Raises:
            OSError: the batches could not be written.
        """
        size = header.size
        if source is not self._run_source or pos != self._run_end:
            self._end_run()
            self._run_source, self._run_start = source, pos
        self._run_end = pos + size
        self._add(header, size)

    def append(self, header: BatchHeader, chunks: list[bytes]) -> None:
        """Append a batch.

        Raises:
            OSError: the batches could not be written.
        """
        self._end_run()
        self._buffers += chunks
        self._add(header, header.size)

    def finish(
        self, end_offset: int, leader_epoch: int, aborted: list[AbortedTransaction]
    ) -> CleanedFile:
        """Take all offsets up to ``end_offset``, and sync the file. Blocks.

        If the last batch ends before, an empty one follows it. So the range of a cleaned segment
        is that of the segments it replaces, and a gap between two segments still means that
        records are missing.

        Args:
            end_offset: the base offset of the segment that follows.
            leader_epoch: the leader epoch of the empty batch.
            aborted: the aborted transactions whose markers are in the segment.

        Raises:
            OSError: the file could not be written.
        """
        while (count := end_offset - self._next_offset) > 0:
            filler = empty_batch(self._next_offset, min(count, _BATCH_OFFSETS_MAX), leader_epoch)
            self.append(filler, [filler.pack()])
        self.flush()
        self._file.sync()
        self._add_timestamp()
        return CleanedFile(
            self._size,
            self._offsets,
            self._positions,
            self._timestamps,
            self._timestamp_offsets,
            self._first_timestamp,
            self._max_timestamp,
            self._max_timestamp_offset,
            aborted,
        )

    def flush(self) -> None:
        """Write what was appended.

        Raises:
            OSError: it could not be written.
        """
        self._end_run()
        self._on_io(self._buffered)
        buffers, position = self._buffers, self._size - self._buffered
        for first in range(0, len(buffers), GATHER_BUFFERS_MAX):
            piece = buffers[first : first + GATHER_BUFFERS_MAX]
            size = sum([len(each) for each in piece])
            written = self._file.write_at(position, piece)
            if written != size:
                raise OSError(errno.ENOSPC, f"only {written} of {size} bytes could be written")
            position += size
        self._buffers = []
        self._buffered = 0

    def _end_run(self) -> None:
        if self._run_end > self._run_start:
            source = self._run_source
            whole = self._run_end - self._run_start == len(source)
            run: Buffer = source if whole else memoryview(source)[self._run_start : self._run_end]
            self._buffers.append(run)
        self._run_source, self._run_start, self._run_end = b"", 0, 0

    def _add(self, header: BatchHeader, size: int) -> None:
        """Index a batch that was appended, as :meth:`.SegmentIndexes.add` does."""
        position = self._size
        last_offset = header.last_offset
        max_timestamp = header.max_timestamp
        if not position:
            self._first_timestamp = max_timestamp
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        entry = last_offset - self._base_offset
        if self._since_entry > self._interval:
            if entry <= ENTRY_MAX and position <= ENTRY_MAX:
                self._offsets.append(entry)
                self._positions.append(position)
            self._add_timestamp()
            self._since_entry = 0
        self._since_entry += size
        self._next_offset = last_offset + 1
        self._size = position + size
        self._buffered += size
        if self._buffered >= _WRITE_BYTES:
            self.flush()

    def _add_timestamp(self) -> None:
        entry = self._max_timestamp_offset - self._base_offset
        newest = self._timestamps[-1] if self._timestamps else -1
        if self._max_timestamp > newest and entry <= ENTRY_MAX:
            self._timestamps.append(self._max_timestamp)
            self._timestamp_offsets.append(entry)
