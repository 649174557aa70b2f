"""Encoding of requests, without copying the records of a batch, and decoding of responses."""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ...errors import WireFormatError
from ...net.wire._framing import Frame
from ...net.wire._transmission import Send
from ...protocol import api_keys
from ...protocol._header import decode_response_header, encode_request_header, frame
from ...protocol._wire import Chunk
from ._in_flight import InFlightRequest
from ._version_discovery import response_codec


class RecordChunks:
    """The records of a batch in several buffers, to be encoded as one chunk of a request.

    Codecs treat this object as a chunk; :func:`encode_request` replaces it with its buffers.

    Args:
        chunks: the buffers, in order; bytes-like objects.
    """

    __slots__ = ("chunks", "size")

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = chunks
        self.size = sum(map(len, chunks))

    def __len__(self) -> int:
        return self.size


def encode_request(request: InFlightRequest, client_id: str) -> bytes | Send:
    """Encode a request with its size and header: as bytes, or as a Send if in several chunks.

    Raises:
        LocalProtocolError: the body cannot be encoded.
    """
    codec = request.codec
    chunks: list[Chunk] = [encode_request_header(codec, request.correlation_id, client_id)]
    codec.encode_request(request.body, chunks)
    flat: list[Chunk] = []
    for chunk in chunks:
        if isinstance(chunk, RecordChunks):
            flat += chunk.chunks
        else:
            flat.append(chunk)
    framed = frame(flat)
    return cast(bytes, framed[0]) if len(framed) == 1 else Send(cast(Any, framed))


def decode_response(request: InFlightRequest, received: Frame) -> Any:
    """Decode a response's body, in the version of its request.

    Raises:
        WireFormatError: the response is malformed, or its correlation id is not that of the
            request.
    """
    codec = request.codec
    correlation_id, pos = decode_response_header(codec, received)
    if correlation_id != request.correlation_id:
        raise WireFormatError(
            f"received a response to request {correlation_id}, expected {request.correlation_id}"
        )
    if codec.api_key == api_keys.API_VERSIONS:
        codec = response_codec(codec, received, pos)
    return codec.decode_response(received, pos)
