"""How a protocol marks where its frames begin and end: all that a server must be told of it."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ..net.framing import SIZE_BYTES, Decoder, FrameDecoder
from ..net.transmission import Chunk


def _size_prefixed(payload: bytes) -> list[Chunk]:
    return [len(payload).to_bytes(SIZE_BYTES, "big") + payload]


@attrs.frozen
class Dialect:
    """The framing of a request/response protocol.

    Attributes:
        decoder: makes the decoder of a connection, given the size of the largest frame.
        frame: what to send for an answer: the chunks of one whole frame.
    """

    decoder: Callable[[int], Decoder] = FrameDecoder
    frame: Callable[[bytes], list[Chunk]] = _size_prefixed


SIZE_PREFIXED = Dialect()
"""Kafka's: a signed 32-bit big-endian size before each frame."""
