"""The requests that are awaiting a response: their encoding, responses and timeouts.

(Kafka: InFlightRequests.) The records of a batch are encoded without a copy. In older API versions,
a broker that throttles a client delays the response; in newer ones the client must wait itself
(KIP-219), and would be throttled twice if it also waited in older ones.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast

from ...errors import LocalProtocolError, TrionetError, WireFormatError
from ...net.wire._framing import Frame
from ...net.wire._transmission import Send
from ...protocol import api_keys
from ...protocol._codec import ApiVersionCodec
from ...protocol._header import decode_response_header, encode_request_header, frame
from ...protocol._wire import Chunk
from ._api_versions import response_codec
from ._responses import ClientResponse


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

    def outcome(
        self, now: float, body: Any = None, error: TrionetError | None = None
    ) -> ClientResponse:
        """Return the outcome, which became known at ``now``: the response's body or an error."""
        return ClientResponse(
            node_id=self.node_id,
            correlation_id=self.correlation_id,
            request=self.body,
            body=body,
            error=error,
            latency_seconds=now - self.sent_at,
        )

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
        # No request expires before this. The first one may expire later, since it is looked for
        # only when this has passed: at each poll, that would cost as much as there are requests.
        self._expires_at_least: float = math.inf

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
        self._expires_at_least = min(self._expires_at_least, request.expires_at)

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
        self._removed(1)
        return request

    def complete_last_sent(self, node_id: int) -> InFlightRequest:
        """Remove and return the newest request to a node, which expects no response."""
        request = self._of(node_id).pop()
        self._removed(1)
        return request

    def clear(self, node_id: int) -> list[InFlightRequest]:
        """Remove and return all requests to a node, oldest first."""
        requests = list(self._by_node.pop(node_id, ()))
        self._removed(len(requests))
        return requests

    def _removed(self, count: int) -> None:
        self._count -= count
        if not self._count:
            self._expires_at_least = math.inf

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
        late: list[int] = []
        if now <= self._expires_at_least:
            return late
        self._expires_at_least = math.inf
        for node_id, requests in self._by_node.items():
            first = math.inf
            for each in requests:
                first = min(first, each.expires_at)
            if now > first:
                late.append(node_id)
            self._expires_at_least = min(self._expires_at_least, first)
        return late

    def next_expiry(self) -> float:
        """Return the time of the next timeout, or an earlier one; infinite without any request.

        At an earlier time, :meth:`timed_out_nodes` finds out the next one. The result is the next
        float after a deadline, because a response at the deadline is still in time.
        """
        return math.nextafter(self._expires_at_least, math.inf)

    def _of(self, node_id: int) -> deque[InFlightRequest]:
        requests = self._by_node.get(node_id)
        if not requests:
            raise LocalProtocolError(f"no request to node {node_id} is in flight")
        return requests


class RecordChunks:
    """The records of a batch in several buffers, to be encoded as one chunk of a request.

    Codecs treat this object as a chunk; :func:`encode_request` replaces it with its buffers.

    Args:
        chunks: the buffers, in order; bytes-like objects.
    """

    __slots__ = ("chunks", "size")

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = chunks
        self.size = sum(map(len, chunks))

    def __len__(self) -> int:
        return self.size


def encode_request(request: InFlightRequest, client_id: str) -> bytes | Send:
    """Encode a request with its size and header: as bytes, or as a Send if in several chunks.

    Raises:
        LocalProtocolError: the body cannot be encoded.
    """
    codec = request.codec
    chunks: list[Chunk] = [encode_request_header(codec, request.correlation_id, client_id)]
    codec.encode_request(request.body, chunks)
    flat: list[Chunk] = []
    for chunk in chunks:
        if isinstance(chunk, RecordChunks):
            flat += chunk.chunks
        else:
            flat.append(chunk)
    framed = frame(flat)
    return cast(bytes, framed[0]) if len(framed) == 1 else Send(cast(Any, framed))


def decode_response(request: InFlightRequest, received: Frame) -> Any:
    """Decode a response's body, in the version of its request.

    Raises:
        WireFormatError: the response is malformed, or its correlation id is not that of the
            request.
    """
    codec = request.codec
    correlation_id, pos = decode_response_header(codec, received)
    if correlation_id != request.correlation_id:
        raise WireFormatError(
            f"received a response to request {correlation_id}, expected {request.correlation_id}"
        )
    if codec.api_key == api_keys.API_VERSIONS:
        codec = response_codec(codec, received, pos)
    return codec.decode_response(received, pos)


#: For APIs that are not listed here, the client enforces the throttle time in all versions.
_FIRST_VERSION: Final = {
    api_keys.PRODUCE: 6,
    api_keys.FETCH: 8,
    api_keys.LIST_OFFSETS: 3,
    api_keys.METADATA: 6,
    api_keys.OFFSET_COMMIT: 4,
    api_keys.OFFSET_FETCH: 4,
    api_keys.FIND_COORDINATOR: 2,
    api_keys.JOIN_GROUP: 3,
    api_keys.HEARTBEAT: 2,
    api_keys.LEAVE_GROUP: 2,
    api_keys.SYNC_GROUP: 2,
    api_keys.DESCRIBE_GROUPS: 2,
    api_keys.LIST_GROUPS: 2,
    api_keys.API_VERSIONS: 2,
    api_keys.CREATE_TOPICS: 3,
    api_keys.DELETE_TOPICS: 2,
    api_keys.DELETE_RECORDS: 1,
    api_keys.INIT_PRODUCER_ID: 1,
    api_keys.ADD_PARTITIONS_TO_TXN: 1,
    api_keys.ADD_OFFSETS_TO_TXN: 1,
    api_keys.END_TXN: 1,
    api_keys.TXN_OFFSET_COMMIT: 1,
    api_keys.DESCRIBE_ACLS: 1,
    api_keys.CREATE_ACLS: 1,
    api_keys.DELETE_ACLS: 1,
    api_keys.DESCRIBE_CONFIGS: 2,
    api_keys.ALTER_CONFIGS: 1,
    api_keys.ALTER_REPLICA_LOG_DIRS: 1,
    api_keys.DESCRIBE_LOG_DIRS: 1,
    api_keys.CREATE_PARTITIONS: 1,
    api_keys.CREATE_DELEGATION_TOKEN: 1,
    api_keys.RENEW_DELEGATION_TOKEN: 1,
    api_keys.EXPIRE_DELEGATION_TOKEN: 1,
    api_keys.DESCRIBE_DELEGATION_TOKEN: 1,
    api_keys.DELETE_GROUPS: 1,
}


def throttle_seconds(codec: ApiVersionCodec, body: Any) -> float:
    """Return how long the client must throttle itself after a response, in seconds."""
    if codec.version < _FIRST_VERSION.get(codec.api_key, 0):
        return 0.0
    return max(0, getattr(body, "throttle_time_ms", 0)) / 1000
