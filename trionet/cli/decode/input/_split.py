"""Splits sources into frames, messages and batches, keeping one in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from trionet.protocol.records._batch import HEADER_SIZE, MAGIC, PREFIX_SIZE
from trionet.protocol.records.message_sets._message_set import MAGIC_AT

from ._recognition import length_min
from ._source import Kind, Source

#: The maximum size of a frame or batch. Larger ones are reported and skipped.
ENTRY_BYTES_MAX: Final = 256 * 1024 * 1024

_SIZE_BYTES: Final = 4
_size: Final = Struct(">i").unpack_from
_batch_size: Final = Struct(">8xi").unpack_from
#: The size of the header common to batches and messages of all formats.
_COMMON_BYTES: Final = MAGIC_AT + 1


class RawEntry(NamedTuple):
    """The bytes of a frame, a message or a batch, possibly incomplete.

    Attributes:
        offset: the position of the entry in the source, including the size prefix.
        start: the position of ``data`` in the source.
        data: the bytes, without a size prefix.
        missing: the number of bytes missing at the end of ``data``.
        problem: why the entry cannot be read; empty if it can be read.
    """

    offset: int
    start: int
    data: bytes
    missing: int = 0
    problem: str = ""


def split(source: Source, kind: Kind) -> Iterator[RawEntry]:
    """Yield the entries of a source in order, up to the first one with an invalid size."""
    if kind is Kind.FRAMES:
        return _frames(source)
    return _batches(source) if kind is Kind.BATCHES else _bare(source)


def _bare(source: Source) -> Iterator[RawEntry]:
    start = source.offset
    data = source.read(ENTRY_BYTES_MAX)
    if source.peek(1):
        yield RawEntry(start, start, data, problem=_too_long("message", source))
    elif data:
        yield RawEntry(start, start, data)


def _too_long(what: str, source: Source) -> str:
    rest = source.skip(1 << 62)
    return f"{what} exceeds {ENTRY_BYTES_MAX} bytes and was skipped ({rest} more bytes)"


def _frames(source: Source) -> Iterator[RawEntry]:
    while prefix := source.peek(_SIZE_BYTES):
        offset = source.offset
        source.read(_SIZE_BYTES)
        if len(prefix) < _SIZE_BYTES:
            yield RawEntry(
                offset, offset, prefix, _SIZE_BYTES - len(prefix), "the size prefix is truncated"
            )
            return
        (size,) = _size(prefix)
        if size < 0:
            problem = f"invalid frame size {size}; cannot continue"
            yield RawEntry(offset, offset, prefix, problem=problem)
            return
        if size > ENTRY_BYTES_MAX:
            yield _skipped(source, offset, "frame", size)
            continue
        data = source.read(size)
        yield RawEntry(offset, offset + _SIZE_BYTES, data, size - len(data))


def _skipped(source: Source, offset: int, what: str, size: int) -> RawEntry:
    passed = source.skip(size)
    problem = f"{what} of {size} bytes skipped: exceeds {ENTRY_BYTES_MAX} bytes"
    return RawEntry(offset, offset, b"", size - passed, problem)


def _batches(source: Source) -> Iterator[RawEntry]:
    while head := source.peek(HEADER_SIZE):
        offset = source.offset
        if not any(head) and _only_zeros(source):
            return
        if len(head) < _COMMON_BYTES:
            data = source.read(len(head))
            yield RawEntry(
                offset, offset, data, _COMMON_BYTES - len(data), "the header is truncated"
            )
            return
        (length,) = _batch_size(head)
        magic = head[MAGIC_AT]
        if magic > MAGIC or length < length_min(magic):
            yield RawEntry(offset, offset, b"", problem=_no_batch(magic, length))
            return
        size = PREFIX_SIZE + length
        if size > ENTRY_BYTES_MAX:
            yield _skipped(source, offset, "batch", size)
            continue
        data = source.read(size)
        yield RawEntry(offset, offset, data, size - len(data))


def _no_batch(magic: int, length: int) -> str:
    what = f"unknown magic {magic}" if magic > MAGIC else f"invalid length {length}"
    return f"no batch starts here: {what}; cannot continue"


def _only_zeros(source: Source) -> bool:
    """Return whether the rest is zeros, as in a segment preallocated beyond its last batch.

    Consumes zeros even if other bytes follow, which is harmless because no batch starts with so
    many zeros.
    """
    while chunk := source.peek(HEADER_SIZE * 1024):
        if any(chunk):
            return False
        source.read(len(chunk))
    return True
