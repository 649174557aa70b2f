"""What was sent to each node and not answered yet, oldest first (Kafka: InFlightRequests)."""

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
    """One request on its way.

    Args:
        node_id: where it goes.
        correlation_id: what its answer has to quote.
        codec: the version it was encoded in, which its answer is decoded in (KAFKA-2756).
        body: what was asked.
        sent_at: in seconds of the loop's clock.
        timeout_seconds: how long its answer may take, without the time that the broker throttled.
        is_internal: the client asked for itself; users never hear of it (KAFKA-6289).
        callback: told of the outcome at the end of a poll.

    Attributes:
        is_sent: its last byte has left.
        throttled_seconds: how long the node was throttled since, which does not count
            (KAFKA-16083).
        is_answered: whether an answer will come at all; to a Produce with ``acks=0`` none does.
    """

    __slots__ = (
        "body",
        "callback",
        "codec",
        "correlation_id",
        "is_answered",
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
        self.is_answered = codec.api_key != api_keys.PRODUCE or body.acks != 0
        self.is_internal = is_internal
        self.callback = callback
        self.is_sent = False
        self.throttled_seconds = 0.0

    @property
    def expires_at(self) -> float:
        """After this its answer is late, in seconds of the loop's clock."""
        return self.sent_at + self.timeout_seconds + self.throttled_seconds

    def __repr__(self) -> str:
        return f"<{self.codec.name} {self.correlation_id} to node {self.node_id}>"


class InFlightRequests:
    """All that is on its way, by node.

    Args:
        requests_max: of one node (``max.in.flight.requests.per.connection``).
    """

    def __init__(self, requests_max: int) -> None:
        self._requests_max = requests_max
        self._by_node: dict[int, deque[InFlightRequest]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[InFlightRequest]:
        """All of them, each node's in the order they were sent."""
        for requests in self._by_node.values():
            yield from requests

    def count(self, node_id: int) -> int:
        return len(self._by_node.get(node_id, ()))

    def add(self, request: InFlightRequest) -> None:
        self._by_node.setdefault(request.node_id, deque()).append(request)
        self._count += 1

    def can_send_more(self, node_id: int) -> bool:
        """Whether one more may follow: the newest has left entirely, and there is room."""
        requests = self._by_node.get(node_id)
        return not requests or (requests[-1].is_sent and len(requests) < self._requests_max)

    def oldest(self, node_id: int) -> InFlightRequest:
        """The one whose answer comes next.

        Raises:
            LocalProtocolError: nothing is on its way there, as for the others.
        """
        return self._of(node_id)[0]

    def last_sent(self, node_id: int) -> InFlightRequest:
        """The newest."""
        return self._of(node_id)[-1]

    def complete_next(self, node_id: int) -> InFlightRequest:
        """Take the oldest: its answer is here."""
        request = self._of(node_id).popleft()
        self._count -= 1
        return request

    def complete_last_sent(self, node_id: int) -> InFlightRequest:
        """Take the newest: it has left, and no answer will come."""
        request = self._of(node_id).pop()
        self._count -= 1
        return request

    def clear(self, node_id: int) -> list[InFlightRequest]:
        """Take all of a node, in the order they were sent, so that who hears of it hears in it."""
        requests = list(self._by_node.pop(node_id, ()))
        self._count -= len(requests)
        return requests

    def rename(self, node_id: int, new_id: int) -> None:
        """What is on its way to a node turned out to be for another, to whom nothing is."""
        requests = self._by_node.pop(node_id, None)
        if requests is not None:
            self._by_node[new_id] = requests
            for request in requests:
                request.node_id = new_id

    def throttled(self, node_id: int, seconds: float) -> None:
        """The node's broker asked for silence; it may need so much longer to answer the rest."""
        for request in self._by_node.get(node_id, ()):
            request.throttled_seconds += seconds

    def late_nodes(self, now: float) -> list[int]:
        """The nodes of which any request, not only the oldest, is late (KAFKA-7231)."""
        late = []
        for node_id, requests in self._by_node.items():
            for each in requests:
                if now > each.expires_at:
                    late.append(node_id)
                    break
        return late

    def next_expiry(self) -> float:
        """When the first of them is late; ``math.inf`` if nothing is on its way.

        That is the instant after its time, since one that comes just in time is not late.
        """
        at = math.inf
        for requests in self._by_node.values():
            for each in requests:
                at = min(at, each.expires_at)
        return math.nextafter(at, math.inf)

    def _of(self, node_id: int) -> deque[InFlightRequest]:
        requests = self._by_node.get(node_id)
        if not requests:
            raise LocalProtocolError(f"nothing is in flight to node {node_id}")
        return requests
