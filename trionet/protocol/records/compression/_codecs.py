"""The four compression codecs of record batches, with Kafka's framing.

Decompression is bounded, because a few kilobytes of zstd can expand to hundreds of megabytes.

For snappy, lz4 and zstd only cramjam is used, even if other packages are installed. ``zstandard``
can reuse its context, but this would only save 3 to 5 microseconds per small batch, which is not
worth a second code path. The zstd module of Python 3.14 would save nothing.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Callable
from typing import Final, TypeAlias

import cramjam

from trionet.errors import DecompressionLimitError, WireFormatError
from trionet.protocol.records.compression._frames import (
    FAST_LEVEL,
    BoundedOutput,
    compress_frame,
    compress_stream,
    decompress_plain_frame,
    decompress_stream,
)

Bytes: TypeAlias = bytes | bytearray | memoryview

_DecompressInto: TypeAlias = Callable[[Bytes, bytearray | mmap.mmap], int]

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

#: The codec names, as in ``compression.type``.
NAMES: Final = {NONE: "none", GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}

#: The default compression levels, as in Kafka (KIP-390).
DEFAULT_LEVELS: Final = {GZIP: -1, LZ4: FAST_LEVEL, ZSTD: 3}

#: The maximum compression ratio of each format. Two bits of deflate repeat 258 bytes, three bytes
#: of snappy 64 bytes, one byte of lz4 255 bytes, and four bytes of zstd a block of 128 KB.
DECOMPRESSION_RATIO_MAX: Final = {NONE: 1, GZIP: 1032, SNAPPY: 22, LZ4: 255, ZSTD: 32768}

_GZIP_WINDOW: Final = 31
_GZIP_MAGIC: Final = b"\x1f\x8b"

# gzip is decompressed in parts of these sizes: zlib allocates twice the size of its output, and
# copies the rest of the input with each call.
_GZIP_IN_BYTES: Final = 64 * 1024
#: The first part of a member is smaller, since what follows a member in its last part is copied.
_GZIP_FIRST_BYTES: Final = 4 * 1024
_GZIP_OUT_BYTES: Final = 256 * 1024

#: The first guess of a decompressed size: twice the usual ratio, with a lower limit.
_GUESS_RATIO: Final = 8
_GUESS_BYTES_MIN: Final = 16 * 1024

#: The largest first guess, and the size of the first memory map.
_MAPPED_BYTES: Final = 128 * 1024 * 1024

#: cramjam's error (Rust: ErrorKind::WriteZero) if the data is larger than the buffer.
_BUFFER_IS_FULL: Final = "failed to write whole buffer"

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_SINGLE_SEGMENT: Final = 0x20
_ZSTD_DICTIONARY: Final = 0x03


def compress(codec: int, data: Bytes, level: int | None = None) -> bytes:
    """Compress the records of a batch.

    Args:
        codec: the number of the codec in the attributes of a batch.
        data: the records.
        level: the compression level; None for Kafka's default. Snappy has no levels.

    Raises:
        ValueError: the codec is unknown, or a level is given but the codec has no levels.
    """
    if level is None:
        level = DEFAULT_LEVELS.get(codec, 0)
    elif codec not in DEFAULT_LEVELS:
        raise ValueError(f"{NAMES.get(codec, codec)} has no compression levels; omit the level")
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, level=level))
    if codec == LZ4:
        return compress_frame(data, level)
    if codec == SNAPPY:
        return compress_stream(data)
    if codec == GZIP:
        return zlib.compress(data, level, wbits=_GZIP_WINDOW)
    if codec == NONE:
        return bytes(data)
    raise ValueError(f"unknown compression codec {codec}; expected one of {NAMES}")


def decompress(codec: int, data: Bytes, limit: int) -> bytes:
    """Decompress the records of a batch.

    Args:
        codec: the number of the codec in the attributes of a batch.
        data: the compressed records.
        limit: the maximum size of the result, in bytes.

    Raises:
        WireFormatError: the codec is unknown, or the data is malformed.
        DecompressionLimitError: the result would exceed ``limit``.

    Rejecting data takes at most ``limit`` bytes of memory, or twice ``limit`` with zstd, since the
    window of a frame may be as large as its contents. A result may temporarily exist twice, once as
    separate parts. In all cases, up to one more megabyte may be used. The exception keeps no
    reference to the data.
    """
    if codec == NONE:
        if len(data) > limit:
            raise DecompressionLimitError(limit)
        return bytes(data)
    decompressor = _DECOMPRESSORS.get(codec)
    if decompressor is None:
        raise WireFormatError(f"unknown compression codec {codec}")
    try:
        return decompressor(data, limit)
    except WireFormatError as error:
        # The frames of the traceback would keep the output alive.
        raise error.with_traceback(None) from error.__cause__
    except (cramjam.DecompressionError, zlib.error, struct.error) as error:
        raise WireFormatError(
            f"records are not valid {NAMES[codec]}: {error}"
        ) from error.with_traceback(None)


def _decompress_gzip(data: Bytes, limit: int) -> bytes:
    """Decompress all gzip members, as Java and aiokafka do (librdkafka reads only the first)."""
    output = BoundedOutput(limit)
    view = memoryview(data)
    pos = 0
    while True:
        pos = _decompress_member(view, pos, output)
        if pos == len(view):
            return output.joined()
        if bytes(view[pos : pos + 2]) != _GZIP_MAGIC:
            raise WireFormatError("gzip records are followed by other data")


def _decompress_member(view: memoryview, pos: int, output: BoundedOutput) -> int:
    """Decompress the gzip member at ``pos``, and return its end."""
    stream = zlib.decompressobj(_GZIP_WINDOW)
    part_bytes = _GZIP_FIRST_BYTES
    while True:
        data = stream.unconsumed_tail or view[pos : pos + part_bytes]
        if not stream.unconsumed_tail:
            pos += len(data)
            part_bytes = _GZIP_IN_BYTES
        part = stream.decompress(data, min(output.left + 1, _GZIP_OUT_BYTES))
        output.add(part)
        if stream.eof:
            return pos - len(stream.unused_data)
        if not data and not part:
            raise WireFormatError("truncated gzip records")


def _decompress_lz4(data: Bytes, limit: int) -> bytes:
    out = decompress_plain_frame(data, limit)
    if out is None:
        guess = max(_GUESS_RATIO * len(data), _GUESS_BYTES_MIN)
        return _decompress_frames(cramjam.lz4.decompress_into, data, guess, limit)
    return out


def _decompress_zstd(data: Bytes, limit: int) -> bytes:
    size = _zstd_size(data)
    if size is None:
        size = max(_GUESS_RATIO * len(data), _GUESS_BYTES_MIN)
    elif size > limit:
        raise DecompressionLimitError(limit)
    return _decompress_frames(cramjam.zstd.decompress_into, data, size, limit)


def _zstd_size(data: Bytes) -> int | None:
    """Return the content size in the frame header; None if absent, as usual in streams."""
    if len(data) < 6 or data[:4] != _ZSTD_MAGIC:
        return None
    flags = data[4]
    is_single = flags & _ZSTD_SINGLE_SEGMENT
    size_bytes = (1 if is_single else 0, 2, 4, 8)[flags >> 6]
    if not size_bytes or flags & _ZSTD_DICTIONARY:
        return None
    start = 5 if is_single else 6
    size = int.from_bytes(data[start : start + size_bytes], "little")
    return size + 256 if size_bytes == 2 else size


def _decompress_frames(
    decompress_into: _DecompressInto, data: Bytes, guess: int, limit: int
) -> bytes:
    """Decompress into a buffer of fixed size.

    The other functions of cramjam trust the content size of the frame. Concatenated frames are
    decompressed together, as lz4 and zstd specify and Java's zstd does. If the guess is too small,
    the buffer is an anonymous memory map, which allocates only the pages that are written. A
    bytearray of this size would first be filled with zeros. A limit may be larger than what can be
    mapped, so that maps grow up to it.
    """
    size = min(guess, limit, _MAPPED_BYTES)
    out: bytearray | mmap.mmap = bytearray(size)
    while True:
        try:
            return bytes(memoryview(out)[: decompress_into(data, out)])
        except cramjam.DecompressionError as error:
            if str(error) != _BUFFER_IS_FULL:
                raise
        if size == limit:
            raise DecompressionLimitError(limit)
        size = min(limit, max(_MAPPED_BYTES, size * _GUESS_RATIO))
        out = mmap.mmap(-1, size)


_DECOMPRESSORS: Final[dict[int, Callable[[Bytes, int], bytes]]] = {
    GZIP: _decompress_gzip,
    SNAPPY: decompress_stream,
    LZ4: _decompress_lz4,
    ZSTD: _decompress_zstd,
}
