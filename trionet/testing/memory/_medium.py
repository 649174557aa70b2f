"""What is between the sockets of an in-memory network: delays, random faults, data in transit."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable
from enum import Enum, auto

import attrs
import trio

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True


@attrs.define(kw_only=True)
class NetworkFaults:
    """Random faults of an in-memory network; attributes can be changed at any time.

    Attributes:
        delay_seconds: the minimum and maximum delay of data. Each direction of a connection still
            delivers its data in order.
        short_share: the fraction of reads and writes that are partial, from 0 to 1.
        reset_share: the fraction of writes after which the connection is reset, from 0 to 1.
    """

    delay_seconds: tuple[float, float] = (0.0, 0.0)
    short_share: float = 0.0
    reset_share: float = 0.0


@attrs.frozen
class NetworkEvent:
    """An event on the network, for a trace.

    Attributes:
        at: the time of the event, in seconds on the loop's clock.
        what: the kind of event: ``connect``, ``accept``, ``refuse``, ``send``, ``receive``,
            ``end``, ``reset``, ``break``, ``vanish`` or ``close``.
        local: the address of the socket, such as ``127.0.0.1:9092``.
        remote: the address of the peer.
        data: the data sent or received.
    """

    at: float
    what: str
    local: str
    remote: str
    data: bytes = b""


class Medium:
    """Draws delays and random faults, and reports events.

    Args:
        seed: the seed for the random faults.
        faults: the random faults.
        trace: called with every event; None to report no events.

    Attributes:
        faults: the random faults; may be replaced.
        is_traced: whether events are reported.
    """

    def __init__(
        self, seed: int, faults: NetworkFaults, trace: Callable[[NetworkEvent], None] | None
    ) -> None:
        self.faults = faults
        self._rng = random.Random(f"faults {seed}")  # noqa: S311 - repeatable
        self.is_traced: bool = trace is not None
        self._trace = trace

    def delay(self) -> float:
        """Return a random delay in seconds."""
        lowest, highest = self.faults.delay_seconds
        return self._rng.uniform(lowest, highest) if highest else 0.0

    def arrival(self) -> float:
        """Return the time at which data sent now arrives."""
        return trio.current_time() + self.delay()

    def short(self, count: int) -> int:
        """Decide at random how many of ``count`` bytes a read or write may transfer."""
        share = self.faults.short_share
        if share and count > 1 and self._rng.random() < share:
            return self._rng.randint(1, count)
        return count

    def resets(self) -> bool:
        """Decide at random whether to reset the connection after a write."""
        share = self.faults.reset_share
        return bool(share) and self._rng.random() < share

    def note(self, what: str, local: str, remote: str, data: bytes = b"") -> None:
        """Report an event to the trace."""
        if self._trace is not None:
            self._trace(NetworkEvent(trio.current_time(), what, local, remote, data))


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
