"""An accepted connection that no channel was made of yet."""

from __future__ import annotations

from ..net.sockets import Socket
from .connection_counts import ConnectionGuard

Accepted = tuple[Socket, ConnectionGuard]
"""Its socket, and what counts it until it is closed."""


def drop(accepted: Accepted) -> None:
    """Close one that no channel will be made of."""
    sock, guard = accepted
    sock.close()
    guard.release()
