"""What a server tells of every request that is over, and of every connection that closed."""

from __future__ import annotations

from typing import Protocol

from ..metrics.request_times import TimedRequest
from .closed_connections import ClosedConnection
from .connection import Connection


class Recorder(Protocol):
    """Keeps what it is told; is called in the loop, and must neither wait nor raise."""

    def take(self, finished: list[TimedRequest]) -> None:
        """Take note of requests whose stamps are all set, before they are counted.

        They are of class :class:`~trionet.server.request_channel.Request`.
        """
        ...

    def throttle_ended(self, request: TimedRequest) -> None:
        """Take note that a request's channel is throttled no more; it may be over already."""
        ...

    def closed(self, closed: ClosedConnection, connection: Connection) -> None:
        """Take note of a connection that closed."""
        ...
