"""One direction of a connection in memory: what was sent and is not read yet, in order."""

from __future__ import annotations

import math
from collections import deque
from enum import Enum, auto


class Mark(Enum):
    """What travels beside bytes."""

    MADE = auto()
    """The connection is made (TCP: SYN and ACK)."""
    END = auto()
    """No byte follows (TCP: FIN)."""
    RESET = auto()
    """The connection is broken off, or refused (TCP: RST)."""


Piece = bytes | Mark


class Pipe:
    """Pieces on their way, each with the time at which it is there, and what has arrived.

    A piece never overtakes another. Nothing happens by itself: whoever asks says what time it is.

    Attributes:
        size: bytes on their way or arrived, and not read.
        is_held: nothing arrives; see :meth:`hold`.
        is_made: the connection is made.
        has_ended: no byte follows those that have arrived.
        was_reset: the sender has broken off, and it has arrived.
    """

    __slots__ = ("_arrived", "_on_way", "has_ended", "is_held", "is_made", "size", "was_reset")

    def __init__(self) -> None:
        self._on_way: deque[tuple[float, Piece]] = deque()
        self._arrived: deque[bytes] = deque()
        self.size = 0
        self.is_held = False
        self.is_made = False
        self.has_ended = False
        self.was_reset = False

    def put(self, piece: Piece, at: float) -> None:
        """Send a piece that is there at ``at``, or when the one before it is."""
        if isinstance(piece, bytes):
            self.size += len(piece)
        if self.is_held:
            at = math.inf
        elif self._on_way:
            at = max(at, self._on_way[-1][0])
        self._on_way.append((at, piece))

    def hold(self) -> None:
        """Let nothing arrive that has not arrived yet, until :meth:`let_go`."""
        self.is_held = True
        self._on_way = deque((math.inf, piece) for _, piece in self._on_way)

    def let_go(self, at: float) -> None:
        """What was held is there at ``at``."""
        self.is_held = False
        self._on_way = deque((at, piece) for _, piece in self._on_way)

    @property
    def next_arrival(self) -> float:
        """When the next piece is there; infinite if none is on its way."""
        return self._on_way[0][0] if self._on_way else math.inf

    def advance(self, now: float) -> None:
        """Take in what has arrived by now."""
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
        """Whether there are bytes to read."""
        return bool(self._arrived)

    def read(self, bytes_max: int) -> bytes:
        """What has arrived, up to a number of bytes."""
        arrived = self._arrived
        if arrived and len(arrived[0]) >= bytes_max:
            data = arrived[0]
            if len(data) == bytes_max:
                arrived.popleft()
            else:
                arrived[0] = data[bytes_max:]
                data = data[:bytes_max]
        else:
            taken = bytearray()
            while arrived and len(taken) < bytes_max:
                first = arrived.popleft()
                rest = bytes_max - len(taken)
                taken += first[:rest]
                if len(first) > rest:
                    arrived.appendleft(first[rest:])
            data = bytes(taken)
        self.size -= len(data)
        return data

    def drop(self) -> None:
        """Nobody reads any more."""
        self._arrived.clear()
        self._on_way.clear()
        self.size = 0
