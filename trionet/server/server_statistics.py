"""What a server did and holds: the numbers of its processors, of those that have ended too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs

from ..net.close_reason import CloseReason
from .processor_counts import ProcessorCounts


@attrs.frozen
class ServerStatistics:
    """What the server did and holds at one moment.

    Attributes:
        connections: open connections.
        connections_created: connections ever set up.
        requests: requests ever received.
        responses: answers whose last byte was given to the kernel.
        bytes_received: payload and framing bytes read, in all.
        bytes_sent: payload and framing bytes written, in all.
        request_queue_size: requests waiting for a handler.
        response_queue_size: answers waiting for their processor.
        request_queue_full: how often a processor had to stop reading.
        unexpected_errors: what failed outside the step of a channel, and was logged.
        closed: connections that ended, by reason.
    """

    connections: int
    connections_created: int
    requests: int
    responses: int
    bytes_received: int
    bytes_sent: int
    request_queue_size: int
    response_queue_size: int
    request_queue_full: int
    unexpected_errors: int
    closed: dict[CloseReason, int]


class ProcessorTotals:
    """What processors did, without the processors: a server may see many of them come and go."""

    def __init__(self) -> None:
        self._connections_created = 0
        self._requests = 0
        self._responses = 0
        self._bytes_received = 0
        self._bytes_sent = 0
        self._request_queue_full = 0
        self._closed: Counter[CloseReason] = Counter()

    def add(self, processor: ProcessorCounts) -> None:
        """Count what a processor has done so far."""
        self._connections_created += processor.connections_created
        self._requests += processor.requests_received
        self._responses += processor.responses_sent
        self._bytes_received += processor.bytes_received
        self._bytes_sent += processor.bytes_sent
        self._request_queue_full += processor.request_queue_full
        self._closed.update(processor.closed)

    def statistics(
        self, running: Sequence[ProcessorCounts], request_queue_size: int, unexpected_errors: int
    ) -> ServerStatistics:
        """These totals, and what others that still run have done so far and hold now."""
        closed = self._closed.copy()
        for processor in running:
            closed.update(processor.closed)
        created = self._connections_created + sum(p.connections_created for p in running)
        return ServerStatistics(
            connections=sum(p.connection_count for p in running),
            connections_created=created,
            requests=self._requests + sum(p.requests_received for p in running),
            responses=self._responses + sum(p.responses_sent for p in running),
            bytes_received=self._bytes_received + sum(p.bytes_received for p in running),
            bytes_sent=self._bytes_sent + sum(p.bytes_sent for p in running),
            request_queue_size=request_queue_size,
            response_queue_size=sum(p.response_queue_size for p in running),
            request_queue_full=self._request_queue_full
            + sum(p.request_queue_full for p in running),
            unexpected_errors=unexpected_errors,
            closed=dict(closed),
        )


def combined(servers: Sequence[ServerStatistics]) -> ServerStatistics:
    """What several servers did and hold, in all."""
    closed: Counter[CloseReason] = Counter()
    for each in servers:
        closed.update(each.closed)
    numbers = (field.name for field in attrs.fields(ServerStatistics) if field.name != "closed")
    sums = {name: sum(getattr(each, name) for each in servers) for name in numbers}
    return ServerStatistics(**sums, closed=dict(closed))
