"""Jafka's framing: Kafka's size prefix, whose size must be 1 or more.

Requests to produce have no response, so that those that arrive together need no turn of the server
each: they are handed out as one frame, :class:`Produced`. A client sees no difference.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from ..errors import InvalidReceiveError
from ..net.wire._framing import SIZE_BYTES, LargeFrameDecoder, fill_with, invalid_size
from ..server._dialect import Dialect
from ._requests import Produced

_unpack_size: Final = Struct(">i").unpack_from
#: The type of ProducerRequest, as the first bytes of a frame.
_PRODUCER_TYPE: Final = b"\0\0"
#: A frame of which more is missing gets a buffer of its own, which is read into.
_LARGE_BYTES: Final = 4096
#: What is read at once where many small frames come in.
_READ_BYTES: Final = 64 * 1024
_LIMIT: Final = "max.socket.request.bytes"


class JafkaDecoder(LargeFrameDecoder):
    """Splits a stream into frames; see :class:`~trionet.net.Decoder` for the attributes.

    Args:
        frame_bytes_max: the size of the largest frame, in bytes.
    """

    @property
    def wants_fill(self) -> bool:
        """Also within a small frame: a client that sends many of them has sent more by then."""
        return self._payload is not None or (self.is_inside_frame and not self.frames)

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
        if self._head:
            data = self._head + data
        position = size = 0
        produced = 0  # where the requests to produce begin that nothing separates from `position`
        while self.error is None and len(data) - position >= SIZE_BYTES:
            (size,) = _unpack_size(data, position)
            start = position + SIZE_BYTES
            if not 0 < size <= self.frame_bytes_max:
                self.error = _invalid(size, self.frame_bytes_max)
            elif start + size > len(data):
                break
            elif data[start : start + 2] == _PRODUCER_TYPE:
                position = start + size
            else:
                self._add_produced(data[produced:position])
                self.frames.append(data[start : start + size])
                position = produced = start + size
        self._add_produced(data[produced:position])
        self._head = b"" if self.error is not None else data[position:]
        if len(self._head) >= SIZE_BYTES and size > _LARGE_BYTES:
            self._payload = bytearray(memoryview(self._head)[SIZE_BYTES:])
            self._size, self._filled = size, len(self._payload)
            self._head = b""
        self.is_inside_frame = bool(self._head) or self._payload is not None

    def _add_produced(self, data: bytes) -> None:
        if data:
            self.frames.append(Produced(data))


def _invalid(size: int, frame_bytes_max: int) -> InvalidReceiveError:
    if size == 0:
        return InvalidReceiveError("frame size 0 is not allowed; allowed: 1 or more")
    return invalid_size(size, frame_bytes_max, _LIMIT)


JAFKA_FRAMES: Final = Dialect(JafkaDecoder)
