"""Decoders that split a byte stream into frames, without I/O.

A frame is a signed 32-bit big-endian size and a payload of that many bytes (Kafka: NetworkReceive).
The size is checked as soon as its four bytes have arrived. A negative size, or one above the limit,
invalidates the stream; zero is legal. The whole frames before an invalid size are still returned,
and the error is raised after them, as if the frames had arrived one at a time.

A frame that has arrived completely is a slice of the received data. An incomplete frame gets its
own buffer, and :meth:`LargeFrameDecoder.fill` reads the rest from the socket directly into that
buffer, which saves a copy of the records.
"""

# Compiled by mypyc.

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple, Protocol

from ...errors import InvalidReceiveError, LocalProtocolError

SIZE_BYTES: Final = 4

#: No limit on a frame except that its size fits in four bytes (Kafka: NetworkReceive.UNLIMITED).
UNLIMITED: Final = -1
_SIZE_MAX: Final = 2**31 - 1

#: The name of the limit in error messages if the channel's owner does not name a setting.
NO_SETTING: Final = "frame_bytes_max"


def size_limit(frame_bytes_max: int) -> int:
    """Return the maximum size of a frame in bytes; ``frame_bytes_max`` may be UNLIMITED."""
    return _SIZE_MAX if frame_bytes_max == UNLIMITED else frame_bytes_max


class LimitNames(NamedTuple):
    """The names of the settings that limit the size of a channel's frames, for error messages.

    Attributes:
        frame: the setting for requests or responses.
        authentication: the setting for frames of an authentication.
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

# The buffer of a large frame grows when it is full: to four times the data that has arrived, so
# that a peer that announces 100 MB without sending them occupies almost no memory; and by at most
# this much at a time, because allocating 100 MB at once would block the loop for 60 ms.
BUFFER_STEP_BYTES = 1024 * 1024 + 64 * 1024
BUFFER_STEP_BYTES_MIN = 16 * 1024
_ZEROS = bytes(BUFFER_STEP_BYTES)


class Decoder(Protocol):
    """A decoder that splits the byte stream of a channel into frames, for any protocol.

    Attributes:
        frames: the whole frames, oldest first; the channel removes them from the left.
        error: why the stream is invalid; None if it is valid. Nothing after the error is decoded.
        is_inside_frame: whether the received data ends in the middle of a frame.
        frame_bytes_max: the size of the largest allowed frame, in bytes; may change between two
            frames.
        wants_fill: whether the channel must continue the current frame with :meth:`fill`, which
            reads from the socket into the frame; always False for a decoder that gets all data
            from :meth:`receive_data`.
        size: the size of the frame that :meth:`fill` continues, in bytes.
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
        """Decode the next bytes of the stream: add whole frames to ``frames``, or set ``error``."""
        ...

    def fill(self, read_into: Callable[[memoryview], int]) -> int:
        """Read once into the current frame. Returns what ``read_into`` returned."""
        ...


class LargeFrameDecoder:
    """A base class for decoders that reads large frames directly into their own buffers.

    Args:
        frame_bytes_max: the size of the largest allowed frame, in bytes, or :data:`UNLIMITED`.
        limit_name: the setting that ``frame_bytes_max`` is from, for error messages.

    Attributes:
        frames, error, is_inside_frame, wants_fill: see :class:`Decoder`.
        limit_name: the setting that determines ``frame_bytes_max``; changes with it.
    """

    def __init__(self, frame_bytes_max: int, limit_name: str = NO_SETTING) -> None:
        self.frame_bytes_max: int = size_limit(frame_bytes_max)
        self.frames: deque[Frame] = deque()
        self.error: InvalidReceiveError | None = None
        self.is_inside_frame: bool = False
        self.limit_name: str = limit_name
        self._head = b""  # the start of a frame whose size is not known yet
        self._payload: bytearray | None = None
        self._size = 0
        self._filled = 0

    @property
    def wants_fill(self) -> bool:
        """Whether a large frame is in progress, to be continued with :meth:`fill`."""
        return self._payload is not None

    @property
    def size(self) -> int:
        """The size of the large frame in progress, in bytes."""
        return self._size

    def fill(self, read_into: Callable[[memoryview], int]) -> int:
        """Read once into the large frame in progress.

        Args:
            read_into: fills a buffer from its start. Returns the number of bytes; 0 at the end of
                the stream.

        Returns:
            What ``read_into`` returned.

        Raises:
            LocalProtocolError: no large frame is in progress.
        """
        payload = self._payload
        if payload is None:
            raise LocalProtocolError("there is no large frame in progress; call receive_data()")
        if self._filled == len(payload):
            enlarge(payload, self._size)
        with memoryview(payload) as whole, whole[self._filled :] as rest:
            count = read_into(rest)
        self._filled += count
        if self._filled == self._size:
            self._payload = None
            self.is_inside_frame = False
            self._add(payload)
        return count

    def _add(self, frame: Frame) -> None:
        """Add a whole frame to :attr:`frames`."""
        self.frames.append(frame)


class FrameDecoder(LargeFrameDecoder):
    """A decoder for Kafka's size prefixes; see :class:`Decoder` for the attributes.

    Args:
        frame_bytes_max: the size of the largest allowed frame, in bytes, or :data:`UNLIMITED`.
        limit_name: the setting that ``frame_bytes_max`` is from, for error messages.

    Attributes:
        oversized_bytes: the size of the frame that exceeded ``frame_bytes_max``; 0 if none did, or
            if the size looks like the data of another protocol.
    """

    def __init__(self, frame_bytes_max: int, limit_name: str = NO_SETTING) -> None:
        super().__init__(frame_bytes_max, limit_name)
        self.oversized_bytes: int = 0

    def receive_data(self, data: bytes) -> None:
        """Decode the next bytes of the stream, and add the whole frames in them to ``frames``.

        An invalid size sets :attr:`error`; the data after it is dropped.
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
    """Continue a large frame with ``data`` instead of a socket. Returns the data after the frame.

    Args:
        data: the next bytes of the stream.
        fill: the ``fill`` of the frame's decoder.
    """

    def copy(rest: memoryview) -> int:
        count = min(len(rest), len(data))
        rest[:count] = data[:count]
        return count

    return data[fill(copy) :]


def enlarge(buffer: bytearray, size: int) -> None:
    """Enlarge the buffer of a frame of ``size`` bytes; usually without copying it."""
    count = min(size - len(buffer), max(3 * len(buffer), BUFFER_STEP_BYTES_MIN), BUFFER_STEP_BYTES)
    buffer += memoryview(_ZEROS)[:count]  # bytes(count) would be filled only to be copied


def invalid_size(
    size: int, frame_bytes_max: int, limit_name: str, hint: str = ""
) -> InvalidReceiveError:
    """Create the error for an invalid size; ``limit_name`` is the setting with the limit."""
    if size < 0:
        return InvalidReceiveError(f"frame size {size} is negative")
    return InvalidReceiveError(
        f"frame size {size} is larger than {frame_bytes_max}, the limit that {limit_name} sets"
        f"{hint}"
    )


def _other_protocol(size: int) -> str:
    """Return a hint if an invalid size looks like the data of another protocol."""
    if size < 0:
        return ""
    data = size.to_bytes(4, "big")
    if data[0] in _TLS_RECORDS and data[1] == _TLS_MAJOR_VERSION:
        return f"; {LOOKS_LIKE_TLS}"
    text = data.decode("latin-1")
    if text.isascii() and text.isprintable():
        return f"; it looks like text of another protocol, which begins with {text!r}"
    return ""
