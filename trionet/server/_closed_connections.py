"""The most recently closed connections, and counts of closed connections by reason.

They show an operator why a client was disconnected, without any additional tool.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from itertools import islice
from typing import Final

import attrs

from .._util._logging import get_logger
from ..net._channel import Channel
from ..net.wire._close_reason import CloseReason
from ..net.wire._endpoint import Endpoint
from ._connection import Connection

logger = get_logger("trionet.server")

# The number of closed connections to keep.
CLOSED_CONNECTIONS_MAX: Final = 1000
# Texts that may come from a peer are truncated to this length.
TEXT_CHARS_MAX: Final = 256


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARS_MAX else text[: TEXT_CHARS_MAX - 1] + "…"


@attrs.frozen(kw_only=True)
class ClosedConnection:
    """A record of one closed connection.

    Attributes:
        id: the connection id.
        reason: why the connection was closed.
        detail: the underlying error, or an empty string; at most 256 characters.
        peer: the address and port of the peer.
        listener: the name of the listener that accepted the connection.
        processor: the number of the processor that served the connection.
        principal: the principal of the peer; anonymous if the peer was not authenticated; at most
            256 characters.
        opened_at: when the connection was set up, in seconds on the loop's clock.
        closed_at: when the connection was closed, in seconds on the loop's clock.
        requests: the number of requests received.
        bytes_received: the number of bytes received, including size prefixes.
        bytes_sent: the number of bytes sent, including size prefixes.
    """

    id: str
    reason: CloseReason
    detail: str = attrs.field(default="", converter=_cut)
    peer: str
    listener: str
    processor: int
    principal: str = attrs.field(default="", converter=_cut)
    opened_at: float
    closed_at: float
    requests: int
    bytes_received: int
    bytes_sent: int

    @classmethod
    def of(
        cls,
        channel: Channel,
        connection: Connection,
        endpoint: Endpoint,
        processor: int,
        now: float,
    ) -> ClosedConnection:
        """Create the record of a channel that was closed."""
        assert channel.close_reason is not None
        return cls(
            id=channel.id,
            reason=channel.close_reason,
            detail=channel.close_detail,
            peer=connection.peer,
            listener=endpoint.listener_name,
            processor=processor,
            principal=str(channel.principal),
            opened_at=connection.opened_at,
            closed_at=now,
            requests=connection.requests,
            bytes_received=channel.bytes_received,
            bytes_sent=channel.bytes_sent,
        )

    @property
    def age_seconds(self) -> float:
        """How long the connection was open, in seconds."""
        return self.closed_at - self.opened_at


class ClosedConnections:
    """A ring buffer of closed connections, numbered from 0 in the order in which they closed.

    Args:
        count_max: the number of connections to keep.

    Attributes:
        total: the number of connections added since the server started.
        by_reason: the number of closed connections by reason, including those that were only
            counted.
        listeners: callbacks that are called with each closed connection, to release data kept for
            it. An exception in a callback is logged and does not affect other callbacks (Kafka:
            ConnectionDisconnectListener).
    """

    def __init__(self, count_max: int = CLOSED_CONNECTIONS_MAX) -> None:
        self._connections: deque[ClosedConnection] = deque(maxlen=count_max)
        self.by_reason: Counter[CloseReason] = Counter()
        self.total: int = 0
        self.listeners: list[Callable[[ClosedConnection], None]] = []

    def __len__(self) -> int:
        return len(self._connections)

    def add(self, connection: ClosedConnection) -> None:
        """Add a connection. A full ring drops its oldest connection, which stays counted."""
        self._connections.append(connection)
        self.by_reason[connection.reason] += 1
        self.total += 1
        for listener in self.listeners:
            try:
                listener(connection)
            except Exception:  # boundary: one listener
                logger.exception("a disconnect listener failed for %s", connection.id)

    def count(self, reason: CloseReason) -> None:
        """Count a connection that was closed before it was set up, without adding a record.

        Otherwise, a storm of peers that connect and reset would displace all other records.
        """
        self.by_reason[reason] += 1

    def page(self, count_max: int, before: int | None = None) -> list[tuple[int, ClosedConnection]]:
        """Return a page of numbered connections, most recently closed first.

        Args:
            count_max: the maximum number of connections, 1 or more.
            before: return only connections with a lower number, such as the number of the last
                connection of the previous page. Pages therefore do not shift when connections close
                between two calls.
        """
        newest = self.total - 1 if before is None else min(before, self.total) - 1
        skipped = self.total - 1 - newest
        found = islice(reversed(self._connections), skipped, skipped + count_max)
        return [(newest - index, connection) for index, connection in enumerate(found)]
