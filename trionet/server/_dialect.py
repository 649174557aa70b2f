"""The framing of a protocol: all that a server needs to know about the protocol."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import attrs

from ..net.wire._framing import SIZE_BYTES, Decoder, Frame, FrameDecoder
from ..net.wire._head_decoder import HeadDecoder, ReadHead
from ..net.wire._transmission import Chunk

# A payload up to this size is copied after its head, which takes 1 µs, so that the frame is one
# buffer. A larger payload is written without copying it.
JOINED_BYTES_MAX: Final = 16 * 1024


def _framed(head: bytes, payload: Frame, tail: bytes = b"") -> list[Chunk]:
    if len(payload) <= JOINED_BYTES_MAX:
        return [b"".join((head, payload, tail))]
    return [head, payload, tail] if tail else [head, payload]


def _size_prefixed(payload: Frame) -> list[Chunk]:
    return _framed(len(payload).to_bytes(SIZE_BYTES, "big"), payload)


@attrs.frozen
class Dialect:
    """The framing of a request/response protocol.

    For a protocol that sends the size before each payload, use :meth:`length_prefixed`.

    Attributes:
        decoder: creates the decoder for a connection from the maximum frame size in bytes.
        frame: returns the chunks of the frame for the payload of a response.
    """

    decoder: Callable[[int], Decoder] = FrameDecoder
    frame: Callable[[Frame], list[Chunk]] = _size_prefixed

    @classmethod
    def length_prefixed(
        cls, read_head: ReadHead, write_head: Callable[[int], bytes], tail: bytes = b""
    ) -> Dialect:
        """Create the dialect for frames that start with a head containing the payload size.

        Args:
            read_head: reads a head. Called with the data at the beginning of a frame; returns the
                size of the head and the size of the payload after it, or None if the head is
                incomplete. If it raises ValueError, the connection is closed with INVALID_RECEIVE.
                The same applies to a size that is negative or above ``socket_request_max_bytes``,
                and to a head that is incomplete after 1,024 bytes.
            write_head: returns the head for a payload of the given size.
            tail: the bytes that must follow every payload; other bytes also close the connection.
        """

        def frame(payload: Frame) -> list[Chunk]:
            return _framed(write_head(len(payload)), payload, tail)

        return cls(partial(HeadDecoder, read_head=read_head, tail=tail), frame)


SIZE_PREFIXED = Dialect()
"""Kafka's framing: a signed 32-bit big-endian size before each payload."""
