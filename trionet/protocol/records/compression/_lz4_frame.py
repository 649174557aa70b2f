"""lz4's frame format as Kafka wants it: independent blocks of 64 KB without checksums.

Frames are put together from blocks here, since lz4's own frame functions spend several times what a
small batch needs on their state, and the ones of cramjam write blocks of 4 MB with checksums, for
which a Java consumer sets 4 MB aside (Kafka: Lz4BlockOutputStream, Lz4BlockInputStream).
"""

from __future__ import annotations

import struct
from typing import Final, TypeAlias

import cramjam

from trionet.errors import WireFormatError
from trionet.protocol.records.compression._bounded_output import Pieces
from trionet.protocol.records.compression._lz4_header import xxh32

Bytes: TypeAlias = bytes | bytearray | memoryview

#: Kafka's default level means lz4's fast compressor; every other one means the slow one (KIP-390).
FAST_LEVEL: Final = 9

# The slow compressor knows no level below, and gets no better above.
_HC_LEVEL_MIN: Final = 3
_HC_LEVEL_MAX: Final = 12

#: What a block has at most, by its descriptor in the header.
_BLOCK_BYTES_MAX: Final = {0x40: 1 << 16, 0x50: 1 << 18, 0x60: 1 << 20, 0x70: 1 << 22}


def _header(block_descriptor: int) -> bytes:
    """Magic, version 1 with independent blocks and without checksums, and the header's own."""
    descriptor = bytes((0x60, block_descriptor))
    return b"\x04\x22\x4d\x18" + descriptor + bytes((xxh32(descriptor) >> 8 & 0xFF,))


_HEADER: Final = _header(0x40)
_PLAIN_HEADERS: Final = {_header(key): size for key, size in _BLOCK_BYTES_MAX.items()}
_END: Final = b"\0\0\0\0"
_BLOCK_BYTES: Final = 64 * 1024
_IS_STORED: Final = 0x80000000
_block_size: Final = struct.Struct("<I")

#: The first guess at how large a block gets: four times the usual ratio.
_GUESS_RATIO: Final = 12


def compress_frame(data: Bytes, level: int = FAST_LEVEL) -> bytes:
    """One frame.

    Args:
        data: what goes in.
        level: Kafka's, from 1 to 17; 9 is the fast one.
    """
    if level != FAST_LEVEL:
        level = min(max(level, _HC_LEVEL_MIN), _HC_LEVEL_MAX)
        stream = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
        stream.compress(bytes(data))
        return bytes(stream.finish())
    view = memoryview(data)
    parts: list[Bytes | cramjam.Buffer] = [_HEADER]
    for start in range(0, len(view), _BLOCK_BYTES):
        block = view[start : start + _BLOCK_BYTES]
        packed = cramjam.lz4.compress_block(block, store_size=False)
        size = len(packed)
        if size < len(block):
            parts += _block_size.pack(size), packed
        else:
            parts += _block_size.pack(len(block) | _IS_STORED), block
    parts.append(_END)
    return b"".join(parts)


def decompress_plain_frame(data: Bytes, limit: int) -> bytes | None:
    """What a frame of independent blocks without checksums holds, which is what clients write.

    Returns:
        None if it is something else, for lz4's own functions: linked blocks, checksums, a size, a
        second frame behind the first, a header with a wrong checksum.

    Raises:
        WireFormatError, cramjam.DecompressionError, struct.error: it is cut short or malformed, or
            would grow beyond ``limit`` bytes.
    """
    block_bytes_max = _PLAIN_HEADERS.get(bytes(data[: len(_HEADER)]))
    if block_bytes_max is None:
        return None
    view = memoryview(data)
    pos = len(_HEADER)
    pieces = Pieces(limit)
    while True:
        (size,) = _block_size.unpack_from(view, pos)
        pos += 4
        if not size:
            break
        is_stored = size & _IS_STORED
        size &= ~_IS_STORED
        if size > min(block_bytes_max, len(view) - pos):
            raise WireFormatError(f"an lz4 block of {size} bytes does not fit")
        block = view[pos : pos + size]
        pos += size
        pieces.add(block if is_stored else _inflated(block, min(block_bytes_max, pieces.left)))
    if pos != len(view):
        return None
    return pieces.joined()


def _inflated(block: memoryview, limit: int) -> bytearray:
    """A guess comes first: memory is filled with zeros, and most blocks need little of it."""
    guess = min(len(block) * _GUESS_RATIO, limit)
    out = bytearray(guess)
    try:
        size = cramjam.lz4.decompress_block_into(block, out)
    except cramjam.DecompressionError:
        if guess == limit:
            raise
        out = bytearray(limit)
        size = cramjam.lz4.decompress_block_into(block, out)
    del out[size:]
    return out
