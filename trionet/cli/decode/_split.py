"""Detects what a source contains, and splits it into frames, messages or batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from trionet.errors import WireFormatError
from trionet.protocol._codec import lookup, schema_versions
from trionet.protocol._header import decode_request_header
from trionet.protocol.records._batch import HEADER_SIZE, MAGIC, PREFIX_SIZE, check_crc, read_header
from trionet.protocol.records.message_sets._message_set import (
    MAGIC_AT,
    check_message_crc,
    read_message_header,
)

from ._messages import fits_request, fits_response
from ._sources import Kind, Source

#: The maximum number of bytes examined.
EXAMINED_BYTES: Final = 1024 * 1024

#: The minimum size of a request: the API key, the version, the correlation id and the client id.
_REQUEST_BYTES_MIN: Final = 10
#: The minimum size of a response, which is the size of a correlation id.
_RESPONSE_BYTES_MIN: Final = 4

#: The first base offset whose upper four bytes could be the size of a frame.
_BASE_OFFSET_MAX: Final = _RESPONSE_BYTES_MIN << 32
#: The minimum length of a message in a message set: CRC, magic, attributes and two lengths.
_MESSAGE_BYTES_MIN: Final = 14

_size: Final = Struct(">i").unpack_from
_prefix: Final = Struct(">qi").unpack_from


def recognise(peek: Callable[[int], bytes], response: int | None) -> Kind:
    """Detect the format of the input from the bytes that ``peek(count)`` returns.

    Peeks at no more bytes than necessary, so that a pipe is decoded as it fills.

    Args:
        peek: returns the first ``count`` bytes, or fewer at the end of the input.
        response: the API key if the bytes are known to be responses.
    """
    head = peek(4)
    if len(head) == 4:
        (size,) = _size(head)
        if _REQUEST_BYTES_MIN <= size <= EXAMINED_BYTES:
            first = peek(4 + size)
            if len(first) == 4 + size and _request_likeness(first, 4) == 2:
                return Kind.FRAMES
    return _of_head(peek(EXAMINED_BYTES), response)


def _of_head(head: bytes, response: int | None) -> Kind:
    if response is None and _starts_with_whole_batch(head):
        return Kind.BATCHES
    if len(head) < EXAMINED_BYTES and _is_message(head, response):
        return Kind.BARE
    if response is None and _starts_batch(head):
        return Kind.BATCHES
    size = _size(head)[0] if len(head) >= 4 else 0
    framed, bare = _request_likeness(head, 4), _request_likeness(head, 0)
    if size >= _RESPONSE_BYTES_MIN and (4 + size <= len(head) or framed >= max(bare, 1)):
        return Kind.FRAMES
    if len(head) < EXAMINED_BYTES and (response is not None or bare):
        return Kind.BARE
    return Kind.FRAMES


def _is_message(data: bytes, response: int | None) -> bool:
    if response is None:
        return fits_request(data)
    versions = schema_versions(response)
    return any(
        codec is not None and fits_response(codec, data)
        for codec in (lookup(response, version) for version in versions)
    )


def _request_likeness(data: bytes, pos: int) -> int:
    """Return 2 for a request with a client id, 1 for a request without one, and 0 otherwise."""
    try:
        key, version, _, client_id, _ = decode_request_header(data, pos)
    except WireFormatError:
        return 0
    if version not in schema_versions(key):
        return 0
    return 2 if is_usual(client_id) else 1


def is_usual(client_id: str | None) -> bool:
    """Return whether a client id is printable text, which it hardly is in a frame of another kind.

    U+FFFD takes the place of what is not valid UTF-8.
    """
    if not client_id:
        return False
    return client_id.isprintable() and "\ufffd" not in client_id


def length_min(magic: int) -> int:
    """Return the minimum value of the length field of a batch or message with this magic."""
    return HEADER_SIZE - PREFIX_SIZE if magic == MAGIC else _MESSAGE_BYTES_MIN


def _starts_batch(head: bytes) -> bool:
    if len(head) <= MAGIC_AT:
        return False
    base_offset, length = _prefix(head)
    magic = head[MAGIC_AT]
    return magic <= MAGIC and length >= length_min(magic) and 0 <= base_offset < _BASE_OFFSET_MAX


def _starts_with_whole_batch(head: bytes) -> bool:
    """Return whether the bytes start with a complete batch that has a valid checksum."""
    if len(head) <= MAGIC_AT:
        return False
    try:
        if head[MAGIC_AT] < MAGIC:
            return check_message_crc(head, 0, read_message_header(head))
        header = read_header(head)
    except WireFormatError:
        return False
    return header.magic == MAGIC and check_crc(head, 0, header)


#: The maximum size of a frame or batch. Larger ones are reported and skipped.
ENTRY_BYTES_MAX: Final = 256 * 1024 * 1024

_SIZE_BYTES: Final = 4
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
