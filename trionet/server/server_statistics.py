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

    @classmethod
    def of(cls, processor: ProcessorCounts) -> ServerStatistics:
        """What one processor has done so far and holds now."""
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
    """What several processors or servers did and hold, in all."""
    closed: Counter[CloseReason] = Counter()
    for each in parts:
        closed.update(each.closed)
    numbers = (field.name for field in attrs.fields(ServerStatistics) if field.name != "closed")
    sums = {name: sum(getattr(each, name) for each in parts) for name in numbers}
    return ServerStatistics(**sums, closed=dict(closed))
