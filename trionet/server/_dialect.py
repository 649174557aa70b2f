"""The framing of a protocol, which is all that a server needs to know about it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import attrs

from ..net.wire._framing import SIZE_BYTES, Decoder, Frame, FrameDecoder
from ..net.wire._head_decoder import HeadDecoder, ReadHead
from ..net.wire._transmission import Chunk

# A payload up to this size is joined with its head, which takes a microsecond and gives the Send a
# single buffer; a larger payload is written without copying it.
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

    For protocols that send the size before the payload use :meth:`length_prefixed`.

    Attributes:
        decoder: creates the decoder of a connection, given the size of the largest frame.
        frame: turns the payload of a response into the chunks of one whole frame.
    """

    decoder: Callable[[int], Decoder] = FrameDecoder
    frame: Callable[[Frame], list[Chunk]] = _size_prefixed

    @classmethod
    def length_prefixed(
        cls, read_head: ReadHead, write_head: Callable[[int], bytes], tail: bytes = b""
    ) -> Dialect:
        """Create the dialect of a protocol whose frames start with a head that has their size.

        Args:
            read_head: reads a head. Called with the bytes at the beginning of a frame; returns the
                size of the head and the size of the payload after it, or None if the head is
                incomplete. A ValueError closes the connection with INVALID_RECEIVE. So do a size
                that is negative or above ``socket_request_max_bytes``, and a head that is
                incomplete after 1,024 bytes.
            write_head: returns the head for a payload of the given size.
            tail: bytes that must follow every payload; any others close the connection, too.
        """

        def frame(payload: Frame) -> list[Chunk]:
            return _framed(write_head(len(payload)), payload, tail)

        return cls(partial(HeadDecoder, read_head=read_head, tail=tail), frame)


SIZE_PREFIXED = Dialect()
"""Kafka's framing: a signed 32-bit big-endian size before each frame."""
