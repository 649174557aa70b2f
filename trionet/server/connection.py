"""What the server keeps of a connection, beside its channel."""

from __future__ import annotations

from typing import Any

from ..net.mute_state import MuteState
from .connection_counts import ConnectionGuard


class Connection:
    """One accepted connection; the ``attachment`` of its channel.

    Attributes:
        peer: the address and port at the far end, as in ``127.0.0.1:40022``.
        peer_host: the address alone.
        guard: counts it against the quotas until it is released.
        opened_at: when it was set up, in seconds of the loop's clock.
        request: the request that is out, if any: received and not yet answered.
        requests: how many requests it has sent.
        mute_state: what keeps it from being read.
    """

    __slots__ = (
        "guard",
        "mute_state",
        "opened_at",
        "peer",
        "peer_host",
        "request",
        "requests",
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
        self.mute_state = MuteState.NOT_MUTED
