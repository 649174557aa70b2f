"""A decompressed batch, which is decoded in parts."""

# Compiled by mypyc.

from __future__ import annotations

from ...._util._raising import raise_from
from ....errors import WireFormatError
from ....protocol.records import _implementation as implementation
from ....protocol.records._batch import Bytes
from ....protocol.records._records import INFLATED_BYTES_MAX, open_batch
from ....protocol.records._types import Columns


class DecompressedBatch:
    """A decompressed batch. Its checksum is not verified here.

    Args:
        buf: the buffer that contains the complete batch.
        pos: the index at which the batch starts.
        inflated_bytes_max: the limit for the decompressed size of the batch.

    Raises:
        WireFormatError: the batch is malformed, or exceeds the limit.

    Attributes:
        header: the header of the batch.
        left: the number of records that remain to be read.
    """

    __slots__ = ("_body", "_end", "_pos", "header", "left")

    def __init__(self, buf: Bytes, pos: int, inflated_bytes_max: int = INFLATED_BYTES_MAX) -> None:
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
        except UnicodeDecodeError as error:
            raise_from(WireFormatError("the key of a record header is not valid UTF-8"), error)
        if count == self.left and pos != self._end:
            raise WireFormatError("the records of a batch do not end where the batch ends")
        self._pos = pos
        self.left -= count
        if header.timestamp_type:  # LogAppendTime: one timestamp replaces those of the records
            return columns._replace(timestamps=[header.max_timestamp] * count)
        return columns
