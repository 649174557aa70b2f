"""One direction of an in-memory connection: its data in transit and its unread data."""

from __future__ import annotations

import math
from collections import deque
from enum import Enum, auto


class Mark(Enum):
    """A control signal in a stream of bytes."""

    MADE = auto()
    """The connection was accepted (TCP: SYN and ACK)."""
    END = auto()
    """End of stream (TCP: FIN)."""
    RESET = auto()
    """The connection was reset or refused (TCP: RST)."""


Piece = bytes | Mark


class Pipe:
    """A queue of chunks in transit, with their arrival times, and a buffer of received data.

    Chunks never overtake each other. Data arrives only when callers pass the current time to
    :meth:`advance`.

    Attributes:
        size: the number of bytes in transit or not yet read.
        is_held: whether data is held back; see :meth:`hold`.
        is_made: whether the acceptance of the connection has arrived.
        has_ended: whether the end of stream has arrived.
        was_reset: whether a reset has arrived.
    """

    __slots__ = ("_arrived", "_on_way", "has_ended", "is_held", "is_made", "size", "was_reset")

    def __init__(self) -> None:
        self._on_way: deque[tuple[float, Piece]] = deque()
        self._arrived: deque[bytes] = deque()
        self.size: int = 0
        self.is_held: bool = False
        self.is_made: bool = False
        self.has_ended: bool = False
        self.was_reset: bool = False

    def put(self, piece: Piece, at: float) -> None:
        """Queue a chunk for delivery at time ``at``, but not before any queued earlier."""
        if isinstance(piece, bytes):
            self.size += len(piece)
        if self.is_held:
            at = math.inf
        elif self._on_way:
            at = max(at, self._on_way[-1][0])
        self._on_way.append((at, piece))

    def hold(self) -> None:
        """Hold back data in transit and data sent later, until :meth:`release`."""
        self.is_held = True
        self._on_way = deque((math.inf, piece) for _, piece in self._on_way)

    def release(self, at: float) -> None:
        """Stop holding data back, and deliver what was held at time ``at``."""
        self.is_held = False
        self._on_way = deque((at, piece) for _, piece in self._on_way)

    @property
    def next_arrival(self) -> float:
        """The time at which the next chunk arrives; infinity if none is in transit."""
        return self._on_way[0][0] if self._on_way else math.inf

    def advance(self, now: float) -> None:
        """Process the chunks that have arrived by ``now``."""
        on_way = self._on_way
        while on_way and on_way[0][0] <= now:
            piece = on_way.popleft()[1]
            if isinstance(piece, bytes):
                self._arrived.append(piece)
            elif piece is Mark.RESET:
                self.was_reset = True
            elif piece is Mark.END:
                self.has_ended = True
            else:
                self.is_made = True

    @property
    def has_arrived(self) -> bool:
        """Whether arrived bytes are available to read."""
        return bool(self._arrived)

    def read(self, bytes_max: int) -> bytes:
        """Read up to ``bytes_max`` arrived bytes."""
        arrived = self._arrived
        if arrived and len(arrived[0]) >= bytes_max:
            data = arrived[0]
            if len(data) == bytes_max:
                arrived.popleft()
            else:
                arrived[0] = data[bytes_max:]
                data = data[:bytes_max]
        else:
            joined = bytearray()
            while arrived and len(joined) < bytes_max:
                first = arrived.popleft()
                rest = bytes_max - len(joined)
                joined += first[:rest]
                if len(first) > rest:
                    arrived.appendleft(first[rest:])
            data = bytes(joined)
        self.size -= len(data)
        return data

    def drop(self) -> None:
        """Discard all data, because the reader has been closed."""
        self._arrived.clear()
        self._on_way.clear()
        self.size = 0
