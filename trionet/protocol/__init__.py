"""Kafka's wire format: encoding and decoding without I/O, clocks or trio.

Names are loaded on first use: importing the codecs of one API loads nothing else.
"""

from __future__ import annotations

from .._util._imports import lazy_exports

TYPE_CHECKING = False  # to import it from typing takes longer than all that is loaded here

if TYPE_CHECKING:
    from ._codec import ApiVersionCodec, lookup, schema_versions
    from ._header import (
        decode_request_header,
        decode_response_header,
        encode_request_header,
        encode_response_header,
        frame,
    )

__all__ = [
    "ApiVersionCodec",
    "decode_request_header",
    "decode_response_header",
    "encode_request_header",
    "encode_response_header",
    "frame",
    "lookup",
    "schema_versions",
]

_HOMES = {
    "_codec": "ApiVersionCodec lookup schema_versions",
    "_header": (
        "decode_request_header decode_response_header encode_request_header "
        "encode_response_header frame"
    ),
}

if not TYPE_CHECKING:  # a type checker would take every misspelt name for a loadable one
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
