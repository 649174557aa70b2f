"""The four codecs of record batches, and how the wire wants them.

Inflating is bounded everywhere: a few kilobytes of zstd can grow to hundreds of megabytes.

Nothing else than cramjam is used where it happens to be installed: ``zstandard``, which keeps its
state from call to call, would save 3 to 5 microseconds on a small batch, and that is not worth a
second way through this code; the module of Python 3.14 would save nothing.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Callable
from typing import Final, TypeAlias

import cramjam

from trionet.errors import WireFormatError
from trionet.protocol.records.compression._bounded_output import Pieces, too_large
from trionet.protocol.records.compression._lz4_frame import (
    FAST_LEVEL,
    compress_frame,
    decompress_plain_frame,
)
from trionet.protocol.records.compression._snappy_stream import compress_stream, decompress_stream

Bytes: TypeAlias = bytes | bytearray | memoryview

_InflateInto: TypeAlias = Callable[[Bytes, bytearray | mmap.mmap], int]

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

#: Kafka's names, as in ``compression.type``.
NAMES: Final = {NONE: "none", GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}

#: Kafka's defaults of ``compression.gzip.level`` and its like (KIP-390).
DEFAULT_LEVELS: Final = {GZIP: -1, LZ4: FAST_LEVEL, ZSTD: 3}

#: How many bytes may come out for one that goes in, at most, as each format allows it: deflate
#: repeats 258 bytes by two bits, Snappy 64 by three bytes, LZ4 255 by one, and a block of zstd is
#: 128 KB of one byte, said in four.
INFLATION_MAX: Final = {NONE: 1, GZIP: 1032, SNAPPY: 22, LZ4: 255, ZSTD: 32768}

_GZIP_WINDOW: Final = 31
_GZIP_MAGIC: Final = b"\x1f\x8b"

# In so large parts gzip goes in and comes out: zlib holds twice what it is about to return, and
# copies all that is left of a part with each return.
_GZIP_IN_BYTES: Final = 64 * 1024
_GZIP_OUT_BYTES: Final = 256 * 1024

#: The first guess at how large a body gets: twice the usual ratio, and never very small.
_GUESS_RATIO: Final = 8
_GUESS_BYTES_MIN: Final = 16 * 1024

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_SINGLE_SEGMENT: Final = 0x20
_ZSTD_DICTIONARY: Final = 0x03


def compress(codec: int, data: Bytes, level: int | None = None) -> bytes:
    """Compress the records of a batch.

    Args:
        codec: the number in the batch's attributes.
        data: the records.
        level: as in ``compression.gzip.level`` and its like; None for Kafka's default. Snappy has
            no levels.

    Raises:
        ValueError: ``codec`` is no codec, or has no levels.
    """
    if level is None:
        level = DEFAULT_LEVELS.get(codec, 0)
    elif codec not in DEFAULT_LEVELS:
        raise ValueError(f"{NAMES.get(codec, codec)} has no levels; leave the level out")
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
    raise ValueError(f"{codec} is no codec: {NAMES}")


def decompress(codec: int, data: Bytes, limit: int) -> bytes:
    """Decompress the records of a batch.

    Args:
        codec: the number in the batch's attributes.
        data: the body of the batch.
        limit: the most bytes that may come out.

    Raises:
        WireFormatError: the codec is unknown, the data are not in its format, or they would grow
            beyond ``limit``.

    Memory: what is refused took ``limit`` bytes at most, and of zstd as much again for its window,
    which a frame may want as large as what is in it. What is returned may have been there twice, in
    pieces. A megabyte more is possible in any case. The error keeps nothing of it.
    """
    if codec == NONE:
        if len(data) > limit:
            raise too_large(limit)
        return bytes(data)
    inflate = _DECOMPRESSORS.get(codec)
    if inflate is None:
        raise WireFormatError(f"compression codec {codec} is unknown")
    try:
        return inflate(data, limit)
    except WireFormatError as error:
        # The frames of its traceback would keep what came out so far.
        raise error.with_traceback(None) from error.__cause__
    except (cramjam.DecompressionError, zlib.error, struct.error) as error:
        raise WireFormatError(
            f"records are not valid {NAMES[codec]}, or grow beyond {limit} bytes: {error}"
        ) from error.with_traceback(None)


def _decompress_gzip(data: Bytes, limit: int) -> bytes:
    """Java and aiokafka read several members, as RFC 1952 has it; librdkafka reads the first."""
    pieces = Pieces(limit)
    view = memoryview(data)
    pos = 0
    while True:
        pos = _inflate_member(view, pos, pieces)
        if pos == len(view):
            return pieces.joined()
        if bytes(view[pos : pos + 2]) != _GZIP_MAGIC:
            raise WireFormatError("gzip records go on behind their end")


def _inflate_member(view: memoryview, pos: int, pieces: Pieces) -> int:
    """Inflate the member of gzip that begins at ``pos``; where it ends."""
    stream = zlib.decompressobj(_GZIP_WINDOW)
    while True:
        data = stream.unconsumed_tail or view[pos : pos + _GZIP_IN_BYTES]
        if not stream.unconsumed_tail:
            pos += len(data)
        piece = stream.decompress(data, min(pieces.left + 1, _GZIP_OUT_BYTES))
        pieces.add(piece)
        if stream.eof:
            return pos - len(stream.unused_data)
        if not data and not piece:
            raise WireFormatError("gzip records end too early")


def _decompress_lz4(data: Bytes, limit: int) -> bytes:
    out = decompress_plain_frame(data, limit)
    if out is None:
        guess = max(_GUESS_RATIO * len(data), _GUESS_BYTES_MIN)
        return _inflate_frames(cramjam.lz4.decompress_into, data, guess, limit)
    return out


def _decompress_zstd(data: Bytes, limit: int) -> bytes:
    size = _zstd_size(data)
    if size is None:
        size = max(_GUESS_RATIO * len(data), _GUESS_BYTES_MIN)
    elif size > limit:
        raise too_large(limit)
    return _inflate_frames(cramjam.zstd.decompress_into, data, size, limit)


def _zstd_size(data: Bytes) -> int | None:
    """How large a frame says that it gets; streams, which are most of them, do not say it."""
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


def _inflate_frames(inflate_into: _InflateInto, data: Bytes, guess: int, limit: int) -> bytes:
    """Inflate into memory of a fixed size: cramjam's other calls grow as the frame says.

    Several frames are read as one: lz4 and zstd say so, and Java's zstd does it. If they are more
    than was guessed, only pages that are written to cost anything in the anonymous map that
    follows, where a bytearray of the limit would be filled with zeros.
    """
    try:
        return _inflate_within(inflate_into, data, bytearray(min(guess, limit)))
    except cramjam.DecompressionError:
        if guess >= limit:
            raise
    return _inflate_within(inflate_into, data, mmap.mmap(-1, limit))


def _inflate_within(inflate_into: _InflateInto, data: Bytes, out: bytearray | mmap.mmap) -> bytes:
    return bytes(memoryview(out)[: inflate_into(data, out)])


_DECOMPRESSORS: Final[dict[int, Callable[[Bytes, int], bytes]]] = {
    GZIP: _decompress_gzip,
    SNAPPY: decompress_stream,
    LZ4: _decompress_lz4,
    ZSTD: _decompress_zstd,
}
