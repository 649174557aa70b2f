"""Decodes the header and body of requests and responses, as far as possible."""

from __future__ import annotations

from struct import Struct, error
from typing import Final, NamedTuple

from trionet.errors import WireFormatError
from trionet.protocol._codec import ApiVersionCodec, Encode
from trionet.protocol._header import decode_request_header, skip_tags
from trionet.protocol._wire import MALFORMED, read_varint, tag_head

from ._decode_progress import decode_progress
from ._message_trees import message_tree, tags_tree
from ._tree import Tree, first_problem
from ._whole import Decode, end_of

_correlation_id: Final = Struct(">i").unpack_from


class Reading(NamedTuple):
    """A decoded request or response.

    Attributes:
        header: the fields of the header.
        body: the fields of the message; None if no field could be decoded.
        problem: the problem; empty if there is none.
        pos: the position of the problem in the bytes.
    """

    header: dict[str, Tree]
    body: dict[str, Tree] | None = None
    problem: str = ""
    pos: int = 0


def read_request(codec: ApiVersionCodec | None, data: bytes) -> Reading:
    """Decode a request, or only the common header fields if there is no codec.

    Raises:
        WireFormatError: the header is malformed.
    """
    _, _, correlation_id, client_id, pos = decode_request_header(data)
    header: dict[str, Tree] = {"correlation_id": correlation_id, "client_id": client_id}
    if codec is None:
        return Reading(header, pos=pos)
    return _read(header, data, pos, codec.request_header_version == 2, codec, is_request=True)


def read_response(codec: ApiVersionCodec, data: bytes) -> Reading:
    """Decode a response."""
    try:
        header: dict[str, Tree] = {"correlation_id": _correlation_id(data)[0]}
    except error:
        return Reading({}, problem="the response header is truncated", pos=len(data))
    return _read(header, data, 4, codec.response_header_version == 1, codec, is_request=False)


def _read(
    header: dict[str, Tree],
    data: bytes,
    pos: int,
    has_tags: bool,
    codec: ApiVersionCodec,
    *,
    is_request: bool,
) -> Reading:
    if has_tags:
        try:
            tags, pos = _read_tags(data, pos)
        except WireFormatError as failure:
            return Reading(header, problem=f"tagged fields of the header: {failure}", pos=pos)
        if tags:
            header["unknown_tags"] = tags_tree(tags)
    if is_request:
        decode, encode = codec.decode_request, codec.encode_request
    else:
        decode, encode = codec.decode_response, codec.encode_response
    return Reading(header, *_read_body(decode, encode, data, pos))


def _read_tags(data: bytes, pos: int) -> tuple[tuple[tuple[int, bytes], ...], int]:
    """Return the tagged fields of a header, which are all unknown, and the position after them."""
    after = skip_tags(data, pos)  # raises if they are malformed or too many
    count, pos = read_varint(data, pos + 1, data[pos])
    tags = []
    tag = -1
    for _ in range(count):
        tag, end, pos = tag_head(data, pos, tag)
        tags.append((tag, data[pos:end]))
        pos = end
    return tuple(tags), after


def _read_body(
    decode: Decode, encode: Encode, data: bytes, pos: int
) -> tuple[dict[str, Tree] | None, str, int]:
    try:
        message = decode(data, pos)
    except (WireFormatError, *MALFORMED) as failure:
        progress = decode_progress(failure)
        body = None if progress.message is None else message_tree(progress.message, None)
        after = f", after {progress.after}" if progress.after else ""
        at = pos if progress.pos is None else min(progress.pos, len(data))
        return body, f"{failure}{after}", at
    body = message_tree(message, encode)
    end = end_of(decode, data, pos)
    if end < len(data):
        return body, f"{len(data) - end} bytes left over after the message", end
    return body, first_problem(body), pos
