"""An accepted connection that no channel was made of yet."""

from __future__ import annotations

from typing import NamedTuple

from ..net.connecting import Address
from ..net.sockets import Socket
from .connection_counts import ConnectionGuard


class Accepted(NamedTuple):
    """An accepted connection."""

    sock: Socket
    remote: Address
    """The peer's address; the socket does not tell it any more when that has gone."""
    guard: ConnectionGuard
    """What counts it until it is closed."""


def drop(accepted: Accepted) -> None:
    """Close one that no channel will be made of."""
    accepted.sock.close()
    accepted.guard.release()
