"""What became of one request (Kafka: ClientResponse)."""

# Compiled by mypyc.

from __future__ import annotations

from typing import Any

from ...errors import TrionetError


class ClientResponse:
    """The outcome of a request, handed out by a poll; nobody changes it.

    Args:
        node_id: where it was sent.
        correlation_id: that of the request.
        request: its body.
        body: the answer; None where there is none: with an ``error``, and after a request that has
            no answer.
        error: why there is no answer: :class:`.UnsupportedVersionError` if the node shares no
            version of the API, :class:`.DisconnectedError` if the connection was lost,
            :class:`.RequestTimedOutError` if the answer was late, :class:`.WireFormatError` if the
            answer does not decode, :class:`.ResponseTooLargeError` if it is larger than
            ``receive.message.max.bytes``.
        latency_seconds: from the send to this.
    """

    def __init__(
        self,
        *,
        node_id: int,
        correlation_id: int,
        request: Any,
        body: Any = None,
        error: TrionetError | None = None,
        latency_seconds: float = 0.0,
    ) -> None:
        self.node_id = node_id
        self.correlation_id = correlation_id
        self.request = request
        self.body = body
        self.error = error
        self.latency_seconds = latency_seconds

    def __repr__(self) -> str:
        outcome = self.body if self.error is None else self.error
        return f"<ClientResponse {self.correlation_id} of node {self.node_id}: {outcome!r}>"
