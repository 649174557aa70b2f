"""How a protocol marks where its frames begin and end: all that a server must be told of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import attrs

from ..net.framing import SIZE_BYTES, Decoder, Frame, FrameDecoder
from ..net.head_decoder import HeadDecoder, ReadHead
from ..net.transmission import Chunk

# A payload up to here is copied behind its head, which takes a microsecond and leaves the Send one
# buffer; a larger one is written from where it is.
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

    For a protocol that tells the size before the payload there is :meth:`length_prefixed`.

    Attributes:
        decoder: makes the decoder of a connection, given the size of the largest frame.
        frame: what to send for an answer: the chunks of one whole frame.
    """

    decoder: Callable[[int], Decoder] = FrameDecoder
    frame: Callable[[Frame], list[Chunk]] = _size_prefixed

    @classmethod
    def length_prefixed(
        cls, read_head: ReadHead, write_head: Callable[[int], bytes], tail: bytes = b""
    ) -> Dialect:
        """A protocol of frames that begin with a head, which tells the size of the payload.

        Args:
            read_head: reads a head: given the bytes at the beginning of a frame, how long the head
                is and how long the payload behind it; None if the head is not whole yet. A
                ValueError closes the connection with INVALID_RECEIVE. So does a size that is
                negative or above ``socket_request_max_bytes``, by itself, and a head that is not
                whole after 1,024 bytes.
            write_head: writes one, given the size of the payload.
            tail: what stands behind every payload; another one closes the connection, too.
        """

        def frame(payload: Frame) -> list[Chunk]:
            return _framed(write_head(len(payload)), payload, tail)

        return cls(partial(HeadDecoder, read_head=read_head, tail=tail), frame)


SIZE_PREFIXED = Dialect()
"""Kafka's: a signed 32-bit big-endian size before each frame."""
