"""How many connections are open: in all, of each listener, of each address.

(Kafka: the counts of ConnectionQuotas.) A connection is counted back by its guard, from whatever
path closes it, and once (KAFKA-2614, KAFKA-13457).
"""

from __future__ import annotations

from collections.abc import Callable

import attrs


class ConnectionCounts:
    """Plain counts; only :class:`ConnectionGuard` takes from them.

    Attributes:
        total: connections of all listeners.
    """

    __slots__ = ("_by_address", "_by_listener", "total")

    def __init__(self) -> None:
        self.total = 0
        self._by_listener: dict[str, int] = {}
        self._by_address: dict[str, int] = {}

    def add(self, listener: str, address: str) -> int:
        """Count one connection.

        Returns:
            How many this address had before.
        """
        before = self._by_address.get(address, 0)
        self._by_address[address] = before + 1
        self._by_listener[listener] = self._by_listener.get(listener, 0) + 1
        self.total += 1
        return before

    def remove(self, listener: str, address: str) -> None:
        """Count one connection back.

        Raises:
            ValueError: no connection of this address was counted for this listener.
        """
        of_address, of_listener = self.of_address(address), self.of_listener(listener)
        if not of_address or not of_listener:
            raise ValueError(f"no connection of {address} to {listener} is counted")
        _set(self._by_address, address, of_address - 1)
        _set(self._by_listener, listener, of_listener - 1)
        self.total -= 1

    def of_address(self, address: str) -> int:
        """The connections of one address; 0 when it is unknown."""
        return self._by_address.get(address, 0)

    def of_listener(self, listener: str) -> int:
        """The connections of one listener; 0 when it is unknown."""
        return self._by_listener.get(listener, 0)

    def __repr__(self) -> str:
        return f"<{self.total} connections: {self._by_listener}, {self._by_address}>"


def _set(counts: dict[str, int], key: str, count: int) -> None:
    """An address that has left takes no memory."""
    if count:
        counts[key] = count
    else:
        del counts[key]


@attrs.define(eq=False, repr=False)
class ConnectionGuard:
    """One counted connection; travels with it, and is released when it closes.

    Attributes:
        listener: the name of the listener that it came to.
        address: the peer's address as it is counted.
    """

    _counts: ConnectionCounts | None
    listener: str
    address: str
    _on_release: Callable[[], object]

    @property
    def is_released(self) -> bool:
        return self._counts is None

    def release(self) -> None:
        """Count the connection back; only the first call does anything."""
        counts, self._counts = self._counts, None
        if counts is not None:
            counts.remove(self.listener, self.address)
            self._on_release()

    def __repr__(self) -> str:
        released = " released" if self.is_released else ""
        return f"<ConnectionGuard {self.address} to {self.listener}{released}>"
