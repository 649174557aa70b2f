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

Bytes: TypeAlias = bytes | bytearray | memoryview

#: Kafka's default level means lz4's fast compressor; every other one means the slow one (KIP-390).
FAST_LEVEL: Final = 9

# The slow compressor knows no level below, and gets no better above.
_HC_LEVEL_MIN: Final = 3
_HC_LEVEL_MAX: Final = 12

_MAGIC: Final = 0x184D2204
_header: Final = struct.Struct("<IBBB")
#: Version 1 with independent blocks, 64 KB, and the checksum of these two bytes.
_HEADER: Final = _header.pack(_MAGIC, 0x60, 0x40, 0x82)
_END: Final = b"\0\0\0\0"
_BLOCK_BYTES: Final = 64 * 1024
_IS_STORED: Final = 0x80000000
_block_size: Final = struct.Struct("<I")

#: The flag, and how many bytes the size has.
_HAS_SIZE: Final = 8
_PLAIN_FLAGS: Final = (0x60, 0x60 | _HAS_SIZE)
_BLOCK_BYTES_MAX: Final = {0x40: 1 << 16, 0x50: 1 << 18, 0x60: 1 << 20, 0x70: 1 << 22}

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

    The checksum of the header is not looked at: a batch has a better one, and the first clients
    computed it wrongly (KIP-57).

    Returns:
        None if it is something else: linked blocks, checksums, a second frame behind the first.

    Raises:
        WireFormatError, cramjam.DecompressionError, struct.error: it is cut short or malformed, or
            would grow beyond ``limit`` bytes.
    """
    magic, flags, block_descriptor, _ = _header.unpack_from(data)
    block_bytes_max = _BLOCK_BYTES_MAX.get(block_descriptor)
    if magic != _MAGIC or flags not in _PLAIN_FLAGS or block_bytes_max is None:
        return None
    view = memoryview(data)
    pos = len(_HEADER) + (flags & _HAS_SIZE)
    parts: list[Bytes] = []
    left = limit
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
        part = block if is_stored else _inflated(block, min(block_bytes_max, left))
        left -= len(part)
        if left < 0:
            raise WireFormatError(f"records grow beyond {limit} bytes when decompressed")
        parts.append(part)
    if pos != len(view):
        return None
    return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)


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
