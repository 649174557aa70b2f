"""Splits a byte stream into frames, without I/O: feed it data and take the whole frames.

A size is checked as soon as its four bytes are known (Kafka: NetworkReceive): negative or above
the limit ends the stream, zero is legal. Frames that were complete before the bad size are still
returned; only then is the error raised, as it would be had they arrived one by one.

Small frames become ``bytes`` sliced from the data. A frame larger than the data that has arrived
gets its own buffer, and :meth:`FrameDecoder.fill` reads the rest of it straight from the socket
into place, so that record bytes are never copied again in Python.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple, Protocol

from ...errors import InvalidReceiveError, LocalProtocolError

SIZE_BYTES: Final = 4

#: As the limit of a frame: none but that of its four bytes (Kafka: NetworkReceive.UNLIMITED).
UNLIMITED: Final = -1
_SIZE_MAX: Final = 2**31 - 1

#: The name of a frame's limit in errors, unless its owner names a setting.
NO_SETTING: Final = "frame_bytes_max"


def size_limit(frame_bytes_max: int) -> int:
    """The largest size that a limit allows, where that may be :data:`UNLIMITED`."""
    return _SIZE_MAX if frame_bytes_max == UNLIMITED else frame_bytes_max


class LimitNames(NamedTuple):
    """The names of the settings that limit a channel's frames, for errors.

    Attributes:
        frame: that of a frame.
        authentication: that of a frame before the peer is authenticated.
    """

    frame: str = NO_SETTING
    authentication: str = NO_SETTING


#: The hint for an invalid size that is the start of a TLS record.
LOOKS_LIKE_TLS: Final = "it looks like TLS"
#: The start of a TLS record: an alert or a handshake, and the major version, which is always 3.
_TLS_RECORDS: Final = (0x15, 0x16)
_TLS_MAJOR_VERSION: Final = 3

_unpack_size: Final = Struct(">i").unpack_from

Frame = bytes | bytearray

# The buffer of a large frame grows when it is full: to four times what has arrived, so that
# announcing 100 MB without sending them costs next to nothing; and by no more than this, because to
# make room for 100 MB at once would hold the loop for 60 ms.
BUFFER_STEP_BYTES = 1024 * 1024 + 64 * 1024
BUFFER_STEP_BYTES_MIN = 16 * 1024
_ZEROS = bytes(BUFFER_STEP_BYTES)


class Decoder(Protocol):
    """Splits the byte stream of a channel into frames, for any protocol.

    Attributes:
        frames: whole frames, to be taken from the left.
        error: set when the stream is not valid; nothing is decoded after it.
        is_inside_frame: whether the stream would end in mid-frame if it ended now.
        frame_bytes_max: largest frame that is accepted; may change between two frames.
        wants_fill: a frame is in progress that the socket is to be read into, by ``fill``; False
            for a decoder that takes everything by ``receive_data``.
        size: of the frame that is to be filled, in bytes.
    """

    frame_bytes_max: int

    @property
    def frames(self) -> deque[Frame]: ...

    @property
    def error(self) -> InvalidReceiveError | None: ...

    @property
    def is_inside_frame(self) -> bool: ...

    @property
    def wants_fill(self) -> bool: ...

    @property
    def size(self) -> int: ...

    def receive_data(self, data: bytes) -> None:
        """Take the next bytes of the stream; add whole frames to ``frames``, or set ``error``."""
        ...

    def fill(self, read_into: Callable[[memoryview], int]) -> int:
        """Read once, straight into the frame in progress; what ``read_into`` returned."""
        ...


class FrameDecoder:
    """Splits a byte stream at Kafka's size prefixes.

    Args:
        frame_bytes_max: largest payload that is accepted, in bytes, or :data:`UNLIMITED`.
        limit_name: the owner's setting that ``frame_bytes_max`` is from, for the error.

    Attributes:
        frames: whole frames, to be taken from the left.
        error: set when a size is not allowed; nothing is decoded after it.
        oversized_bytes: the size of the frame that was larger than ``frame_bytes_max``; 0 without
            one, and where the size looks like the text or the TLS of another protocol.
        is_inside_frame: whether the stream would end in mid-frame if it ended now.
        limit_name: as above; changes with ``frame_bytes_max``.
    """

    def __init__(self, frame_bytes_max: int, limit_name: str = NO_SETTING) -> None:
        self.frame_bytes_max: int = size_limit(frame_bytes_max)
        self.frames: deque[Frame] = deque()
        self.error: InvalidReceiveError | None = None
        self.is_inside_frame: bool = False
        self.limit_name: str = limit_name
        self.oversized_bytes: int = 0
        self._head = b""  # fewer than the four bytes of a size
        self._payload: bytearray | None = None
        self._size = 0
        self._filled = 0

    @property
    def wants_fill(self) -> bool:
        """Whether a large frame is in progress, to be continued by :meth:`fill`."""
        return self._payload is not None

    @property
    def size(self) -> int:
        """The size of the large frame that is in progress, in bytes."""
        return self._size

    def fill(self, read_into: Callable[[memoryview], int]) -> int:
        """Read once, straight into the frame in progress.

        Args:
            read_into: fills the start of a buffer and returns the count of bytes; 0 at the end of
                the stream.

        Returns:
            What ``read_into`` returned.

        Raises:
            LocalProtocolError: no large frame is in progress.
        """
        payload = self._payload
        if payload is None:
            raise LocalProtocolError("this Receive is complete; it takes no more bytes")
        if self._filled == len(payload):
            enlarge(payload, self._size)
        with memoryview(payload) as whole, whole[self._filled :] as rest:
            count = read_into(rest)
        self._filled += count
        if self._filled == self._size:
            self.frames.append(payload)
            self._payload = None
            self.is_inside_frame = False
        return count

    def receive_data(self, data: bytes) -> None:
        """Take the next bytes of the stream; whole frames in them are added to ``frames``.

        A size that is not allowed sets :attr:`error`; what follows it is dropped.
        """
        while data and self._payload is not None:
            data = fill_with(data, self.fill)
        if self._head:
            data = self._head + data
            self._head = b""
        available = len(data)
        position = 0
        while self.error is None and available - position >= SIZE_BYTES:
            (size,) = _unpack_size(data, position)
            start = position + SIZE_BYTES
            end = start + size
            if size < 0 or size > self.frame_bytes_max:
                hint = _other_protocol(size)
                self.oversized_bytes = 0 if hint else max(0, size)
                self.error = invalid_size(size, self.frame_bytes_max, self.limit_name, hint)
            elif end <= available:
                self.frames.append(data[start:end])
                position = end
            else:
                self._payload = bytearray(memoryview(data)[start:])
                self._size, self._filled = size, available - start
                self.is_inside_frame = True
                return
        if self.error is None:
            self._head = data[position:]
        self.is_inside_frame = bool(self._head) or self._payload is not None


def fill_with(data: bytes, fill: Callable[[Callable[[memoryview], int]], int]) -> bytes:
    """Continue a large frame by its decoder's ``fill`` with what was read; what is left of that."""

    def copy(rest: memoryview) -> int:
        count = min(len(rest), len(data))
        rest[:count] = data[:count]
        return count

    return data[fill(copy) :]


