"""Jafka's framing: Kafka's size prefix, whose size must be 1 or more.

Requests to produce have no response, so that those that arrive together need no turn of the server
each: they are handed out as one frame, :class:`Produced`. A client sees no difference.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import Final

from ..errors import InvalidReceiveError
from ..net.wire._framing import SIZE_BYTES, Frame, FrameDecoder, fill_with, invalid_size
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


class JafkaDecoder:
    """Splits a stream into frames; see :class:`~trionet.net.Decoder` for what is not here.

    Args:
        frame_bytes_max: the size of the largest frame, in bytes.
    """

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max: int = frame_bytes_max
        self.frames: deque[Frame] = deque()
        self.error: InvalidReceiveError | None = None
        self._head = b""  # the start of a small frame
        # Reads nothing but large frames. It is no base class: its own is compiled.
        self._large = FrameDecoder(frame_bytes_max)

    @property
    def is_inside_frame(self) -> bool:
        return bool(self._head) or self._large.is_inside_frame

    @property
    def wants_fill(self) -> bool:
        """Also within a small frame: a client that sends many of them has sent more by then."""
        return self._large.wants_fill or (bool(self._head) and not self.frames)

    @property
    def size(self) -> int:
        return self._large.size if self._large.wants_fill else _READ_BYTES

    def fill(self, read_into: Callable[[memoryview], int]) -> int:
        """Read once, into the large frame in progress if there is one.

        Returns:
            What ``read_into`` returned.
        """
        if self._large.wants_fill:
            count = self._large.fill(read_into)
            self.frames += self._large.frames
            self._large.frames.clear()
            return count
        buffer = memoryview(bytearray(_READ_BYTES))
        count = read_into(buffer)
        self.receive_data(bytes(buffer[:count]))
        return count

    def receive_data(self, data: bytes) -> None:
        """Decode the next bytes of the stream; see :class:`~trionet.net.Decoder`."""
        while data and self._large.wants_fill:
            data = fill_with(data, self.fill)
        if self._head:
            data = self._head + data
        position = 0
        size: int = 0
        produced = 0  # where the requests to produce begin that nothing separates from `position`
        while self.error is None and len(data) - position >= SIZE_BYTES:
            (size,) = _unpack_size(data, position)
            start = position + SIZE_BYTES
            if not 0 < size <= self.frame_bytes_max:
                self.error = _invalid(size, self.frame_bytes_max)
            elif start + size > len(data):
                break
            elif data.startswith(_PRODUCER_TYPE, start):
                position = start + size
            else:
                self._add_produced(data[produced:position])
                self.frames.append(data[start : start + size])
                position = produced = start + size
        self._add_produced(data[produced:position])
        self._head = b"" if self.error is not None else data[position:]
        if len(self._head) >= SIZE_BYTES and size > _LARGE_BYTES:
            self._large.receive_data(self._head)
            self._head = b""

    def _add_produced(self, data: bytes) -> None:
        if data:
            self.frames.append(Produced(data))


def _invalid(size: int, frame_bytes_max: int) -> InvalidReceiveError:
    if size == 0:
        return InvalidReceiveError("frame size 0 is not allowed; allowed: 1 or more")
    return invalid_size(size, frame_bytes_max, _LIMIT)


JAFKA_FRAMES: Final = Dialect(JafkaDecoder)
