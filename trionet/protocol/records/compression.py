"""The four codecs of record batches, and how the wire wants them.

Inflating is bounded everywhere: a few kilobytes of zstd can grow to hundreds of megabytes.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import cramjam

from trionet.errors import WireFormatError

Bytes: TypeAlias = bytes | bytearray | memoryview

_InflateInto: TypeAlias = Callable[[Bytes, bytearray | mmap.mmap], int]

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

#: Kafka's names, as in ``compression.type``.
NAMES: Final = {NONE: "none", GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}

_GZIP_WINDOW: Final = 31
_ZSTD_LEVEL: Final = 3

# snappy-java's stream format: this header, then int32 length and raw block, repeated.
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES: Final = 32 * 1024

#: The first guess at how large a body gets: twice the usual ratio, and never very small.
_GUESS_RATIO: Final = 8
_GUESS_BYTES_MIN: Final = 64 * 1024


def compress(codec: int, data: Bytes) -> bytes:
    """Compress the records of a batch.

    Raises:
        ValueError: ``codec`` is no codec.
    """
    if codec == NONE:
        return bytes(data)
    if codec not in _COMPRESSORS:
        raise ValueError(f"{codec} is no codec: {NAMES}")
    return _COMPRESSORS[codec](data)


def decompress(codec: int, data: Bytes, limit: int) -> bytes:
    """Decompress the records of a batch.

    Args:
        codec: the number in the batch's attributes.
        data: the body of the batch.
        limit: the most bytes that may come out.

    Raises:
        WireFormatError: the codec is unknown, the data are not in its format, or they would grow
            beyond ``limit``; never more than ``limit`` bytes are held.
    """
    if codec == NONE:
        if len(data) > limit:
            raise _too_large(limit)
        return bytes(data)
    inflate = _DECOMPRESSORS.get(codec)
    if inflate is None:
        raise WireFormatError(f"compression codec {codec} is unknown")
    try:
        return inflate(data, limit)
    except (cramjam.DecompressionError, zlib.error, struct.error) as error:
        raise WireFormatError(
            f"records are not valid {NAMES[codec]}, or grow beyond {limit} bytes: {error}"
        ) from error


def _too_large(limit: int) -> WireFormatError:
    return WireFormatError(f"records grow beyond {limit} bytes when decompressed")


def _compress_gzip(data: Bytes) -> bytes:
    return zlib.compress(data, wbits=_GZIP_WINDOW)


def _decompress_gzip(data: Bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(_GZIP_WINDOW)
    out = stream.decompress(data, limit + 1)
    if len(out) > limit:
        raise _too_large(limit)
    if not stream.eof:
        raise WireFormatError("gzip records end too early")
    if stream.unused_data:  # no client writes several members
        raise WireFormatError("gzip records go on behind their end")
    return out


def _compress_snappy(data: Bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += struct.pack(">i", len(block)), block
    return b"".join(parts)


def _decompress_snappy(data: Bytes, limit: int) -> bytes:
    view = memoryview(data)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:  # librdkafka writes one bare block
        if cramjam.snappy.decompress_raw_len(view) > limit:
            raise _too_large(limit)
        return bytes(cramjam.snappy.decompress_raw(view))
    parts: list[bytes] = []
    size = 0
    for block in _xerial_blocks(view):
        size += cramjam.snappy.decompress_raw_len(block)
        if size > limit:
            raise _too_large(limit)
        parts.append(bytes(cramjam.snappy.decompress_raw(block)))
    return b"".join(parts)


def _xerial_blocks(view: memoryview) -> Iterator[memoryview]:
    if len(view) < len(_XERIAL_HEADER):
        raise WireFormatError("snappy records end too early")
    pos = len(_XERIAL_HEADER)
    while pos < len(view):
        (length,) = struct.unpack_from(">i", view, pos)
        pos += 4
        if not 0 < length <= len(view) - pos:
            raise WireFormatError(f"a snappy block of {length} bytes does not fit")
        yield view[pos : pos + length]
        pos += length


def _compress_lz4(data: Bytes) -> bytes:
    # Java reads independent blocks only, and cramjam.lz4.compress() links them.
    stream = cramjam.lz4.Compressor(level=1, content_checksum=False, block_linked=False)
    stream.compress(bytes(data))
    return bytes(stream.finish())


def _compress_zstd(data: Bytes) -> bytes:
    return bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL))


def _decompress_lz4(data: Bytes, limit: int) -> bytes:
    return _inflate_frame(cramjam.lz4.decompress_into, data, limit)


def _decompress_zstd(data: Bytes, limit: int) -> bytes:
    return _inflate_frame(cramjam.zstd.decompress_into, data, limit)


def _inflate_frame(inflate_into: _InflateInto, data: Bytes, limit: int) -> bytes:
    """Inflate into memory of a fixed size: cramjam's other calls grow as the frame says.

    Frames of streaming producers do not say how large they get, so a guess comes first. Only
    pages that are written to cost anything in the anonymous map that follows, where a bytearray
    of the limit would be filled with zeros.
    """
    guess = max(_GUESS_RATIO * len(data), _GUESS_BYTES_MIN)
    try:
        return _inflate_within(inflate_into, data, bytearray(min(guess, limit)))
    except cramjam.DecompressionError:
        if guess >= limit:
            raise
    return _inflate_within(inflate_into, data, mmap.mmap(-1, limit))


def _inflate_within(inflate_into: _InflateInto, data: Bytes, out: bytearray | mmap.mmap) -> bytes:
    return bytes(memoryview(out)[: inflate_into(data, out)])


_COMPRESSORS: Final[dict[int, Callable[[Bytes], bytes]]] = {
    GZIP: _compress_gzip,
    SNAPPY: _compress_snappy,
    LZ4: _compress_lz4,
    ZSTD: _compress_zstd,
}

_DECOMPRESSORS: Final[dict[int, Callable[[Bytes, int], bytes]]] = {
    GZIP: _decompress_gzip,
    SNAPPY: _decompress_snappy,
    LZ4: _decompress_lz4,
    ZSTD: _decompress_zstd,
}
