"""Snappy in the stream format of snappy-java, which Kafka's clients write, and bare (librdkafka).

A header of 16 bytes, then the size of a block as int32 and the block, repeated. The header holds
two version numbers that say nothing: there is one version, and Redpanda writes them with their
bytes swapped.
"""

from __future__ import annotations

import struct
from typing import Final, TypeAlias

import cramjam

from trionet.errors import WireFormatError
from trionet.protocol.records.compression._bounded_output import Pieces, too_large

Bytes: TypeAlias = bytes | bytearray | memoryview

_MAGIC: Final = b"\x82SNAPPY\x00"
_HEADER: Final = _MAGIC + struct.pack(">ii", 1, 1)
_BLOCK_BYTES: Final = 32 * 1024
_block_size: Final = struct.Struct(">i")


def compress_stream(data: Bytes) -> bytes:
    """A stream of blocks that hold 32 KB each."""
    view = memoryview(data)
    parts: list[Bytes | cramjam.Buffer] = [_HEADER]
    for start in range(0, len(view), _BLOCK_BYTES):
        block = cramjam.snappy.compress_raw(view[start : start + _BLOCK_BYTES])
        parts += _block_size.pack(len(block)), block
    return b"".join(parts)


def decompress_stream(data: Bytes, limit: int) -> bytes:
    """What a stream holds, or a bare block.

    Raises:
        WireFormatError, cramjam.DecompressionError, struct.error: it is cut short or malformed, or
            would grow beyond ``limit`` bytes.
    """
    view = memoryview(data)
    if bytes(view[: len(_MAGIC)]) != _MAGIC:
        return bytes(_inflated(view, limit, limit))
    if len(view) < len(_HEADER):
        raise WireFormatError("snappy records end too early")
    pieces = Pieces(limit)
    pos, end = len(_HEADER), len(view)
    while pos < end:
        (size,) = _block_size.unpack_from(view, pos)
        pos += 4
        if not 0 < size <= end - pos:
            # snappy-java reads a second stream behind the first; no client writes one.
            raise WireFormatError(f"a snappy block of {size} bytes does not fit")
        pieces.add(_inflated(view[pos : pos + size], pieces.left, limit))
        pos += size
    return pieces.joined()


def _inflated(block: memoryview, left: int, limit: int) -> cramjam.Buffer:
    """A block says how large it gets: ask first, since it is taken at its word."""
    if cramjam.snappy.decompress_raw_len(block) > left:
        raise too_large(limit)
    return cramjam.snappy.decompress_raw(block)
