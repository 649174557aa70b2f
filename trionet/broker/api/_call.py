"""One API call as a handler sees it: who asks, in which version, and where the answer goes."""

# Compiled by mypyc.

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import Any, Final, Protocol, TypeVar, cast

import trio

from ...net.wire._close_reason import CloseReason
from ...net.wire._transmission import Chunk, Outgoing, outgoing
from ...protocol import _stepping as stepping
from ...protocol._codec import ApiVersionCodec
from ...protocol._header import encode_response_header, frame
from ...server._request_channel import NO_OP, CloseConnection, NoOp, Request
from ._request_counts import RouteCounts
from ._response_errors import errors_in

logger = logging.getLogger("trionet.broker")

T = TypeVar("T")

# A response with more elements than this is written in steps, a request with more of them read in
# steps: fewer take less than the 5 ms for which nothing may hold the loop.
QUICK_ELEMENTS: Final = 1000
# How long a long call computes before the others have a turn.
STEP_SECONDS: Final = 0.001


class LongResponses(Protocol):
    """Writes responses in steps; see :class:`._long_calls.LongCalls`."""

    clock: Callable[[], float]
    line: trio.Lock

    def start(self, call: Call, work: Callable[[], Awaitable[Any]], /) -> None: ...

    def respond(self, call: Call, message: Any, /) -> None: ...


class Call:
    """The header of a request, and how to answer it.

    Attributes:
        codec: reads and writes the messages of this API version.
        correlation_id: the client's number for the call.
        client_id: what the client calls itself; None for null.
        request: the frame and the connection it came on.
        counts: where its answer and the errors in it are counted.
        has_errors: the answer is to be searched for errors; a handler that knows of one says so.
        long_calls: serves it when it :meth:`takes_long`.
        only_responds: nothing but its response comes of it, which is not made for a client that
            has gone.
        is_long: it is served in steps, in a task of its own, where handlers have to :meth:`pause`.
        wants_lists: the response is inspected before it is encoded, and is made in one piece.
        errors: those in the :meth:`elements` that were made so far; None: none were made.
    """

    __slots__ = (
        "_pause_at",
        "client_id",
        "codec",
        "correlation_id",
        "counts",
        "errors",
        "has_errors",
        "is_long",
        "long_calls",
        "only_responds",
        "request",
        "wants_lists",
    )

    def __init__(
        self,
        codec: ApiVersionCodec,
        correlation_id: int,
        client_id: str | None,
        request: Request,
        counts: RouteCounts,
        long_calls: LongResponses,
        only_responds: bool = False,
    ) -> None:
        self.codec = codec
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.request = request
        self.counts = counts
        self.has_errors = counts.looks_for_errors
        self.long_calls = long_calls
        self.only_responds = only_responds
        self.is_long = False
        self.wants_lists = False
        self.errors: list[int] | None = None
        self._pause_at = 0.0

    @property
    def version(self) -> int:
        return self.codec.version

    @property
    def listener_name(self) -> str:
        """The listener the client came through; answers name that listener's address."""
        return self.request.listener_name

    # Long calls.

    def takes_long(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Go on with it in steps; what ``work`` returns is its response."""
        self.long_calls.start(self, work)

    def expect(self, count: int) -> None:
        """Say how many elements there are to work through, before what must not be done twice.

        Raises:
            TakesLong: too many to do so in one go; the handler is called again, in steps.
        """
        if self.must_be_long(count):
            raise TakesLong

    def must_be_long(self, count: int) -> bool:
        """Whether so many elements are too many for a call that is none yet."""
        return count > QUICK_ELEMENTS and not self.is_long and not self.wants_lists

    def elements(self, made: Iterable[T], count: int) -> Any:  # compiled, no list is but a list
        """An array of the response: a list, or in a long call one that is made as it is written.

        Args:
            made: makes the elements; each stands for itself, whatever changes meanwhile.
            count: how many it makes.
        """
        if not self.is_long or self.wants_lists:
            return list(made)
        return stepping.elements(count, self._counted(made) if self.has_errors else made)

    def _counted(self, made: Iterable[T]) -> Iterable[T]:
        errors = self.errors
        if errors is None:
            errors = self.errors = []
        for element in made:
            errors += errors_in(element)
            yield element

    def must_pause(self) -> bool:
        """Whether a handler has computed for so long that others are to have a turn."""
        return self.is_long and self.long_calls.clock() >= self._pause_at

    async def pause(self) -> None:
        """Let others have a turn. Always a checkpoint.

        Raises:
            Abandoned: the client has gone, and with it the use of a call that only responds.
        """
        if not self.is_long:
            await trio.lowlevel.checkpoint()
            return
        # In line with the other long calls: no more than one of them computes in a turn.
        long_calls = self.long_calls
        async with long_calls.line:
            await trio.lowlevel.checkpoint()
        if self.only_responds and self.has_gone:
            raise Abandoned
        self._pause_at = long_calls.clock() + STEP_SECONDS

    async def paused(self, work: Generator[None, None, T]) -> T:
        """The result of a computation that stops at every element, with pauses in between."""
        try:
            while (done := self._go_on(work)) is None:
                await self.pause()
        finally:
            work.close()
        return done[0]

    def _go_on(self, work: Generator[None, None, T]) -> tuple[T] | None:
        """Compute up to the next pause, or to the result."""
        try:
            while not self.must_pause():
                next(work)
        except StopIteration as stop:
            return (stop.value,)
        return None

    @property
    def has_gone(self) -> bool:
        """Whether the client has closed its connection, or its half of it.

        An end behind a request that is muted is not read, so the kernel is asked. Kafka's clients
        never close one half: who does gets the responses that take no time.
        """
        channel = self.request.channel
        return not channel.is_open or channel.transport.peer_has_ended()

    # Responding.

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
        if self.is_long and not self.wants_lists:
            self.long_calls.respond(self, message)
        elif self.request.channel.is_open:
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


class TakesLong(Exception):
    """A call has to be served in steps."""


class Abandoned(Exception):
    """The client of a long call has gone."""


class DivertedCall(Call):
    """A call whose late answer somebody else takes, who decides what becomes of it (for tests).

    Args:
        call: the call as it is.
        divert: given the answer, a message, or how the call ends without one.
    """

    __slots__ = ("_divert",)

    def __init__(self, call: Call, divert: Callable[[Any], None]) -> None:
        super().__init__(
            call.codec,
            call.correlation_id,
            call.client_id,
            call.request,
            call.counts,
            call.long_calls,
            call.only_responds,
        )
        self.is_long = call.is_long
        self.wants_lists = call.wants_lists
        self._divert = divert

    def respond(self, message: Any) -> None:
        self._divert(message)

    def end(self, response: NoOp | CloseConnection) -> None:
        self._divert(response)
