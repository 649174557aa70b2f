"""What a client has sent and received: plain numbers, for whoever asks.

(Kafka: Selector.SelectorMetrics and NetworkClient's, without their sensors.) Rates and averages are
made of them when somebody wants to know; a request pays a few additions.
"""

from __future__ import annotations

from ..metrics.rates import RollingMaximum

US = 1e6


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


class ClientCounters:
    """The numbers of all nodes that requests went to.

    Attributes:
        nodes: by id.
    """

    __slots__ = ("nodes",)

    def __init__(self) -> None:
        self.nodes: dict[int, NodeCounters] = {}

    def sent(self, node_id: int, size: int) -> None:
        """A request of so many bytes goes to a node."""
        node = self.nodes.get(node_id)
        if node is None:
            node = self.nodes[node_id] = NodeCounters()
        node.requests += 1
        node.request_bytes += size
        node.largest_request.current = max(node.largest_request.current, size)

    def answered(self, node_id: int, size: int, seconds: float) -> None:
        """An answer of so many bytes came from a node, so long after its request."""
        node = self.nodes[node_id]
        node.responses += 1
        node.response_bytes += size
        latency_us = int(seconds * US)
        node.latency_us += latency_us
        node.longest_us.current = max(node.longest_us.current, latency_us)
