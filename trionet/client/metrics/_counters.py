"""What a client has sent and received: plain numbers, for whoever asks.

(Kafka: Selector.SelectorMetrics and NetworkClient's, without their sensors.) Rates and averages are
made of them when somebody wants to know; a request pays a few additions.
"""

# Compiled by mypyc.

from __future__ import annotations

from typing import Final

from ...metrics._rates import RollingMaximum

US: Final = 1e6


class NodeCounters:
    """One node's numbers, which only grow.

    Attributes:
        requests: that were sent.
        request_bytes: what they took together, as they travel.
        largest_request: the size of the largest, of late.
        responses: that came back.
        response_bytes: what they took together.
        latency_us: from the requests to their answers, in all, in microseconds.
        longest_us: the longest of these, of late.
    """

    __slots__ = (
        "largest_request",
        "latency_us",
        "longest_us",
        "request_bytes",
        "requests",
        "response_bytes",
        "responses",
    )

    def __init__(self) -> None:
        self.requests = self.request_bytes = 0
        self.largest_request = RollingMaximum()
        self.responses = self.response_bytes = 0
        self.latency_us = 0
        self.longest_us = RollingMaximum()


class ApiCounters:
    """The answers to requests of one API, of all nodes together.

    Attributes:
        responses: that came back.
        response_bytes: what they took together.
        largest_response: the size of the largest, of late.
        latency_us: from the requests to these, in all, in microseconds.
        longest_us: the longest of these, of late.
        throttle_ms: what they asked for in all.
        longest_throttle_ms: the most that one asked for, of late.
    """

    __slots__ = (
        "largest_response",
        "latency_us",
        "longest_throttle_ms",
        "longest_us",
        "response_bytes",
        "responses",
        "throttle_ms",
    )

    def __init__(self) -> None:
        self.responses = self.response_bytes = 0
        self.largest_response = RollingMaximum()
        self.latency_us = 0
        self.longest_us = RollingMaximum()
        self.throttle_ms = 0
        self.longest_throttle_ms = RollingMaximum()


class ClientCounters:
    """The numbers of all nodes that requests went to, and of all APIs that were answered.

    Attributes:
        nodes: by id.
        apis: by API key.
    """

    __slots__ = ("apis", "nodes")

    def __init__(self) -> None:
        self.nodes: dict[int, NodeCounters] = {}
        self.apis: dict[int, ApiCounters] = {}

    def api(self, api_key: int) -> ApiCounters:
        """The numbers of one API."""
        counters = self.apis.get(api_key)
        if counters is None:
            counters = self.apis[api_key] = ApiCounters()
        return counters

    def rename(self, node_id: int, new_id: int) -> None:
        """What was sent to a node was sent to another; its numbers stay if that has some."""
        if new_id not in self.nodes:
            self.nodes[new_id] = self.nodes.pop(node_id)

    def sent(self, node_id: int, size: int) -> None:
        """A request of so many bytes goes to a node."""
        node = self.nodes.get(node_id)
        if node is None:
            node = self.nodes[node_id] = NodeCounters()
        node.requests += 1
        node.request_bytes += size
        node.largest_request.current = max(node.largest_request.current, size)

    def answered(
        self, node_id: int, api_key: int, size: int, seconds: float, throttle_seconds: float
    ) -> None:
        """An answer of so many bytes came from a node, so long after its request."""
        latency_us = int(seconds * US)
        node = self.nodes[node_id]
        node.responses += 1
        node.response_bytes += size
        node.latency_us += latency_us
        longest = node.longest_us
        if latency_us > longest.current:  # noqa: PLR1730  # a call of max() takes longer
            longest.current = latency_us
        api = self.api(api_key)
        api.responses += 1
        api.response_bytes += size
        largest = api.largest_response
        if size > largest.current:  # noqa: PLR1730  # as above
            largest.current = size
        api.latency_us += latency_us
        longest = api.longest_us
        if latency_us > longest.current:  # noqa: PLR1730  # a call of max() takes longer
            longest.current = latency_us
        if throttle_seconds:
            throttle_ms = round(throttle_seconds * 1000)
            api.throttle_ms += throttle_ms
            _raise_to(api.longest_throttle_ms, throttle_ms)


def _raise_to(maximum: RollingMaximum, value: int) -> None:
    maximum.current = max(maximum.current, value)
