"""A decoder for frames that start with a head of any form, without I/O.

:class:`~._framing.FrameDecoder` is for Kafka's size prefix of four bytes; this decoder is for other
protocols, such as those with two-byte sizes, netstrings or header lines. A protocol only has to
provide a function that reads a head. The size limit, the handling of incomplete frames, and the
reading of large frames into their own buffers are the same for all protocols.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...errors import InvalidReceiveError, LocalProtocolError
from ._framing import Frame, LargeFrameDecoder, fill_with, invalid_size

# The size of the longest allowed head.
HEAD_BYTES_MAX: Final = 1024

ReadHead = Callable[[bytes], tuple[int, int] | None]
"""Reads the head of a frame. Returns the sizes of the head and of the payload after it, in bytes.

Called with the data of the frame that has arrived: at least one byte, and at most
``HEAD_BYTES_MAX``. Returns None if the head is incomplete. Raises ValueError if the head is
invalid; the text of the error is the reason for closing the connection.
"""


class HeadDecoder(LargeFrameDecoder):
    """A decoder for frames with a head; see :class:`~._framing.Decoder` for the attributes.

    Args:
        frame_bytes_max: the size of the largest allowed payload, in bytes, or
            :data:`~._framing.UNLIMITED`.
        read_head: reads the head of a frame.
        tail: the bytes that must follow every payload.
    """

    def __init__(self, frame_bytes_max: int, read_head: ReadHead, tail: bytes = b"") -> None:
        super().__init__(frame_bytes_max)
        self._read_head = read_head
        self._tail = tail

    @property
    def size(self) -> int:
        """The size of the lease that the frame in progress needs, in bytes: 1 or more."""
        return max(1, self._size - len(self._tail))

    def receive_data(self, data: bytes) -> None:
        """Decode the next bytes of the stream, and add the whole frames in them to ``frames``.

        An invalid head or tail sets :attr:`error`; the data after it is dropped.
        """
        while data and self._payload is not None:
            data = fill_with(data, self.fill)
        data = self._head + data
        position = 0
        while self.error is None and position < len(data):
            found = self._parse_head(data[position : position + HEAD_BYTES_MAX])
            if found is None:
                break
            start = position + found[0]
            end = start + found[1] + len(self._tail)
            if end > len(data):
                self._head = b""
                self._payload = bytearray(data[start:])
                self._size, self._filled = end - start, len(data) - start
                self.is_inside_frame = True
                return
            self._add(data[start:end])
            position = end
        self._head = b"" if self.error is not None else data[position:]
        self.is_inside_frame = bool(self._head) or self._payload is not None

    def _parse_head(self, data: bytes) -> tuple[int, int] | None:
        """Return the sizes of head and payload; None if the head is incomplete or invalid."""
        try:
            found = self._read_head(data)
        except (InvalidReceiveError, ValueError) as error:
            self.error = InvalidReceiveError(str(error))
            return None
        if found is None or found[0] > len(data):
            if len(data) >= HEAD_BYTES_MAX:
                self.error = InvalidReceiveError(
                    f"the head of a frame is incomplete after {len(data)} bytes"
                )
            return None
        head_bytes, size = found
        if size < 0 or size > self.frame_bytes_max:
            self.error = invalid_size(size, self.frame_bytes_max, self.limit_name)
            return None
        if head_bytes < 0 or not head_bytes + size + len(self._tail):
            raise LocalProtocolError(
                f"read_head returned {found}; the size of a head must be 0 or more, and of a whole"
                " frame 1 or more"
            )
        return found

    def _add(self, frame: Frame) -> None:
        """Add the payload of a frame, after removing its tail; the head is already removed."""
        tail = self._tail
        payload_bytes = len(frame) - len(tail)
        if not frame.endswith(tail):
            found = bytes(frame[payload_bytes:])
            self.error = InvalidReceiveError(
                f"a frame of {payload_bytes} bytes ends with {found!r}, not with {tail!r}"
            )
            return
        if isinstance(frame, bytearray):
            del frame[payload_bytes:]
        else:
            frame = frame[:payload_bytes]
        self.frames.append(frame)
