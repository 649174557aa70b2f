"""What the processors of one server have in common."""

from __future__ import annotations

import logging

import attrs

from ..metrics.request_times import RequestTimes
from ..net.channel import Channel
from .closed_connections import ClosedConnections
from .connection_quotas import ConnectionQuotas
from .handler_pool import Handler, NeverWaits
from .loop_faults import LoopFaults
from .recorder import Recording
from .request_channel import RequestChannel


@attrs.frozen(kw_only=True)
class Shared:
    """What the processors of a server share, and the limits that they all have.

    Attributes:
        request_channel: where receives go.
        handler: answers requests.
        never_waits: whether it answers a request, or puts it off, without waiting for anything.
        quotas: count connections, and say when one must make room.
        closed_connections: remembers the last ones that ended.
        times: what requests are timed in as long as nobody says better.
        log: where the server's lines go, with its prefix.
        faults: counts and logs what fails outside the step of a channel.
        recording: keeps requests that are over and connections that closed.
    """

    request_channel: RequestChannel
    handler: Handler
    never_waits: NeverWaits | None
    quotas: ConnectionQuotas
    closed_connections: ClosedConnections
    times: RequestTimes
    log: logging.LoggerAdapter[logging.Logger]
    faults: LoopFaults
    recording: Recording

    def log_channel_error(self, channel: Channel, error: Exception) -> None:
        """Log what nothing but a bug can have raised in one channel's step."""
        self.log.warning("unexpected error on %s; closing it", channel.id, exc_info=error)
