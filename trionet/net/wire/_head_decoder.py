"""Bytes to frames whose size is told by a head of any form, without I/O.

What :class:`~._framing.FrameDecoder` is for Kafka's four bytes, this is for other protocols: sizes
of two bytes, netstrings, header lines. All that a protocol has to add is one function that reads a
head. Limits, frames that arrive in pieces, and large ones that are read into place are cared for
here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from ...errors import InvalidReceiveError, LocalProtocolError
from ._framing import NO_SETTING, Frame, enlarge, fill_with, invalid_size, size_limit

# The longest head that is waited for.
HEAD_BYTES_MAX: Final = 1024

ReadHead = Callable[[bytes], tuple[int, int] | None]
"""Reads the head of a frame: how long it is, and how long the payload behind it, in bytes.

It is given what has arrived of the frame, one byte to ``HEAD_BYTES_MAX`` of them. ``None`` says
that the head is not whole yet; a ``ValueError`` says what is wrong with it, and ends the stream.
"""


class HeadDecoder:
    """Cuts a byte stream into frames; see :class:`~._framing.Decoder` for the attributes.

    Args:
        frame_bytes_max: largest payload that is accepted, in bytes, or
            :data:`~._framing.UNLIMITED`.
        read_head: reads the head of a frame.
        tail: what stands behind every payload.

    Attributes:
        limit_name: the owner's setting that ``frame_bytes_max`` is from, for the error.
    """

    __slots__ = (
        "_body",
        "_body_bytes",
        "_filled",
        "_read_head",
        "_rest",
        "_tail",
        "error",
        "frame_bytes_max",
        "frames",
        "is_inside_frame",
        "limit_name",
    )

    def __init__(self, frame_bytes_max: int, read_head: ReadHead, tail: bytes = b"") -> None:
        self.frame_bytes_max: int = size_limit(frame_bytes_max)
        self.frames: deque[Frame] = deque()
        self.error: InvalidReceiveError | None = None
        self.is_inside_frame: bool = False
        self.limit_name: str = NO_SETTING
        self._read_head = read_head
        self._tail = tail
        self._rest = b""  # the beginning of a frame whose head is not whole
        self._body: bytearray | None = None  # payload and tail behind a whole head
        self._body_bytes = 0
        self._filled = 0

    @property
    def wants_fill(self) -> bool:
        """Whether the payload of a frame is in progress, to be continued by :meth:`fill`."""
        return self._body is not None

    @property
    def size(self) -> int:
        """What the frame in progress takes of the memory for requests, in bytes: 1 or more."""
        return max(1, self._body_bytes - len(self._tail))

    def fill(self, read_into: Callable[[memoryview], int]) -> int:
        """Read once, straight into the frame in progress.

        Args:
            read_into: fills the start of a buffer and returns the count of bytes; 0 at the end of
                the stream.

        Returns:
            What ``read_into`` returned.

        Raises:
            LocalProtocolError: no frame is in progress.
        """
        body = self._body
        if body is None:
            raise LocalProtocolError("this Receive is complete; it takes no more bytes")
        if self._filled == len(body):
            enlarge(body, self._body_bytes)
        with memoryview(body) as whole, whole[self._filled :] as rest:
            count = read_into(rest)
        self._filled += count
        if self._filled == self._body_bytes:
            self._body = None
            self.is_inside_frame = False
            self._finish(body)
        return count

    def receive_data(self, data: bytes) -> None:
        """Take the next bytes of the stream; whole frames in them are added to ``frames``.

        What is not of the protocol sets :attr:`error`; what follows it is dropped.
        """
        while data and self._body is not None:
            data = fill_with(data, self.fill)
        data = self._rest + data
        position = 0
        while self.error is None and position < len(data):
            found = self._parse_head(data[position : position + HEAD_BYTES_MAX])
            if found is None:
                break
            start = position + found[0]
            end = start + found[1] + len(self._tail)
            if end > len(data):
                self._rest = b""
                self._body = bytearray(data[start:])
                self._body_bytes, self._filled = end - start, len(data) - start
                self.is_inside_frame = True
                return
            self._finish(data[start:end])
            position = end
        self._rest = b"" if self.error is not None else data[position:]
        self.is_inside_frame = bool(self._rest) or self._body is not None

    def _parse_head(self, data: bytes) -> tuple[int, int] | None:
        """The head's and the payload's size; None if it is not whole, or not allowed: an error."""
        try:
            found = self._read_head(data)
        except (InvalidReceiveError, ValueError) as error:
            self.error = InvalidReceiveError(str(error))
            return None
        if found is None or found[0] > len(data):
            if len(data) >= HEAD_BYTES_MAX:
                self.error = InvalidReceiveError(f"no frame begins with these {len(data)} bytes")
            return None
        head_bytes, size = found
        if size < 0 or size > self.frame_bytes_max:
            self.error = invalid_size(size, self.frame_bytes_max, self.limit_name)
            return None
        if head_bytes < 0 or not head_bytes + size + len(self._tail):
            raise LocalProtocolError(f"a head of {head_bytes} bytes, in a frame without any")
        return found

    def _finish(self, body: Frame) -> None:
        tail = self._tail
        payload_bytes = len(body) - len(tail)
        if not body.endswith(tail):
            found = bytes(body[payload_bytes:])
            self.error = InvalidReceiveError(
                f"a frame of {payload_bytes} bytes ends with {found!r}, not with {tail!r}"
            )
        elif not tail:
            self.frames.append(body)
        elif isinstance(body, bytearray):
            del body[payload_bytes:]
            self.frames.append(body)
        else:
            self.frames.append(body[:payload_bytes])
