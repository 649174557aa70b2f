"""What `trionet decode` is fed with in tests, and what it makes of it, without a process."""

from __future__ import annotations

import json
import struct
from typing import Any

from trionet.cli.decode._conversation import Expected, entries
from trionet.cli.decode._output import document, entry_lines
from trionet.cli.decode._sources import Kind, source_of
from trionet.cli.decode._split import recognise
from trionet.protocol._codec import ApiVersionCodec, lookup
from trionet.protocol._header import encode_request_header, encode_response_header
from trionet.protocol._wire import Chunk, Message

Documents = list[dict[str, Any]]


def codec_of(key: int, version: int) -> ApiVersionCodec:
    codec = lookup(key, version)
    assert codec is not None
    return codec


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def request(
    message: Message, key: int, version: int, correlation_id: int = 1, client_id: str | None = "c"
) -> bytes:
    """A request without its size."""
    codec = codec_of(key, version)
    chunks: list[Chunk] = [encode_request_header(codec, correlation_id, client_id)]
    codec.encode_request(message, chunks)
    return b"".join(chunks)  # type: ignore[arg-type]  # nothing here is a range of a file


def response(message: Message, key: int, version: int, correlation_id: int = 1) -> bytes:
    """A response without its size."""
    codec = codec_of(key, version)
    chunks: list[Chunk] = [encode_response_header(codec, correlation_id)]
    codec.encode_response(message, chunks)
    return b"".join(chunks)  # type: ignore[arg-type]  # as above


def decoded(
    data: bytes,
    *,
    expected: Expected | None = None,
    kind: Kind | None = None,
    bytes_shown: int | None = None,
) -> Documents:
    """The documents of raw bytes; their lines are made, too, and fit for a terminal."""
    source = source_of("test", data, "raw")
    found = kind or recognise(source.peek, expected and expected.api_key)
    documents = []
    for entry in entries([(source, found)], expected):
        for line in entry_lines(entry, bytes_shown):
            assert "".join(part.text for part in line).isprintable()
        documents.append(json.loads(json.dumps(document(entry, bytes_shown))))
    return documents


def only(documents: Documents) -> dict[str, Any]:
    [document] = documents
    return document
