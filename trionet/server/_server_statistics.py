"""Statistics of a server: totals and current sizes, including processors that have ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs

from ..net.wire._close_reason import CloseReason
from ._processor_counts import ProcessorCounts


@attrs.frozen
class ServerStatistics:
    """Totals and current sizes of a server at a point in time.

    Attributes:
        connections: open connections.
        connections_created: connections that were set up.
        requests: requests that were received.
        responses: responses whose last byte was passed to the kernel.
        bytes_received: bytes read, including framing.
        bytes_sent: bytes written, including framing.
        request_queue_size: requests waiting for a handler.
        response_queue_size: responses waiting for their processor.
        request_queue_full: how often a processor stopped reading because the queue was full.
        unexpected_errors: errors outside the steps of channels, not all of which are logged.
        closed: closed connections, by reason.
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

    @classmethod
    def of(cls, processor: ProcessorCounts) -> ServerStatistics:
        """Return the statistics of one processor."""
        return cls(
            connections=processor.connection_count,
            connections_created=processor.connections_created,
            requests=processor.requests_received,
            responses=processor.responses_sent,
            bytes_received=processor.bytes_received,
            bytes_sent=processor.bytes_sent,
            request_queue_size=0,
            response_queue_size=processor.response_queue_size,
            request_queue_full=processor.request_queue_full,
            unexpected_errors=0,
            closed=dict(processor.closed),
        )


def combined(parts: Sequence[ServerStatistics]) -> ServerStatistics:
    """Return the sums over several processors or servers."""
    closed: Counter[CloseReason] = Counter()
    for each in parts:
        closed.update(each.closed)
    numbers = (field.name for field in attrs.fields(ServerStatistics) if field.name != "closed")
    sums = {name: sum(getattr(each, name) for each in parts) for name in numbers}
    return ServerStatistics(**sums, closed=dict(closed))
