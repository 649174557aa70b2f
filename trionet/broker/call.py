"""One API call as a handler sees it: who asks, in which version, and where the answer goes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast

from ..net.close_reason import CloseReason
from ..net.transmission import Chunk, Outgoing, outgoing
from ..protocol.codec import ApiVersionCodec
from ..protocol.header import encode_response_header, frame
from ..server.request_channel import NO_OP, CloseConnection, NoOp, Request
from .request_counts import RouteCounts

logger = logging.getLogger("trionet.broker")


class Call:
    """The header of a request, and how to answer it.

    Attributes:
        codec: reads and writes the messages of this API version.
        correlation_id: the client's number for the call.
        client_id: what the client calls itself; None for null.
        request: the frame and the connection it came on.
        counts: where its answer and the errors in it are counted.
        has_errors: the answer is to be searched for errors; a handler that knows of one says so.
    """

    __slots__ = ("client_id", "codec", "correlation_id", "counts", "has_errors", "request")

    def __init__(
        self,
        codec: ApiVersionCodec,
        correlation_id: int,
        client_id: str | None,
        request: Request,
        counts: RouteCounts,
    ) -> None:
        self.codec = codec
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.request = request
        self.counts = counts
        self.has_errors = counts.looks_for_errors

    @property
    def version(self) -> int:
        return self.codec.version

    @property
    def listener_name(self) -> str:
        """The listener the client came through; answers name that listener's address."""
        return self.request.listener_name

    def encode(self, message: Any) -> Outgoing:
        """The answer as one frame."""
        counts = self.counts
        counts.answers += 1
        if self.has_errors:
            self.request.error_code = counts.count_errors(message)
        codec = self.codec
        chunks: list[Any] = [encode_response_header(codec, self.correlation_id)]
        codec.encode_response(message, chunks)
        return outgoing(cast("list[Chunk]", frame(chunks)))

    def encode_body(self, message: Any) -> bytes:
        """A message without its header, for :meth:`frame_body` to send to everybody who asks."""
        chunks: list[Any] = []
        self.codec.encode_response(message, chunks)
        return b"".join(chunks)

    def frame_body(self, body: bytes) -> bytes:
        """The answer as one frame, of a message without errors that was encoded before."""
        self.counts.answers += 1
        header = encode_response_header(self.codec, self.correlation_id)
        return (len(header) + len(body)).to_bytes(4, "big") + header + body

    def respond(self, message: Any) -> None:
        """Answer a call that was kept waiting; if its connection is gone it is only counted."""
        if self.request.channel.is_open:
            self.request.respond(self.encode(message))
        else:
            self.abandon()

    def abandon(self) -> None:
        """End a call that was kept waiting and whose connection is gone, so that it is counted.

        (Kafka: SocketServer.processNewResponses.)
        """
        if self.request.response is None:
            self.request.respond(NO_OP)

    def end(self, response: NoOp | CloseConnection) -> None:
        """End a call that was kept waiting without an answer."""
        self.request.respond(response)

    def fail(self, error: Exception) -> None:
        """Give up a call that was kept waiting, for an error of ours: its connection closes."""
        logger.error(
            "unexpected error in %s of %s; closing it",
            self.codec.name,
            self.request.channel.id,
            exc_info=error,
        )
        if self.request.response is None:
            self.request.respond(CloseConnection(CloseReason.HANDLER_FAILED, repr(error)))


class DivertedCall(Call):
    """A call whose late answer somebody else takes, who decides what becomes of it (for tests).

    Args:
        call: the call as it is.
        divert: given the answer, a message, or how the call ends without one.
    """

    __slots__ = ("_divert",)

    def __init__(self, call: Call, divert: Callable[[Any], None]) -> None:
        super().__init__(call.codec, call.correlation_id, call.client_id, call.request, call.counts)
        self._divert = divert

    def respond(self, message: Any) -> None:
        self._divert(message)

    def end(self, response: NoOp | CloseConnection) -> None:
        self._divert(response)
