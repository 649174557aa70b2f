"""Accepted connections on their way from an acceptor to a processor."""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import trio

from ..net.wire._connecting import Address, Socket
from .quotas._connection_counts import ConnectionGuard

#: The number of accepted connections that may wait for a processor. When the queues of all
#: processors are full the acceptor waits (KIP-402).
CONNECTION_QUEUE_SIZE: Final = 20
# Raised when queueing a connection for a processor that has ended.
_ENDED = (trio.ClosedResourceError, trio.BrokenResourceError)


class Accepted(NamedTuple):
    """An accepted connection that has no channel yet."""

    sock: Socket
    remote: Address
    """The peer's address; the socket no longer has it once the peer has disconnected."""
    guard: ConnectionGuard
    """Counts the connection against the quotas until it is closed."""


def drop(accepted: Accepted) -> None:
    """Close an accepted connection for which no channel will be created."""
    accepted.sock.close()
    accepted.guard.release()


class NewConnections:
    """The queue of accepted connections that one processor has yet to register.

    (Kafka: Processor.newConnections.)

    Args:
        wake: wakes the processor.

    Attributes:
        waiting: the number of queued connections, without those whose :meth:`put` still waits.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self.waiting = 0
        self._outgoing, self._incoming = trio.open_memory_channel[Accepted](CONNECTION_QUEUE_SIZE)

    def offer(self, accepted: Accepted) -> bool:
        """Queue a connection. Returns False if the queue is full."""
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
        """Queue a connection, waiting for space; if cancelled, the caller keeps it."""
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
        """Remove and return the oldest; requires that :attr:`waiting` is not 0."""
        self.waiting -= 1
        return self._incoming.receive_nowait()

    def close(self) -> None:
        """Close all queued connections, and all that are offered later (KAFKA-9796)."""
        self._outgoing.close()
        while True:
            try:
                drop(self._incoming.receive_nowait())
            except (trio.WouldBlock, trio.EndOfChannel):
                break
        self._incoming.close()
