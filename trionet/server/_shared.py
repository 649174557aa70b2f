"""The state that all processors of a server share."""

from __future__ import annotations

import logging

import attrs

from ..metrics._request_times import RequestTimes
from ..net._channel import Channel
from ._closed_connections import ClosedConnections
from ._handler_pool import Handler, NeverWaits
from ._recorder import LoopFaults, Recording
from ._request_channel import RequestChannel
from .quotas._connection_quotas import ConnectionQuotas


@attrs.frozen(kw_only=True)
class Shared:
    """The objects that all processors of a server share.

    Attributes:
        request_channel: the queue of received requests.
        handler: handles requests.
        never_waits: returns whether the handler is certain to handle a request without waiting;
            None if this is never certain.
        quotas: counts connections, and decides when a connection must be closed.
        closed_connections: the most recently closed connections.
        times: the times of requests to which no handler assigned a kind.
        log: the server's log, which adds a prefix to each line.
        faults: counts and logs errors outside the steps of channels.
        recording: receives completed requests and closed connections.
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
        """Log an unexpected error in a channel's step, which only a bug can cause."""
        self.log.warning("unexpected error on %s; closing it", channel.id, exc_info=error)
