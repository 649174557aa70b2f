"""Batches that are huge when they are decompressed, in parts. Imports pyarrow and numpy.

A part is decoded like a batch, so that no more than a part is in memory, or one record if that is
larger. cramjam decompresses only as a whole, pyarrow also as a stream.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import cramjam
import numpy as np
import pyarrow as pa

from trionet.errors import DecompressionLimitError, WireFormatError
from trionet.protocol._config_types import INT_MAX
from trionet.protocol.records._batch import Bytes
from trionet.protocol.records.columnar._numpy_batches import BatchHeaders, OpenedBatches
from trionet.protocol.records.compression._codecs import DECOMPRESSION_RATIO_MAX, NAMES, SNAPPY
from trionet.protocol.records.compression._frames import snappy_blocks

#: The size of the longest varint; the length of a record, which has at most 32 bits, is shorter.
_VARINT_BYTES_MAX: Final = 10
_MORE: Final = 0x80


def batch_parts(
    codec: int, data: Bytes, header: BatchHeaders, *, part_bytes: int, bytes_max: int
) -> Iterator[OpenedBatches]:
    """Yield the records of a batch in parts of about ``part_bytes``, each as a batch of its own.

    Args:
        codec: the number of the codec.
        data: the compressed records.
        header: an array of the batch's header.
        part_bytes: the size of a part in bytes; a larger record is a part of its own.
        bytes_max: the limit on the decompressed size of the batch.

    Raises:
        WireFormatError: the data is malformed, or does not have as many records as the header says.
        DecompressionLimitError: the batch is larger than ``bytes_max``.
    """
    stream = _Stream(_decompressed(codec, data, part_bytes), bytes_max)
    left = int(header["count"][0])
    rest: Bytes = b""
    wanted = part_bytes
    while left:
        rest = stream.read(rest, wanted)
        count, end, wanted = _complete_records(rest, left, part_bytes)
        if count:
            part = header.copy()
            part["count"] = count
            yield OpenedBatches(rest, np.zeros(1, np.int64), np.array([end]), part)
            left -= count
            rest = memoryview(rest)[end:]
        elif len(rest) < wanted and stream.is_at_end:
            raise WireFormatError("truncated record")
    if len(rest) or not stream.ends():
        raise WireFormatError("the records of a batch do not end where the batch ends")


class _Stream:
    """Decompressed data that is read in order."""

    def __init__(self, chunks: Iterator[Bytes], bytes_max: int) -> None:
        self._chunks = chunks
        self._bytes_max = bytes_max
        self._bytes_left = bytes_max
        self.is_at_end = False

    def read(self, before: Bytes, size: int) -> bytes:
        """Return data that was read before, and what follows it up to about ``size`` bytes."""
        found, have = [before], len(before)
        while have < size and (chunk := self._next()) is not None:
            found.append(chunk)
            have += len(chunk)
        return b"".join(found)

    def ends(self) -> bool:
        """Return whether nothing is left."""
        return self._next() is None

    def _next(self) -> Bytes | None:
        chunk = next(self._chunks, None)
        if chunk is None:
            self.is_at_end = True
            return None
        self._bytes_left -= len(chunk)
        if self._bytes_left < 0:
            raise DecompressionLimitError(self._bytes_max)
        return chunk


def _decompressed(codec: int, data: Bytes, chunk_bytes: int) -> Iterator[Bytes]:
    """Yield decompressed data in chunks of at most ``chunk_bytes``, or a block of snappy."""
    try:
        if codec == SNAPPY:
            for block in snappy_blocks(data):
                if cramjam.snappy.decompress_raw_len(block) > len(block) * _SNAPPY_RATIO_MAX:
                    raise WireFormatError("a snappy block says that it is larger than it can be")
                yield bytes(cramjam.snappy.decompress_raw(block))
            return
        with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), NAMES[codec]) as stream:
            while chunk := stream.read(chunk_bytes):
                yield chunk
    except (cramjam.DecompressionError, OSError, pa.ArrowInvalid, struct.error) as error:
        raise WireFormatError(f"records are not valid {NAMES[codec]}: {error}") from error


_SNAPPY_RATIO_MAX: Final = DECOMPRESSION_RATIO_MAX[SNAPPY]


def _complete_records(data: Bytes, count_max: int, part_bytes: int) -> tuple[int, int, int]:
    """Find the records of the next part.

    Returns:
        The number of complete records, where they end, and how many bytes from there on are wanted
        for the next part.

    Raises:
        WireFormatError: the length of a record is impossible.
    """
    size = len(data)
    pos = count = 0
    while count < count_max and pos < part_bytes:
        length, start = _length_of_record(data, pos)
        if start + length > size:
            return count, pos, max(part_bytes, start + length - pos)
        pos = start + length
        count += 1
    return count, pos, part_bytes


def _length_of_record(data: Bytes, pos: int) -> tuple[int, int]:
    """Return the length of the record at ``pos`` and where it starts; beyond ``data`` if cut."""
    number = shift = 0
    start = pos
    for byte in memoryview(data)[pos : pos + _VARINT_BYTES_MAX]:
        start += 1
        number |= (byte & ~_MORE) << shift
        if byte < _MORE:
            length = (number >> 1) ^ -(number & 1)
            if not 0 <= length <= INT_MAX:
                raise WireFormatError(f"a record has an impossible length: {length}")
            return length, start
        shift += 7
    if start == pos + _VARINT_BYTES_MAX:
        raise WireFormatError("varint longer than ten bytes")
    return 0, len(data) + 1
