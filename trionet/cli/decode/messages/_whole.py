"""Checks whether bytes are exactly one message of an API version.

Decoders ignore bytes after a message, as brokers do. A message fills its frame if decoding fails
without the last byte, because every field takes at least one byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from trionet.errors import WireFormatError
from trionet.protocol._codec import ApiVersionCodec, lookup
from trionet.protocol._header import decode_request_header, decode_response_header, skip_tags
from trionet.protocol._wire import MALFORMED, Message

Decode: TypeAlias = Callable[[bytes, int], Message]


def decodes(decode: Decode, data: bytes, pos: int) -> bool:
    """Return whether a valid message starts at ``pos``."""
    try:
        decode(data, pos)
    except (WireFormatError, *MALFORMED):
        return False
    return True


def end_of(decode: Decode, data: bytes, pos: int) -> int:
    """Return the end position of the valid message that starts at ``pos``."""
    if not decodes(decode, data[:-1], pos):
        return len(data)
    low, high = pos, len(data) - 1  # invariant: it decodes with ``high`` bytes
    while low < high:
        middle = (low + high) // 2
        if decodes(decode, data[:middle], pos):
            high = middle
        else:
            low = middle + 1
    return high


def fits(decode: Decode, data: bytes, pos: int) -> bool:
    """Return whether a valid message starts at ``pos`` and ends at the end of the bytes."""
    return decodes(decode, data, pos) and end_of(decode, data, pos) == len(data)


def fits_request(data: bytes) -> bool:
    """Return whether the bytes are exactly one request."""
    try:
        key, version, _, _, pos = decode_request_header(data)
        codec = lookup(key, version)
        if codec is None:
            return False
        if codec.request_header_version == 2:
            pos = skip_tags(data, pos)
    except WireFormatError:
        return False
    return fits(codec.decode_request, data, pos)


def fits_response(codec: ApiVersionCodec, data: bytes) -> bool:
    """Return whether the bytes are exactly one response of this API version."""
    try:
        _, pos = decode_response_header(codec, data)
    except WireFormatError:
        return False
    return fits(codec.decode_response, data, pos)
