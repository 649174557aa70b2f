"""What the server keeps of a connection, beside its channel."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from .connection_counts import ConnectionGuard


class ClientSoftware(NamedTuple):
    """What a client calls itself, and its version (KIP-511)."""

    name: str
    version: str


# What a client is that has not said what it is.
UNKNOWN_SOFTWARE: Final = ClientSoftware("unknown", "unknown")
# What is kept of the name and of the version that it says; it may send as much as a frame holds.
SOFTWARE_CHARS_MAX = 64


class Connection:
    """One accepted connection; the ``attachment`` of its channel.

    Attributes:
        peer: the address and port at the far end, as in ``127.0.0.1:40022``.
        peer_host: the address alone.
        guard: counts it against the quotas until it is released.
        opened_at: when it was set up, in seconds of the loop's clock.
        request: the request that is out, if any: received and not yet answered.
        requests: how many requests it has sent.
        throttled_ns: since when it is throttled, of ``perf_counter_ns``.
        client_software: what the client says that it is; the same object for as long as it does.
        client_id: what it called itself in its last request; None if it did not.
        origin: what a recorder keeps of where its requests come from.
    """

    __slots__ = (
        "client_id",
        "client_software",
        "guard",
        "opened_at",
        "origin",
        "peer",
        "peer_host",
        "request",
        "requests",
        "throttled_ns",
    )

    def __init__(
        self, peer_host: str, peer_port: int, guard: ConnectionGuard | None, opened_at: float
    ) -> None:
        self.peer_host = peer_host
        self.peer = f"{peer_host}:{peer_port}"
        self.guard = guard
        self.opened_at = opened_at
        self.request: Any = None  # a Request, which this module is below of
        self.requests = 0
        self.throttled_ns = 0
        self.client_software = UNKNOWN_SOFTWARE
        self.client_id: str | None = None
        self.origin: Any = None
