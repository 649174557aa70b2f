"""Totals and current sizes of one processor, for metrics and statistics."""

# Compiled by mypyc.

from __future__ import annotations

from collections import Counter

from ..net._selector import Selector
from ..net._selector_counters import SelectorCounters
from ..net.wire._close_reason import CloseReason
from ..net.wire._endpoint import Endpoint
from ._request_channel import ResponseQueue


class ProcessorCounts:
    """The counts of one processor since its start, updated by its loop.

    Args:
        id: the processor's number.
        endpoint: the listener that the processor serves.
        selector: the processor's selector.
        responses: the processor's response queue.

    Attributes:
        counters: the counters of the selector.
        closed: closed connections, by reason.
        in_flight: received requests whose response has not been sent yet.
        request_queue_full: how often the processor stopped reading because the request queue was
            full.
        requests_received: requests received.
        responses_sent: responses whose last byte was passed to the kernel.
        connections_created: connections assigned to the processor.
    """

    def __init__(
        self, id: int, endpoint: Endpoint, selector: Selector, responses: ResponseQueue
    ) -> None:
        self.id = id
        self.endpoint = endpoint
        self.counters: SelectorCounters = selector.counters
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
