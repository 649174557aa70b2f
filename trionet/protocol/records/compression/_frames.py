"""The formats of lz4 and snappy in record batches, and the output of decompressors.

lz4 frames have independent blocks of 64 KB and no checksums. They are assembled from blocks: the
frame functions of lz4 would spend several times the cost of a small batch on setting up their
state. The frame functions of cramjam write blocks of 4 MB with checksums, for which a Java consumer
allocates 4 MB (Kafka: Lz4BlockOutputStream, Lz4BlockInputStream). Kafka's first lz4 streams
included the magic number of the frame in the header checksum. Clients of message format 0 still
expect this checksum. Message format 1 and later use the standard checksum of lz4 (KIP-57; Kafka:
Lz4BlockOutputStream, ``useBrokenFlagDescriptorChecksum``).

Kafka's clients write snappy in streams, in the format of snappy-java, and librdkafka writes raw
blocks. A stream is a header of 16 bytes followed by blocks, each preceded by its size as an int32.
The two version numbers in the header are ignored, since only one version exists and Redpanda writes
the numbers with swapped bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, TypeAlias

import cramjam

from trionet.errors import DecompressionLimitError, WireFormatError

Part: TypeAlias = bytes | bytearray | memoryview | cramjam.Buffer

#: The number of parts after which they are joined. A peer can cause parts of a single byte, each of
#: which takes two hundred bytes as an object.
_PARTS_MAX: Final = 1024


class BoundedOutput:
    """Collects the output of a decompressor, in parts.

    Args:
        limit: the maximum total size in bytes.

    Attributes:
        left: the number of bytes that may still be added.
    """

    __slots__ = ("_joined", "_limit", "_parts", "left")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[Part] = []
        self._joined: list[Part] = []
        self.left = limit

    def add(self, part: Part) -> None:
        """Add the next part, which may be empty.

        Raises:
            DecompressionLimitError: the limit is exceeded.
        """
        size = len(part)
        self.left -= size
        if self.left < 0:
            raise DecompressionLimitError(self._limit)
        if size:
            self._parts.append(part)
            if len(self._parts) >= _PARTS_MAX:
                self._joined.append(b"".join(self._parts))
                self._parts.clear()

    def joined(self) -> bytes:
        """Return the joined parts; a single part of type ``bytes`` is not copied."""
        parts = self._joined + self._parts if self._joined else self._parts
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)


Bytes: TypeAlias = bytes | bytearray | memoryview

#: Kafka's default level, which selects the fast compressor; all other levels select lz4hc
#: (KIP-390).
FAST_LEVEL: Final = 9

# lz4hc has no lower levels, and higher ones are not better.
_HC_LEVEL_MIN: Final = 3
_HC_LEVEL_MAX: Final = 12

#: The maximum block size, by the block descriptor of the frame header.
_BLOCK_BYTES_MAX: Final = {0x40: 1 << 16, 0x50: 1 << 18, 0x60: 1 << 20, 0x70: 1 << 22}

#: The position of the descriptor (flags and block size), which follows the magic number.
_DESCRIPTOR: Final = 4
_HAS_CONTENT_SIZE: Final = 0x08
_HAS_DICTIONARY: Final = 0x01
_HAS_INDEPENDENT_BLOCKS: Final = 0x20

#: The version, of two bits, and a reserved bit; the only value that they may have.
_FIXED_FLAGS: Final = 0xC2
_VERSION_1: Final = 0x40

_MASK: Final = 0xFFFFFFFF
_PRIME_1: Final = 0x9E3779B1
_PRIME_2: Final = 0x85EBCA77
_PRIME_3: Final = 0xC2B2AE3D
_PRIME_4: Final = 0x27D4EB2F
_PRIME_5: Final = 0x165667B1

#: The maximum size of a header without a dictionary: with the size of the content.
LZ4_HEADER_SIZE_MAX: Final = 15

#: The limit of the implemented part of xxHash; a header has at most 14 bytes before its checksum.
_SHORT_BYTES: Final = 16


def xxh32(data: bytes) -> int:
    """Return the 32-bit xxHash, with seed 0, of fewer than 16 bytes."""
    assert len(data) < _SHORT_BYTES, "longer data needs another algorithm"
    value = _PRIME_5 + len(data)
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        value += int.from_bytes(data[start : start + 4], "little") * _PRIME_3
        value = _rotated(value & _MASK, 17) * _PRIME_4
    for byte in data[whole:]:
        value += byte * _PRIME_5
        value = _rotated(value & _MASK, 11) * _PRIME_1
    value &= _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK


def _header(block_descriptor: int) -> bytes:
    """Return a frame header: version 1, independent blocks, only a header checksum."""
    descriptor = bytes((0x60, block_descriptor))
    return b"\x04\x22\x4d\x18" + descriptor + bytes((xxh32(descriptor) >> 8 & 0xFF,))


_LZ4_HEADER: Final = _header(0x40)
_PLAIN_HEADERS: Final = {_header(key): size for key, size in _BLOCK_BYTES_MAX.items()}
_END: Final = b"\0\0\0\0"
_LZ4_BLOCK_BYTES: Final = 64 * 1024
_IS_STORED: Final = 0x80000000
_lz4_block_size: Final = struct.Struct("<I")

#: The first guess of the decompressed size of a block: four times the usual ratio.
_GUESS_RATIO: Final = 12


def compress_frame(data: Bytes, level: int = FAST_LEVEL) -> bytes:
    """Compress data into a single frame.

    Args:
        data: the data to compress.
        level: Kafka's compression level, from 1 to 17; 9 selects the fast compressor.
    """
    if level != FAST_LEVEL:
        level = min(max(level, _HC_LEVEL_MIN), _HC_LEVEL_MAX)
        stream = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
        stream.compress(bytes(data))
        return bytes(stream.finish())
    view = memoryview(data)
    parts: list[Bytes | cramjam.Buffer] = [_LZ4_HEADER]
    for start in range(0, len(view), _LZ4_BLOCK_BYTES):
        block = view[start : start + _LZ4_BLOCK_BYTES]
        packed = cramjam.lz4.compress_block(block, store_size=False)
        size = len(packed)
        if size < len(block):
            parts += _lz4_block_size.pack(size), packed
        else:
            parts += _lz4_block_size.pack(len(block) | _IS_STORED), block
    parts.append(_END)
    return b"".join(parts)


def decompress_plain_frame(data: Bytes, limit: int) -> bytes | None:
    """Decompress a single frame of independent blocks without checksums, the usual case.

    Returns:
        The data; None if the frame functions of lz4 must decompress the frame, because it has
        linked blocks, checksums, a content size or a wrong header checksum, or is followed by a
        second frame.

    Raises:
        WireFormatError, cramjam.DecompressionError, struct.error: the frame is truncated or
            malformed, or the result would exceed ``limit`` bytes.
    """
    block_bytes_max = _PLAIN_HEADERS.get(bytes(data[: len(_LZ4_HEADER)]))
    if block_bytes_max is None:
        return None
    view = memoryview(data)
    pos = len(_LZ4_HEADER)
    output = BoundedOutput(limit)
    while True:
        (size,) = _lz4_block_size.unpack_from(view, pos)
        pos += 4
        if not size:
            break
        is_stored = size & _IS_STORED
        size &= ~_IS_STORED
        if size > min(block_bytes_max, len(view) - pos):
            raise WireFormatError(f"an lz4 block of {size} bytes does not fit into its frame")
        block = view[pos : pos + size]
        pos += size
        part = block if is_stored else _decompress_lz4_block(block, block_bytes_max, output.left)
        if part is None:
            raise DecompressionLimitError(limit)
        output.add(part)
    if pos != len(view):
        return None
    return output.joined()


def _decompress_lz4_block(block: memoryview, block_bytes_max: int, left: int) -> bytearray | None:
    """Decompress a block, first into a small buffer, which is cheaper to fill with zeros.

    Returns:
        The data; None if it does not fit into ``left`` bytes. With less than ``block_bytes_max``
        bytes left that includes malformed blocks, since lz4 does not say which it is.
    """
    limit = min(block_bytes_max, left)
    for size in dict.fromkeys((min(len(block) * _GUESS_RATIO, limit), limit)):
        out = bytearray(size)
        try:
            del out[cramjam.lz4.decompress_block_into(block, out) :]
        except cramjam.DecompressionError:
            if size == limit == block_bytes_max:
                raise
        else:
            return out
    return None


# The header checksum.


def check_frame_header(frame: Bytes) -> None:
    """Check the header of a frame as Kafka does (Lz4BlockInputStream).

    Args:
        frame: the frame, which may be cut after its header.

    Raises:
        WireFormatError: the header is damaged or truncated, the frame requires a dictionary, or its
            blocks are linked.
    """
    if bytes(frame[: len(_LZ4_HEADER)]) in _PLAIN_HEADERS:
        return
    is_frame = bytes(frame[:_DESCRIPTOR]) == _LZ4_HEADER[:_DESCRIPTOR]
    end = _header_end(frame) if is_frame else 0
    if not is_frame or frame[end] != xxh32(bytes(frame[_DESCRIPTOR:end])) >> 8 & 0xFF:
        raise WireFormatError("records are not valid lz4: the header of their frame is damaged")
    flags, block_descriptor = frame[_DESCRIPTOR], frame[_DESCRIPTOR + 1]
    if flags & _FIXED_FLAGS != _VERSION_1 or block_descriptor not in _BLOCK_BYTES_MAX:
        raise WireFormatError("records are not valid lz4: an unknown version or block size")
    if not flags & _HAS_INDEPENDENT_BLOCKS:
        raise WireFormatError(
            "the blocks of lz4 records are linked, which Kafka and its consumers cannot read;"
            " compress them with independent blocks"
        )


def with_standard_checksum(frame: Bytes) -> bytes:
    """Replace the header checksum of a frame with the standard checksum of lz4.

    Raises:
        WireFormatError: the header is truncated, or the frame requires a dictionary.
    """
    end = _header_end(frame)
    return _replaced(frame, end, frame[_DESCRIPTOR:end])


def with_legacy_checksum(frame: Bytes) -> bytes:
    """Replace the header checksum of a frame with the checksum of message format 0.

    Raises:
        WireFormatError: the header is truncated, or the frame requires a dictionary.
    """
    end = _header_end(frame)
    return _replaced(frame, end, frame[:end])


def _header_end(frame: Bytes) -> int:
    """Return the end of the descriptor, which is the position of the header checksum."""
    if len(frame) <= _DESCRIPTOR:
        raise WireFormatError("truncated lz4 records")
    flags = frame[_DESCRIPTOR]
    if flags & _HAS_DICTIONARY:
        raise WireFormatError("lz4 records that require a dictionary are not supported")
    end = _DESCRIPTOR + 2 + (8 if flags & _HAS_CONTENT_SIZE else 0)
    if len(frame) <= end:
        raise WireFormatError("truncated lz4 records")
    return end


def _replaced(frame: Bytes, position: int, covered: Bytes) -> bytes:
    checksum = xxh32(bytes(covered)) >> 8 & 0xFF
    view = memoryview(frame)
    return b"".join((view[:position], bytes((checksum,)), view[position + 1 :]))


_SNAPPY_MAGIC: Final = b"\x82SNAPPY\x00"
_SNAPPY_HEADER: Final = _SNAPPY_MAGIC + struct.pack(">ii", 1, 1)
_SNAPPY_BLOCK_BYTES: Final = 32 * 1024
_snappy_block_size: Final = struct.Struct(">i")


def compress_stream(data: Bytes) -> bytes:
    """Compress data into a stream of 32 KB blocks."""
    view = memoryview(data)
    parts: list[Bytes | cramjam.Buffer] = [_SNAPPY_HEADER]
    for start in range(0, len(view), _SNAPPY_BLOCK_BYTES):
        block = cramjam.snappy.compress_raw(view[start : start + _SNAPPY_BLOCK_BYTES])
        parts += _snappy_block_size.pack(len(block)), block
    return b"".join(parts)


def decompress_stream(data: Bytes, limit: int) -> bytes:
    """Decompress a stream, or a raw block.

    Raises:
        WireFormatError, cramjam.DecompressionError, struct.error: the data is truncated or
            malformed, or the result would exceed ``limit`` bytes.
    """
    output = BoundedOutput(limit)
    for block in snappy_blocks(data):
        if cramjam.snappy.decompress_raw_len(block) > output.left:  # it would be allocated
            raise DecompressionLimitError(limit)
        output.add(cramjam.snappy.decompress_raw(block))
    return output.joined()


def snappy_blocks(data: Bytes) -> Iterator[memoryview]:
    """Yield the compressed blocks of a stream, or the only one of raw data.

    Raises:
        WireFormatError, struct.error: the stream is truncated or malformed.
    """
    view = memoryview(data)
    if bytes(view[: len(_SNAPPY_MAGIC)]) != _SNAPPY_MAGIC:
        yield view
        return
    if len(view) < len(_SNAPPY_HEADER):
        raise WireFormatError("truncated snappy records")
    pos, end = len(_SNAPPY_HEADER), len(view)
    while pos < end:
        (size,) = _snappy_block_size.unpack_from(view, pos)
        pos += 4
        if not 0 < size <= end - pos:
            # snappy-java also reads a second stream after the first; no client writes one.
            raise WireFormatError(f"a snappy block of {size} bytes does not fit into its stream")
        yield view[pos : pos + size]
        pos += size
