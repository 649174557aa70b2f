"""The connections of a server, and a processor's queue of accepted connections."""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import trio

from ..net.wire._connecting import Address, Socket
from .quotas._connection_quotas import ConnectionGuard


class ClientSoftware(NamedTuple):
    """The name and version that a client reports for itself (KIP-511)."""

    name: str
    version: str


# The software of a client that has not reported one.
UNKNOWN_SOFTWARE: Final = ClientSoftware("unknown", "unknown")
# The name and version are truncated to this length; a client may send as much as a frame holds.
SOFTWARE_CHARS_MAX = 64


class Connection:
    """One accepted connection; the ``attachment`` of its channel.

    Attributes:
        peer: the address and port of the peer, such as ``127.0.0.1:40022``.
        peer_host: the address alone.
        guard: counts the connection against the quotas until released.
        opened_at: when the connection was set up, in seconds on the loop's clock.
        request: the request in progress, if any: received, but without a response yet.
        requests: the number of requests received.
        throttled_ns: when the current throttle began, by ``perf_counter_ns``.
        client_software: the software that the client reported; the same object until the client
            reports other software.
        client_id: the client id in the last request; None if there was none.
        origin: a recorder's own data about the source of the requests.
    """

    def __init__(
        self, peer_host: str, peer_port: int, guard: ConnectionGuard | None, opened_at: float
    ) -> None:
        self.peer_host: str = peer_host
        self.peer: str = f"{peer_host}:{peer_port}"
        self.guard: ConnectionGuard | None = guard
        self.opened_at: float = opened_at
        self.request: Any = None  # a Request; importing it here would be circular
        self.requests: int = 0
        self.throttled_ns: int = 0
        self.client_software: ClientSoftware = UNKNOWN_SOFTWARE
        self.client_id: str | None = None
        self.origin: Any = None


#: The maximum number of accepted connections queued for one processor. When the queues of all
#: processors are full, the acceptor waits (KIP-402).
CONNECTION_QUEUE_SIZE: Final = 20
# Raised when queueing a connection for a processor that has ended.
_ENDED = (trio.ClosedResourceError, trio.BrokenResourceError)


class Accepted(NamedTuple):
    """An accepted connection that has no channel yet."""

    sock: Socket
    remote: Address
    """The peer's address, which the socket no longer reports after the peer has disconnected."""
    guard: ConnectionGuard
    """The guard that counts the connection against the quotas until the connection is closed."""


def drop(accepted: Accepted) -> None:
    """Close an accepted connection for which no channel will be created."""
    accepted.sock.close()
    accepted.guard.release()


class NewConnections:
    """The queue of accepted connections that a processor has not registered yet.

    (Kafka: Processor.newConnections.)

    Args:
        wake: wakes the processor.

    Attributes:
        waiting: the number of queued connections, excluding those whose :meth:`put` is waiting.
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
            drop(accepted)  # the acceptor does not know yet that the processor has ended
            return True
        self._added()
        return True

    async def put(self, accepted: Accepted) -> None:
        """Queue a connection, waiting for space. If cancelled, the caller keeps the connection."""
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
        """Remove and return the oldest connection; requires that :attr:`waiting` is not 0."""
        self.waiting -= 1
        return self._incoming.receive_nowait()

    def close(self) -> None:
        """Close all queued connections, and any that are offered later (KAFKA-9796)."""
        self._outgoing.close()
        while True:
            try:
                drop(self._incoming.receive_nowait())
            except (trio.WouldBlock, trio.EndOfChannel):
                break
        self._incoming.close()
