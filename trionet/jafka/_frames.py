"""Jafka's framing: Kafka's size prefix, whose size must be 1 or more.

Requests to produce have no response, so those that arrive together do not each need a turn of the
server: they are handed out as one frame, :class:`Produced`. A client sees no difference.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from ..errors import InvalidReceiveError
from ..net.wire._framing import SIZE_BYTES, FrameDecoder, fill_with
from ..server._dialect import Dialect
from ._requests import Produced

_unpack_size: Final = Struct(">i").unpack_from
#: The type of ProducerRequest, as the first bytes of a frame.
_PRODUCER_TYPE: Final = b"\0\0"
#: What is read at once where many small frames come in.
_READ_BYTES: Final = 64 * 1024
#: A larger frame that has not arrived completely gets a buffer of its own, which is read into.
_LARGE_BYTES: Final = _READ_BYTES
_LIMIT: Final = "max.socket.request.bytes"


class JafkaDecoder(FrameDecoder):
    """A decoder for Jafka's frames; see :class:`~trionet.net.Decoder` for what is not here.

    Args:
        frame_bytes_max: the size of the largest allowed frame, in bytes.
    """

    @property
    def wants_fill(self) -> bool:
        """Also true within a small frame: a client that sends many has sent more by now.

        Not after whole frames: those must be handled first, and an end of stream that is noticed
        here would overtake them.
        """
        return self.is_inside_frame and not self.frames

    @property
    def size(self) -> int:
        return self._size if self._payload is not None else _READ_BYTES

    def fill(self, read_into: Callable[[memoryview], int]) -> int:
        """Read once, into the large frame in progress if there is one.

        Returns:
            What ``read_into`` returned.
        """
        if self._payload is not None:
            return super().fill(read_into)
        buffer = memoryview(bytearray(_READ_BYTES))
        count = read_into(buffer)
        self.receive_data(bytes(buffer[:count]))
        return count

    def receive_data(self, data: bytes) -> None:
        """Decode the next bytes of the stream; see :class:`~trionet.net.Decoder`."""
        while data and self._payload is not None:
            data = fill_with(data, self.fill)
        if self.error is not None:
            return
        if self._head:
            data, self._head = self._head + data, b""
        position = 0
        size: int = 0
        produced = 0  # start of the unbroken run of requests to produce that ends at `position`
        while len(data) - position >= SIZE_BYTES:
            (size,) = _unpack_size(data, position)
            start = position + SIZE_BYTES
            if not 0 < size <= self.frame_bytes_max or start + size > len(data):
                break
            position = start + size
            if not data.startswith(_PRODUCER_TYPE, start):
                self._add_produced(data[produced : start - SIZE_BYTES])
                self.frames.append(data[start:position])
                produced = position
        self._add_produced(data[produced:position])
        rest = data[position:]
        if len(rest) < SIZE_BYTES or 0 < size <= min(_LARGE_BYTES, self.frame_bytes_max):
            self._head = rest
        elif size == 0:
            self.error = InvalidReceiveError("frame size 0 is not allowed; allowed: 1 or more")
        else:
            self.limit_name = _LIMIT  # the channel has set the name of Kafka's setting
            super().receive_data(rest)
            return
        self.is_inside_frame = bool(self._head) or self._payload is not None

    def _add_produced(self, data: bytes) -> None:
        if data:
            self.frames.append(Produced(data))


JAFKA_FRAMES: Final = Dialect(JafkaDecoder)
