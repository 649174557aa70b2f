"""One batch that is decompressed, and decoded in parts."""

# Compiled by mypyc.

from __future__ import annotations

from ...._util._raising import raise_from
from ....errors import WireFormatError
from ....protocol.records import _implementation as implementation
from ....protocol.records._batch import Bytes
from ....protocol.records._records import INFLATED_BYTES_MAX, open_batch
from ....protocol.records._types import Columns


class OpenedBatch:
    """See the module. Its checksum is not looked at.

    Args:
        buf: what holds the batch, whole.
        pos: where it starts.
        inflated_bytes_max: the most that may come out of it.

    Raises:
        WireFormatError: the batch is malformed, or grows beyond the limit.

    Attributes:
        header: the batch's.
        left: how many records are still to be read.
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
            records_max: as many at most.

        Raises:
            WireFormatError: they are malformed; nothing was read then.
        """
        header = self.header
        count = min(self.left, records_max)
        passed = header.count - self.left
        bases = header.base_offset, header.base_timestamp, passed
        try:
            columns, pos = implementation.reader.read_columns(self._body, self._pos, count, *bases)
        except IndexError as error:
            raise_from(WireFormatError("a record ends too early"), error)
        except UnicodeDecodeError as error:
            raise_from(WireFormatError("a record header's key is not UTF-8"), error)
        if count == self.left and pos != self._end:
            raise WireFormatError("a batch's records do not end where it does")
        self._pos = pos
        self.left -= count
        if header.timestamp_type:  # the log's: one for all, and the records' own mean nothing
            return columns._replace(timestamps=[header.max_timestamp] * count)
        return columns
