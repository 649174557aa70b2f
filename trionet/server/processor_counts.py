"""What one processor did and holds, for metrics and statistics."""

from __future__ import annotations

from collections import Counter

from ..net.close_reason import CloseReason
from ..net.endpoint import Endpoint
from ..net.selector import Selector
from .request_channel import ResponseQueue


class ProcessorCounts:
    """Numbers of one processor, all since its start; its loop adds to them.

    Args:
        id: number of the processor.
        endpoint: the listener that it serves.
        selector: whose channels it serves.
        responses: its response queue.

    Attributes:
        counters: what its selector counts.
        closed: connections that ended, by reason.
        in_flight: requests that were received and whose response has not left.
        request_queue_full: how often it stopped reading because too many requests waited.
        requests_received: requests that were handed over.
        responses_sent: responses whose last byte was given to the kernel.
        connections_created: connections that it was given.
    """

    def __init__(
        self, id: int, endpoint: Endpoint, selector: Selector, responses: ResponseQueue
    ) -> None:
        self.id = id
        self.endpoint = endpoint
        self.counters = selector.counters
        self._channels = selector.channels
        self._responses = responses
        self.closed: Counter[CloseReason] = Counter()
        self.in_flight = self.request_queue_full = 0
        self.requests_received = self.responses_sent = self.connections_created = 0

    @property
    def connection_count(self) -> int:
        return len(self._channels)

    @property
    def bytes_received(self) -> int:
        return self._channels.bytes_received

    @property
    def bytes_sent(self) -> int:
        return self._channels.bytes_sent

    @property
    def response_queue_size(self) -> int:
        return len(self._responses)
