"""What may become of an accepted connection: it is admitted, rejected, or has to wait."""

from __future__ import annotations

from enum import Enum

import attrs

from .connection_counts import ConnectionGuard


@attrs.frozen
class Admitted:
    """The connection may be served.

    Attributes:
        guard: counts it until it is released.
    """

    guard: ConnectionGuard


class RejectReason(Enum):
    """Which limit of its address a connection exceeds."""

    TOO_MANY_CONNECTIONS = "the address has as many connections as max.connections.per.ip allows"
    TOO_MANY_A_SECOND = "the address connects more often than its connection_creation_rate allows"


@attrs.frozen
class Rejected:
    """The connection is to be closed without having been served.

    Attributes:
        reason: the limit that it exceeds.
        address: the peer's, as it is counted.
        limit: what it allows.
        close_after: seconds for which the socket is kept open before (0: close at once), so that a
            peer that connects again and again takes its time (Kafka: ConnectionThrottledException).
        guard: to be released when the socket is closed; None if it was never counted.
    """

    reason: RejectReason
    address: str
    limit: int
    close_after: float
    guard: ConnectionGuard | None


@attrs.frozen
class Delayed:
    """The listener must wait before it accepts this connection, and any other.

    It counts in the rates already, and in no number of connections: whoever gives up waiting just
    drops it. :meth:`ConnectionQuotas.retry` decides again.

    Attributes:
        listener: the listener's name.
        address: the peer's, as it is counted.
        began_at: when the wait began, in seconds of the loop's clock.
        ends_at: when the rates allow the connection; not before, whatever else happens.
        seconds: the longest wait from now before the next attempt; ``math.inf`` if only a
            connection that closes, or another limit, can help: then ``on_slot_free`` is called.
    """

    listener: str
    address: str
    began_at: float
    ends_at: float
    seconds: float


Admission = Admitted | Rejected | Delayed
