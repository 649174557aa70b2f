"""The state that the server keeps per connection, in addition to its channel."""

# Compiled by mypyc.

from __future__ import annotations

from typing import Any, Final, NamedTuple

from .quotas._connection_counts import ConnectionGuard


class ClientSoftware(NamedTuple):
    """The name and version that a client reports for itself (KIP-511)."""

    name: str
    version: str


# The software of a client that has not reported it.
UNKNOWN_SOFTWARE: Final = ClientSoftware("unknown", "unknown")
# The name and version are truncated to this length; a client may send as much as a frame holds.
SOFTWARE_CHARS_MAX = 64


class Connection:
    """One accepted connection; the ``attachment`` of its channel.

    Attributes:
        peer: the address and port of the peer, such as ``127.0.0.1:40022``.
        peer_host: the address alone.
        guard: counts the connection against the quotas until released.
        opened_at: when it was set up, in seconds of the loop's clock.
        request: the request in progress, if any: received, but its response has not been sent.
        requests: the number of requests received.
        throttled_ns: when its throttle began, by ``perf_counter_ns``.
        client_software: the software that the client reported; the same object until it reports
            other software.
        client_id: the client id in the last request; None if it had none.
        origin: data of a recorder about the source of the requests.
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
