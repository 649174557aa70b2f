"""Decompression of batches, and the decoding of a decompressed batch in parts.

Large batches are decompressed in a thread, small batches inline.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import trio

from ...._util._off_loop import computing_threads
from ...._util._raising import raise_from
from ....errors import WireFormatError
from ....protocol.records import _implementation as implementation
from ....protocol.records._batch import BatchHeader, Bytes
from ....protocol.records._records import open_batch
from ....protocol.records._types import Columns

#: The maximum decompressed size of a batch that is decompressed inline. For this size, gzip takes
#: 0.85 ms, zstd 0.3 ms, lz4 0.1 to 0.3 ms and snappy 0.2 ms. A thread costs 0.1 ms.
INLINE_BYTES_MAX: Final = 256 * 1024

#: The maximum compressed size of a batch for which inline decompression is tried. JSON that gzip
#: compresses to this size decompresses to about INLINE_BYTES_MAX.
PACKED_BYTES_MAX: Final = 64 * 1024


class DecompressedBatch:
    """A decompressed batch. Its checksum is not verified here.

    Args:
        buf: the buffer that contains the complete batch.
        pos: the index at which the batch starts.
        inflated_bytes_max: the limit for the decompressed size of the batch.

    Raises:
        WireFormatError: the batch is malformed.
        DecompressionLimitError: the batch exceeds the limit.

    Attributes:
        header: the header of the batch.
        left: the number of records that remain to be read.
    """

    def __init__(self, buf: Bytes, pos: int, inflated_bytes_max: int) -> None:
        opened = open_batch(buf, pos, inflated_bytes_max)
        self.header, self._body, self._pos, self._end = opened
        self.left = self.header.count

    @property
    def is_done(self) -> bool:
        return self.left == 0

    def read(self, records_max: int) -> Columns:
        """Decode the next records, at least one.

        Args:
            records_max: the maximum number of records to decode.

        Raises:
            WireFormatError: a record is malformed; nothing is skipped, so the next call fails too.
        """
        header = self.header
        count = min(self.left, records_max)
        passed = header.count - self.left
        bases = header.base_offset, header.base_timestamp, passed
        try:
            columns, pos = implementation.reader.read_columns(self._body, self._pos, count, *bases)
        except IndexError as error:
            raise_from(WireFormatError("truncated record"), error)
        if count == self.left and pos != self._end:
            raise WireFormatError("the records of a batch do not end where the batch ends")
        _check_offsets(columns.offsets, header)
        self._pos = pos
        self.left -= count
        if header.timestamp_type:  # LogAppendTime: one timestamp replaces those of the records
            return columns._replace(timestamps=[header.max_timestamp] * count)
        return columns


def _check_offsets(offsets: Sequence[int], header: BatchHeader) -> None:
    """Check that offsets are those of the batch.

    After a batch, the position would be before an offset that is beyond it, whose record would come
    again and again; and the position after a record is committed, whatever its offset is.

    Raises:
        WireFormatError: an offset is outside the batch.
    """
    first, last = offsets[0], offsets[-1]
    if not isinstance(offsets, range):  # they are not consecutive, and need not be in order
        first, last = min(offsets), max(offsets)
    if first < header.base_offset or last > header.last_offset:
        wrong = last if last > header.last_offset else first
        raise WireFormatError(
            f"offset {wrong} is outside its batch, which has the offsets {header.base_offset} to"
            f" {header.last_offset}"
        )


def decompressed_inline(
    records: memoryview, start: int, header: BatchHeader, bytes_max: int
) -> DecompressedBatch | None:
    """Decompress a batch if that takes at most about a millisecond; otherwise, return None.

    Args:
        records: the buffer that contains the batch.
        start: the index at which the batch starts.
        header: the header of the batch.
        bytes_max: the limit for the decompressed size of the batch.
    """
    if not header.codec:
        return DecompressedBatch(records, start, header.size)
    if header.size > PACKED_BYTES_MAX:
        return None
    try:
        return DecompressedBatch(records, start, min(bytes_max, INLINE_BYTES_MAX))
    except WireFormatError:
        return None  # it is larger, or malformed: the thread finds out


class Decompression:
    """The decompression of a batch in a thread.

    Args:
        records: the buffer that contains the batch; it is not modified.
        start: the index at which the batch starts.
        bytes_max: the limit for the decompressed size of the batch.

    Attributes:
        has_started: whether :meth:`run` has been called.
        opened: the decompressed batch; None before :meth:`run`, and after an error.
        error: why the batch cannot be decompressed; None if there was no error.
    """

    def __init__(self, records: memoryview, start: int, bytes_max: int) -> None:
        self._records = records
        self._start = start
        self._bytes_max = bytes_max
        self.has_started = False
        self.opened: DecompressedBatch | None = None
        self.error: WireFormatError | None = None

    async def run(self) -> None:  # noqa: ASYNC910 -- a thread is waited for
        """Decompress the batch. At most one decompression runs per processor at a time.

        Cancellation: until the thread has started, nothing is changed; after that, cancellation has
        no effect.
        """
        self.has_started = True
        try:
            self.opened = await trio.to_thread.run_sync(
                DecompressedBatch,
                self._records,
                self._start,
                self._bytes_max,
                limiter=computing_threads(),
            )
        except WireFormatError as error:
            self.error = error
