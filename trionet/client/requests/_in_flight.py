"""The requests to each node that are still awaiting a response (Kafka: InFlightRequests)."""

# Compiled by mypyc.

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ...errors import LocalProtocolError
from ...protocol import api_keys
from ...protocol._codec import ApiVersionCodec
from ._response import ClientResponse


class InFlightRequest:
    """An in-flight request.

    Args:
        node_id: the id of the node to which the request is sent.
        correlation_id: the id that the response must repeat.
        codec: the codec of the version in which the request is encoded; the response is decoded in
            the same version (KAFKA-2756).
        body: the body of the request.
        sent_at: the time at which the request was sent, on the event loop's clock, in seconds.
        timeout_seconds: the time limit for the response, not counting throttling.
        is_internal: whether the client sent the request for its own use, in which case polls do not
            return its response (KAFKA-6289).
        callback: called with the :class:`.ClientResponse` at the end of a poll.

    Attributes:
        is_sent: whether the last byte of the request has been written.
        throttled_seconds: how long the node throttled the client while the request was in flight,
            which extends the timeout (KAFKA-16083).
        expects_response: False for a Produce request with ``acks=0``, which has no response.
    """

    __slots__ = (
        "body",
        "callback",
        "codec",
        "correlation_id",
        "expects_response",
        "is_internal",
        "is_sent",
        "node_id",
        "sent_at",
        "throttled_seconds",
        "timeout_seconds",
    )

    def __init__(
        self,
        node_id: int,
        correlation_id: int,
        codec: ApiVersionCodec,
        body: Any,
        sent_at: float,
        timeout_seconds: float,
        *,
        is_internal: bool = False,
        callback: Callable[[ClientResponse], None] | None = None,
    ) -> None:
        self.node_id = node_id
        self.correlation_id = correlation_id
        self.codec = codec
        self.body = body
        self.sent_at = sent_at
        self.timeout_seconds = timeout_seconds
        self.expects_response = codec.api_key != api_keys.PRODUCE or body.acks != 0
        self.is_internal = is_internal
        self.callback = callback
        self.is_sent = False
        self.throttled_seconds = 0.0

    @property
    def expires_at(self) -> float:
        """The time at which the request times out, on the event loop's clock, in seconds."""
        return self.sent_at + self.timeout_seconds + self.throttled_seconds

    def __repr__(self) -> str:
        return f"<{self.codec.name} {self.correlation_id} to node {self.node_id}>"


class InFlightRequests:
    """The in-flight requests of each node, oldest first.

    Args:
        requests_max: the maximum number of requests per node
            (``max.in.flight.requests.per.connection``).
    """

    def __init__(self, requests_max: int) -> None:
        self._requests_max = requests_max
        self._by_node: dict[int, deque[InFlightRequest]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[InFlightRequest]:
        """Iterate over all requests, node by node, oldest first."""
        for requests in self._by_node.values():
            yield from requests

    def count(self, node_id: int) -> int:
        return len(self._by_node.get(node_id, ()))

    def add(self, request: InFlightRequest) -> None:
        self._by_node.setdefault(request.node_id, deque()).append(request)
        self._count += 1

    def can_send_more(self, node_id: int) -> bool:
        """Whether the newest request is fully written and the node is below its limit."""
        requests = self._by_node.get(node_id)
        return not requests or (requests[-1].is_sent and len(requests) < self._requests_max)

    def oldest(self, node_id: int) -> InFlightRequest:
        """Return the oldest request to a node, whose response arrives next.

        Raises:
            LocalProtocolError: no request to the node is in flight.
        """
        return self._of(node_id)[0]

    def last_sent(self, node_id: int) -> InFlightRequest:
        """Return the newest request to a node; raises as :meth:`oldest` does."""
        return self._of(node_id)[-1]

    def complete_next(self, node_id: int) -> InFlightRequest:
        """Remove and return the oldest request to a node, whose response has arrived."""
        request = self._of(node_id).popleft()
        self._count -= 1
        return request

    def complete_last_sent(self, node_id: int) -> InFlightRequest:
        """Remove and return the newest request to a node, which expects no response."""
        request = self._of(node_id).pop()
        self._count -= 1
        return request

    def clear(self, node_id: int) -> list[InFlightRequest]:
        """Remove and return all requests to a node, oldest first."""
        requests = list(self._by_node.pop(node_id, ()))
        self._count -= len(requests)
        return requests

    def rename(self, node_id: int, new_id: int) -> None:
        """Change the id of a node; no requests may be in flight to the new id."""
        requests = self._by_node.pop(node_id, None)
        if requests is not None:
            self._by_node[new_id] = requests
            for request in requests:
                request.node_id = new_id

    def throttled(self, node_id: int, seconds: float) -> None:
        """Extend the timeouts of the requests to a node that is throttling the client."""
        for request in self._by_node.get(node_id, ()):
            request.throttled_seconds += seconds

    def timed_out_nodes(self, now: float) -> list[int]:
        """Return the ids of nodes with any timed-out request, oldest or not (KAFKA-7231)."""
        late = []
        for node_id, requests in self._by_node.items():
            for each in requests:
                if now > each.expires_at:
                    late.append(node_id)
                    break
        return late

    def next_expiry(self) -> float:
        """Return the time of the next timeout; ``math.inf`` if no request is in flight.

        The result is the next float after the deadline, because a response at the deadline is still
        in time.
        """
        at = math.inf
        for requests in self._by_node.values():
            for each in requests:
                at = min(at, each.expires_at)
        return math.nextafter(at, math.inf)

    def _of(self, node_id: int) -> deque[InFlightRequest]:
        requests = self._by_node.get(node_id)
        if not requests:
            raise LocalProtocolError(f"no request to node {node_id} is in flight")
        return requests
