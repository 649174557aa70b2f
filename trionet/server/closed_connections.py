"""The connections that closed last, and how many closed for which reason.

An operator who asks why a client was dropped finds it here, with nothing but the server running.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable
from itertools import islice
from typing import Final

import attrs

from ..net.channel import Channel
from ..net.close_reason import CloseReason
from ..net.endpoint import Endpoint
from .connection import Connection

logger = logging.getLogger("trionet.server")

# How many are remembered.
CLOSED_CONNECTIONS_MAX: Final = 1000
# Texts that may come from a peer are cut at this length.
TEXT_CHARS_MAX: Final = 256


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARS_MAX else text[: TEXT_CHARS_MAX - 1] + "…"


@attrs.frozen(kw_only=True)
class ClosedConnection:
    """One connection that ended.

    Attributes:
        id: its connection id.
        reason: why it ended.
        detail: the error behind that, or nothing; at most 256 characters.
        peer: the address and port at the far end.
        listener: the name of the listener that it came to.
        processor: the number of the processor that served it.
        principal: who it was, as far as it had said; at most 256 characters.
        opened_at: when it was set up, in seconds of the loop's clock.
        closed_at: when it ended.
        requests: how many requests it sent.
        bytes_received: how many bytes it sent, frame sizes included.
        bytes_sent: how many bytes it was sent.
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
        """What is remembered of a channel that has ended."""
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
        """For how long it was open."""
        return self.closed_at - self.opened_at


class ClosedConnections:
    """A ring of closed connections, numbered from 0 in the order in which they closed.

    Args:
        count_max: how many are remembered.

    Attributes:
        total: how many closed since the server began.
        by_reason: the same by reason, with those that were only counted.
        listeners: called with each connection that closed, for who keeps something for it; what
            one of them raises is logged, and disturbs nobody (Kafka: ConnectionDisconnectListener).
    """

    def __init__(self, count_max: int = CLOSED_CONNECTIONS_MAX) -> None:
        self._connections: deque[ClosedConnection] = deque(maxlen=count_max)
        self.by_reason: Counter[CloseReason] = Counter()
        self.total = 0
        self.listeners: list[Callable[[ClosedConnection], None]] = []

    def __len__(self) -> int:
        return len(self._connections)

    def add(self, connection: ClosedConnection) -> None:
        """Remember one; when there are too many the oldest is forgotten, but not its count."""
        self._connections.append(connection)
        self.by_reason[connection.reason] += 1
        self.total += 1
        for listener in self.listeners:
            try:
                listener(connection)
            except Exception:  # boundary: one listener
                logger.exception("a listener failed for %s, which closed", connection.id)

    def count(self, reason: CloseReason) -> None:
        """Count one and do not remember it, because it was over before there was anything to know.

        A storm of those that connect and reset would push out all the others.
        """
        self.by_reason[reason] += 1

    def page(self, count_max: int, before: int | None = None) -> list[tuple[int, ClosedConnection]]:
        """A page of those remembered and their numbers, the last closed one first.

        Args:
            count_max: how many at most, 1 or more.
            before: only those with a lower number, such as the last one of the page before; what
                closes while somebody turns pages moves nothing to another page.
        """
        newest = self.total - 1 if before is None else min(before, self.total) - 1
        skipped = self.total - 1 - newest
        found = islice(reversed(self._connections), skipped, skipped + count_max)
        return [(newest - index, connection) for index, connection in enumerate(found)]
