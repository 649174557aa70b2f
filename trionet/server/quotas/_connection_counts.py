"""Counts of open connections: in total, per listener and per address.

(Kafka: the counts of ConnectionQuotas.) A connection's guard removes it from the counts exactly
once, whichever code path closes it (KAFKA-2614, KAFKA-13457).
"""

from __future__ import annotations

from collections.abc import Callable

import attrs


class ConnectionCounts:
    """The counts; only :class:`ConnectionGuard` decrements them.

    Attributes:
        total: the number of connections of all listeners.
    """

    __slots__ = ("_by_address", "_by_listener", "total")

    def __init__(self) -> None:
        self.total = 0
        self._by_listener: dict[str, int] = {}
        self._by_address: dict[str, int] = {}

    def add(self, listener: str, address: str) -> int:
        """Count one connection.

        Returns:
            The number of connections that this address had before.
        """
        before = self._by_address.get(address, 0)
        self._by_address[address] = before + 1
        self._by_listener[listener] = self._by_listener.get(listener, 0) + 1
        self.total += 1
        return before

    def remove(self, listener: str, address: str) -> None:
        """Remove one connection from the counts.

        Raises:
            ValueError: no connection of this address was counted for this listener.
        """
        of_address, of_listener = self.of_address(address), self.of_listener(listener)
        if not of_address or not of_listener:
            raise ValueError(f"no connection from {address} to {listener} is counted")
        _set(self._by_address, address, of_address - 1)
        _set(self._by_listener, listener, of_listener - 1)
        self.total -= 1

    def of_address(self, address: str) -> int:
        """The number of connections of one address; 0 if it is unknown."""
        return self._by_address.get(address, 0)

    def of_listener(self, listener: str) -> int:
        """The number of connections of one listener; 0 if it is unknown."""
        return self._by_listener.get(listener, 0)

    def __repr__(self) -> str:
        return f"<{self.total} connections: {self._by_listener}, {self._by_address}>"


def _set(counts: dict[str, int], key: str, count: int) -> None:
    """Set a count, removing zeros so that disconnected addresses take no memory."""
    if count:
        counts[key] = count
    else:
        del counts[key]


@attrs.define(eq=False, repr=False)
class ConnectionGuard:
    """Keeps one connection counted, until released when the connection is closed.

    Attributes:
        listener: the name of the listener that accepted the connection.
        address: the peer's address, in the form used for counting.
    """

    _counts: ConnectionCounts | None
    listener: str
    address: str
    _on_release: Callable[[], object]

    @property
    def is_released(self) -> bool:
        return self._counts is None

    def release(self) -> None:
        """Remove the connection from the counts; further calls do nothing."""
        counts, self._counts = self._counts, None
        if counts is not None:
            counts.remove(self.listener, self.address)
            self._on_release()

    def __repr__(self) -> str:
        released = " released" if self.is_released else ""
        return f"<ConnectionGuard {self.address} to {self.listener}{released}>"
