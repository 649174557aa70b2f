"""Accepted connections on their way from an acceptor to a processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import trio

from ..net.connecting import Address
from ..net.sockets import Socket
from .connection_counts import ConnectionGuard

#: Accepted connections that may wait for a processor; when all are full the acceptor waits
#: (KIP-402).
CONNECTION_QUEUE_SIZE: Final = 20
# What queueing a connection raises when the processor has ended.
_ENDED = (trio.ClosedResourceError, trio.BrokenResourceError)


class Accepted(NamedTuple):
    """An accepted connection that no channel was made of yet."""

    sock: Socket
    remote: Address
    """The peer's address; the socket does not know it any more when that has gone."""
    guard: ConnectionGuard
    """What counts it until it is closed."""


def drop(accepted: Accepted) -> None:
    """Close one that no channel will be made of."""
    accepted.sock.close()
    accepted.guard.release()


class NewConnections:
    """The connections that one processor was given and has not registered yet.

    (Kafka: Processor.newConnections.)

    Args:
        wake: makes the processor look.

    Attributes:
        waiting: how many there are; those that an acceptor still waits to hand over not included.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self.waiting = 0
        self._outgoing, self._incoming = trio.open_memory_channel[Accepted](CONNECTION_QUEUE_SIZE)

    def offer(self, accepted: Accepted) -> bool:
        """Add a connection; False when the queue is full."""
        try:
            self._outgoing.send_nowait(accepted)
        except trio.WouldBlock:
            return False
        except _ENDED:
            drop(accepted)  # the acceptor has yet to learn that the processor ends
            return True
        self._added()
        return True

    async def put(self, accepted: Accepted) -> None:
        """Add a connection, waiting for room; cancelled, it is the caller's."""
        try:
            await self._outgoing.send(accepted)
        except _ENDED:
            drop(accepted)
        else:
            self._added()

    def _added(self) -> None:
        self.waiting += 1
        self._wake()

    def take(self) -> Accepted:
        """Take the oldest; only if there are some :attr:`waiting`."""
        self.waiting -= 1
        return self._incoming.receive_nowait()

    def close(self) -> None:
        """Drop those that are left, and those that will be offered (KAFKA-9796)."""
        self._outgoing.close()
        while True:
            try:
                drop(self._incoming.receive_nowait())
            except (trio.WouldBlock, trio.EndOfChannel):
                break
        self._incoming.close()
