"""The medium between the sockets of an in-memory network: delays, random faults and the trace."""

from __future__ import annotations

import random
from collections.abc import Callable

import attrs
import trio


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
