"""The counts of open connections: in total, per listener and per address.

(Kafka: the counts of ConnectionQuotas.) A connection's guard removes the connection from the counts
exactly once, whichever code path closes it (KAFKA-2614, KAFKA-13457).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import attrs


class ConnectionCounts:
    """The counts of open connections, which only :class:`ConnectionGuard` decrements.

    Attributes:
        total: the number of connections of all listeners.
        by_listener: the number of connections by listener name, 0 if there are none.
        by_address: the number of connections by peer address, in the form used for counting, 0 if
            there are none.
    """

    def __init__(self) -> None:
        self.total = 0
        self.by_listener: Counter[str] = Counter()
        self.by_address: Counter[str] = Counter()

    def add(self, listener: str, address: str) -> int:
        """Count one connection.

        Returns:
            The number of connections that the address had before.
        """
        before = self.by_address[address]
        self.by_address[address] = before + 1
        self.by_listener[listener] += 1
        self.total += 1
        return before

    def remove(self, listener: str, address: str) -> None:
        """Remove one connection from the counts.

        Raises:
            ValueError: no connection from this address was counted for this listener.
        """
        if not self.by_address[address] or not self.by_listener[listener]:
            raise ValueError(f"no connection is counted from {address} to {listener}")
        for counts, key in ((self.by_address, address), (self.by_listener, listener)):
            counts[key] -= 1
            if not counts[key]:
                del counts[key]  # so that disconnected addresses take no memory
        self.total -= 1

    def __repr__(self) -> str:
        return f"<{self.total} connections: {dict(self.by_listener)}, {dict(self.by_address)}>"


@attrs.define(eq=False, repr=False)
class ConnectionGuard:
    """A guard that keeps a connection counted; release it when the connection is closed.

    Attributes:
        listener: the name of the listener that accepted the connection.
        address: the peer's address, in the form used for counting.
    """

    _counts: ConnectionCounts | None
    listener: str
    address: str
    _on_release: Callable[[], object]

    def release(self) -> None:
        """Remove the connection from the counts; further calls are no-ops."""
        counts, self._counts = self._counts, None
        if counts is not None:
            counts.remove(self.listener, self.address)
            self._on_release()

    def __repr__(self) -> str:
        released = " released" if self._counts is None else ""
        return f"<ConnectionGuard {self.address} to {self.listener}{released}>"
