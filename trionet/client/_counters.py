"""Counters of a client's requests and responses.

(Kafka: the sensors of Selector.SelectorMetrics and NetworkClient.) Counting a request costs a few
additions. Rates and averages are computed from the counters when metrics are read.
"""

# Compiled by mypyc.

from __future__ import annotations

from typing import Final

from ..metrics._rates import RollingMaximum

US: Final = 1e6


class NodeCounters:
    """The counters of one node.

    Attributes:
        requests: the number of sent requests.
        request_bytes: the total size of the requests, in bytes.
        largest_request: the size of the largest request in the current window, in bytes.
        responses: the number of responses received.
        response_bytes: the total size of the responses, in bytes.
        latency_us: the total latency of the responses, in microseconds.
        longest_us: the longest latency in the current window, in microseconds.
    """

    def __init__(self) -> None:
        self.requests = self.request_bytes = 0
        self.largest_request = RollingMaximum()
        self.responses = self.response_bytes = 0
        self.latency_us = 0
        self.longest_us = RollingMaximum()


class ApiCounters:
    """The counters of one API over all nodes.

    Attributes:
        responses: the number of responses received.
        response_bytes: the total size of the responses, in bytes.
        largest_response: the size of the largest response in the current window, in bytes.
        latency_us: the total latency of the responses, in microseconds.
        longest_us: the longest latency in the current window, in microseconds.
        throttle_ms: the total throttle time of the responses, in milliseconds.
        longest_throttle_ms: the longest throttle time in the current window, in milliseconds.
    """

    def __init__(self) -> None:
        self.responses: int = 0
        self.response_bytes: int = 0
        self.largest_response: RollingMaximum = RollingMaximum()
        self.latency_us: int = 0
        self.longest_us: RollingMaximum = RollingMaximum()
        self.throttle_ms: int = 0
        self.longest_throttle_ms: RollingMaximum = RollingMaximum()


class ClientCounters:
    """The counters of one client.

    Attributes:
        nodes: the counters of each node, keyed by node id.
        apis: the counters of each API, keyed by API key.
    """

    __slots__ = ("apis", "nodes")

    def __init__(self) -> None:
        self.nodes: dict[int, NodeCounters] = {}
        self.apis: dict[int, ApiCounters] = {}

    def api(self, api_key: int) -> ApiCounters:
        """Return the counters of one API, creating them if needed."""
        counters = self.apis.get(api_key)
        if counters is None:
            counters = self.apis[api_key] = ApiCounters()
        return counters

    def rename(self, node_id: int, new_id: int) -> None:
        """Change the id of a node's counters, unless the new id already has counters."""
        if new_id not in self.nodes:
            self.nodes[new_id] = self.nodes.pop(node_id)

    def request_sent(self, node_id: int, size: int) -> None:
        """Count a request of ``size`` bytes."""
        node = self.nodes.get(node_id)
        if node is None:
            node = self.nodes[node_id] = NodeCounters()
        node.requests += 1
        node.request_bytes += size
        node.largest_request.current = max(node.largest_request.current, size)

    def response_received(
        self, node_id: int, api_key: int, size: int, seconds: float, throttle_seconds: float
    ) -> None:
        """Count a response of ``size`` bytes that arrived ``seconds`` after the request."""
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
            throttled = api.longest_throttle_ms
            throttled.current = max(throttled.current, throttle_ms)
