"""Detects what raw bytes are: frames, a message without a size prefix, or record batches."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from trionet.errors import WireFormatError
from trionet.protocol._codec import lookup, schema_versions
from trionet.protocol._header import decode_request_header
from trionet.protocol.records._batch import (
    HEADER_SIZE,
    MAGIC,
    PREFIX_SIZE,
    check_crc,
    read_header,
)
from trionet.protocol.records.message_sets._message_set import (
    MAGIC_AT,
    check_message_crc,
    read_message_header,
)

from ..messages._whole import fits_request, fits_response
from ._source import Kind

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
    return 2 if client_id and client_id.isprintable() else 1


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
