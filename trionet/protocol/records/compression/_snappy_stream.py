"""Snappy streams, in the format of snappy-java, and raw snappy blocks.

Kafka's clients write streams, and librdkafka writes raw blocks. A stream is a header of 16 bytes
followed by blocks, each preceded by its size as an int32. The two version numbers in the header are
ignored, since only one version exists and Redpanda writes the numbers with swapped bytes.
"""

from __future__ import annotations

import struct
from typing import Final, TypeAlias

import cramjam

from trionet.errors import WireFormatError
from trionet.protocol.records.compression._bounded_output import BoundedOutput, too_large

Bytes: TypeAlias = bytes | bytearray | memoryview

_MAGIC: Final = b"\x82SNAPPY\x00"
_HEADER: Final = _MAGIC + struct.pack(">ii", 1, 1)
_BLOCK_BYTES: Final = 32 * 1024
_block_size: Final = struct.Struct(">i")


def compress_stream(data: Bytes) -> bytes:
    """Compress data into a stream of 32 KB blocks."""
    view = memoryview(data)
    parts: list[Bytes | cramjam.Buffer] = [_HEADER]
    for start in range(0, len(view), _BLOCK_BYTES):
        block = cramjam.snappy.compress_raw(view[start : start + _BLOCK_BYTES])
        parts += _block_size.pack(len(block)), block
    return b"".join(parts)


def decompress_stream(data: Bytes, limit: int) -> bytes:
    """Decompress a stream, or a raw block.

    Raises:
        WireFormatError, cramjam.DecompressionError, struct.error: the data is truncated or
            malformed, or the result would exceed ``limit`` bytes.
    """
    view = memoryview(data)
    if bytes(view[: len(_MAGIC)]) != _MAGIC:
        return bytes(_decompress_block(view, limit, limit))
    if len(view) < len(_HEADER):
        raise WireFormatError("truncated snappy records")
    output = BoundedOutput(limit)
    pos, end = len(_HEADER), len(view)
    while pos < end:
        (size,) = _block_size.unpack_from(view, pos)
        pos += 4
        if not 0 < size <= end - pos:
            # snappy-java also reads a second stream after the first; no client writes one.
            raise WireFormatError(f"a snappy block of {size} bytes does not fit into its stream")
        output.add(_decompress_block(view[pos : pos + size], output.left, limit))
        pos += size
    return output.joined()


def _decompress_block(block: memoryview, left: int, limit: int) -> cramjam.Buffer:
    """Decompress a block, after checking the size that cramjam would allocate."""
    if cramjam.snappy.decompress_raw_len(block) > left:
        raise too_large(limit)
    return cramjam.snappy.decompress_raw(block)
