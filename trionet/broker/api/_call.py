"""One API call as its handler sees it: the request's header, and how to respond to it."""

# Compiled by mypyc.

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Iterable
from functools import partial
from typing import Any, Final, TypeVar, cast

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

# Requests and responses with more elements than this are decoded and encoded in steps. Fewer take
# less than 5 ms, the longest time that anything may hold the loop.
QUICK_ELEMENTS: Final = 1000
# How long a long call computes before it yields to other tasks.
STEP_SECONDS: Final = 0.001


class LongCallScheduler:
    """The part of :class:`._long_calls.LongCalls` that calls use.

    Args:
        clock: the clock that limits steps, in seconds.
        start: runs a call in a task of its own; its second argument returns the response.

    Attributes:
        line: a lock taken for each step, so that long calls take turns.
    """

    __slots__ = ("clock", "line", "start")

    def __init__(
        self,
        clock: Callable[[], float],
        start: Callable[[Call, Callable[[], Awaitable[Any]]], None],
    ) -> None:
        self.clock = clock
        self.start = start
        self.line = trio.Lock()


class Call:
    """The header of a request, and how to respond to it.

    Attributes:
        codec: decodes and encodes the messages of this API version.
        correlation_id: the client's number for the request.
        client_id: the client id; None for null.
        request: the frame and its connection.
        counts: counts the response and the errors in it.
        has_errors: whether the response must be searched for errors; a handler that counts its
            own errors sets it when there is one.
        scheduler: runs the call in steps if it turns out to be long.
        only_responds: the call has no effect besides its response, which need not be computed for
            a client that has disconnected.
        is_long: the call runs in steps in a task of its own; its handler must :meth:`pause`.
        needs_lists: the response is inspected before it is encoded, so arrays must be lists.
        errors: error codes in the :meth:`elements` generated so far; None if there are none.
    """

    __slots__ = (
        "_divert",
        "_pause_at",
        "client_id",
        "codec",
        "correlation_id",
        "counts",
        "errors",
        "has_errors",
        "is_long",
        "needs_lists",
        "only_responds",
        "request",
        "scheduler",
    )

    def __init__(
        self,
        codec: ApiVersionCodec,
        correlation_id: int,
        client_id: str | None,
        request: Request,
        counts: RouteCounts,
        scheduler: LongCallScheduler,
        only_responds: bool = False,
    ) -> None:
        self.codec = codec
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.request = request
        self.counts = counts
        self.has_errors = counts.looks_for_errors
        self.scheduler = scheduler
        self.only_responds = only_responds
        self.is_long = False
        self.needs_lists = False
        self.errors: list[int] | None = None
        self._pause_at = 0.0
        self._divert: Callable[[Any], None] | None = None

    @property
    def version(self) -> int:
        return self.codec.version

    @property
    def listener_name(self) -> str:
        """The client's listener; responses advertise that listener's addresses."""
        return self.request.listener_name

    # Long calls.

    def continue_as_long_call(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Continue the call in steps; ``work`` returns its response."""
        self.scheduler.start(self, work)

    def expect(self, count: int) -> None:
        """Declare how many elements the handler will process, before it has any effect.

        Raises:
            NeedsLongCall: there are too many for one step; the handler is called again in a long
                call.
        """
        if self.must_be_long(count):
            raise NeedsLongCall

    def must_be_long(self, count: int) -> bool:
        """Whether this many elements require a long call, and the call is not one yet."""
        return count > QUICK_ELEMENTS and not self.is_long and not self.needs_lists

    # Any, since mypyc accepts only a real list as a list.
    def elements(self, made: Iterable[T], count: int) -> Any:
        """Return an array of the response: a list, or in a long call one generated lazily.

        Args:
            made: generates the elements, which must not depend on later changes of state.
            count: the number of elements.
        """
        if not self.is_long or self.needs_lists:
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
        """Whether a long call has computed for a full step and should :meth:`pause`."""
        return self.is_long and self.scheduler.clock() >= self._pause_at

    async def pause(self) -> None:
        """Yield to other tasks. Always a checkpoint.

        Raises:
            Abandoned: the client of a call that only responds has disconnected.
        """
        if not self.is_long:
            await trio.lowlevel.checkpoint()
            return
        # Queued behind the other long calls, so that only one of them computes per iteration of
        # the loop.
        scheduler = self.scheduler
        async with scheduler.line:
            await trio.lowlevel.checkpoint()
        if self.only_responds and self.client_has_left:
            raise Abandoned
        self._pause_at = scheduler.clock() + STEP_SECONDS

    async def run_with_pauses(self, work: Generator[None, None, T]) -> T:
        """Run a generator that yields at every element, with pauses; return its result."""
        try:
            while (done := self._advance(work)) is None:
                await self.pause()
        finally:
            work.close()
        return done[0]

    def _advance(self, work: Generator[None, None, T]) -> tuple[T] | None:
        """Advance to the next pause (None) or to the result (in a tuple)."""
        try:
            while not self.must_pause():
                next(work)
        except StopIteration as stop:
            return (stop.value,)
        return None

    @property
    def client_has_left(self) -> bool:
        """Whether the client has closed its connection, or half-closed it.

        A muted channel is not read, so the kernel is asked. Kafka's clients never half-close; one
        that does still gets the responses that are computed at once.
        """
        channel = self.request.channel
        return not channel.is_open or channel.transport.peer_has_ended()

    # Responding.

    def encode(self, message: Any) -> Outgoing:
        """Encode the response as one frame, and count it."""
        counts = self.counts
        counts.responses += 1
        if self.has_errors:
            self.request.error_code = counts.count_errors(message)
        codec = self.codec
        chunks: list[Any] = [encode_response_header(codec, self.correlation_id)]
        codec.encode_response(message, chunks)
        return outgoing(cast("list[Chunk]", frame(chunks)))

    def encode_body(self, message: Any) -> bytes:
        """Encode a message without its header, to be cached and sent with :meth:`frame_body`."""
        chunks: list[Any] = []
        self.codec.encode_response(message, chunks)
        return b"".join(chunks)

    def frame_body(self, body: bytes) -> bytes:
        """Frame a cached response body that has no errors, and count the response."""
        self.counts.responses += 1
        header = encode_response_header(self.codec, self.correlation_id)
        return (len(header) + len(body)).to_bytes(4, "big") + header + body

    def respond(self, message: Any) -> None:
        """Respond to a delayed call; if its connection has closed it is only counted."""
        if self._divert is not None:
            self._divert(message)
        elif self.is_long and not self.needs_lists:
            self.scheduler.start(self, partial(_returned, message))
        elif self.request.channel.is_open:
            self.request.respond(self.encode(message))
        else:
            self.abandon()

    def abandon(self) -> None:
        """End a delayed call whose connection has closed, so that it is counted.

        (Kafka: SocketServer.processNewResponses.)
        """
        if self.request.response is None:
            self.request.respond(NO_OP)

    def end(self, response: NoOp | CloseConnection) -> None:
        """End a delayed call without a response message."""
        if self._divert is not None:
            self._divert(response)
        else:
            self.request.respond(response)

    def diverted(self, divert: Callable[[Any], None]) -> Call:
        """Return a copy whose delayed response is passed to a function, for tests.

        Args:
            divert: called with the response message, or with the NoOp or CloseConnection that ends
                the call.
        """
        copy = Call(
            self.codec,
            self.correlation_id,
            self.client_id,
            self.request,
            self.counts,
            self.scheduler,
            self.only_responds,
        )
        copy.is_long = self.is_long
        copy.needs_lists = self.needs_lists
        copy._divert = divert
        return copy

    def fail(self, error: Exception) -> None:
        """End a delayed call after an internal error by closing its connection."""
        logger.error(
            "unexpected error in %s from %s; closing it",
            self.codec.name,
            self.request.channel.id,
            exc_info=error,
        )
        if self.request.response is None:
            self.request.respond(CloseConnection(CloseReason.HANDLER_FAILED, repr(error)))


class NeedsLongCall(Exception):
    """Raised by a handler whose call must run as a long call."""


class Abandoned(Exception):
    """Raised in a long call whose client has disconnected."""


async def _returned(message: Any) -> Any:
    """Return a response message that exists already, as the work of a long call."""
    await trio.lowlevel.checkpoint()
    return message