def enlarge(buffer: bytearray, size: int) -> None:
    """Make room for more of a frame of ``size`` bytes; most of the time nothing is copied."""
    count = min(size - len(buffer), max(3 * len(buffer), BUFFER_STEP_BYTES_MIN), BUFFER_STEP_BYTES)
    buffer += _ZEROS if count == len(_ZEROS) else bytes(count)


def invalid_size(
    size: int, frame_bytes_max: int, limit_name: str, hint: str = ""
) -> InvalidReceiveError:
    """Create the error for a size; ``limit_name`` is the setting with the limit."""
    if size < 0:
        return InvalidReceiveError(f"frame size {size} is negative")
    return InvalidReceiveError(
        f"frame size {size} is larger than {frame_bytes_max}, the limit that {limit_name} sets"
        f"{hint}"
    )


def _other_protocol(size: int) -> str:
    """Return a hint if an invalid size looks like another protocol, sent to the wrong port."""
    if size < 0:
        return ""
    data = size.to_bytes(4, "big")
    if data[0] in _TLS_RECORDS and data[1] == _TLS_MAJOR_VERSION:
        return f"; {LOOKS_LIKE_TLS}"
    text = data.decode("latin-1")
    if text.isascii() and text.isprintable():
        return f"; it looks like text that begins with {text!r}, as that of another protocol"
    return ""
