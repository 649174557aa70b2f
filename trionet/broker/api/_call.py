"""An API call: the header of a request, with methods to respond to it."""

# Compiled by mypyc.

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable
from functools import partial
from typing import Any, Final, TypeVar, cast

import trio

from ..._util._logging import get_logger
from ...net.wire._close_reason import CloseReason
from ...net.wire._transmission import Chunk, Outgoing, outgoing
from ...protocol import _stepping as stepping
from ...protocol._codec import ApiVersionCodec
from ...protocol._header import encode_response_header, frame
from ...server._request_channel import NO_OP, CloseConnection, NoOp, Request
from ._request_counts import RouteCounts
from ._response_errors import errors_in

logger = get_logger("trionet.broker")

T = TypeVar("T")

# Requests and responses with more elements are decoded and encoded in steps. With fewer elements,
# this takes less than 5 ms, the longest time for which a task may block the event loop.
QUICK_ELEMENTS: Final = 1000
# The duration of a step, after which a long call yields to other tasks.
STEP_SECONDS: Final = 0.001


class LongCallScheduler:
    """The part of :class:`._long_calls.LongCalls` that calls use.

    Args:
        clock: the clock by which steps are timed, in seconds.
        start: starts a call in a separate task; its second argument computes the response.

    Attributes:
        line: a lock that a long call acquires between steps, so that long calls take turns.
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
    """An API call: the header of a request, with methods to respond to it.

    Attributes:
        codec: decodes requests and encodes responses of this API version.
        correlation_id: the correlation id of the request.
        client_id: the client id, or None.
        request: the request frame and its connection.
        counts: counts responses and their errors.
        has_errors: whether the response must be searched for errors; a handler that counts its
            own errors sets this attribute when an error occurs.
        scheduler: runs the call in steps if it is long.
        only_responds: whether the call has no effect other than its response and can therefore be
            abandoned if the client disconnects.
        is_long: whether the call runs in steps in a separate task; its handler must then
            :meth:`pause` between steps.
        needs_lists: whether the response is inspected before it is encoded, which requires its
            arrays to be lists.
        errors: the error codes found so far in lazily generated :meth:`elements`; None before the
            first element.
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
        """The name of the client's listener, whose addresses are advertised to the client."""
        return self.request.listener_name

    # Long calls.

    def continue_as_long_call(self, work: Callable[[], Awaitable[Any]]) -> None:
        """Continue the call in steps in a separate task; ``work`` computes the response."""
        self.scheduler.start(self, work)

    def expect(self, count: int) -> None:
        """Declare how many elements the handler will process, before it has any side effect.

        Raises:
            NeedsLongCall: there are too many elements for one step. The handler is then called
                again, as a long call.
        """
        if self.must_be_long(count):
            raise NeedsLongCall

    def must_be_long(self, count: int) -> bool:
        """Return whether a call with this many elements must be continued as a long call."""
        return count > QUICK_ELEMENTS and not self.is_long and not self.needs_lists

    # Any, since mypyc accepts no other type as a list.
    def elements(self, made: Iterable[T], count: int) -> Any:
        """Return an array for the response: a list or, in a long call, a lazily generated array.

        Args:
            made: generates the elements, which must not depend on state that may change while the
                response is being encoded.
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
        """Return whether a long call has used up the time of its step and must :meth:`pause`."""
        return self.is_long and self.scheduler.clock() >= self._pause_at

    async def pause(self) -> None:
        """Yield to other tasks. Always a checkpoint.

        Raises:
            Abandoned: the client has disconnected, and the call has no effect other than its
                response.
        """
        if not self.is_long:
            await trio.lowlevel.checkpoint()
            return
        # Queued behind the other long calls, so that one long call computes per iteration of the
        # event loop.
        scheduler = self.scheduler
        async with scheduler.line:
            await trio.lowlevel.checkpoint()
        if self.only_responds and self.client_has_left:
            raise Abandoned
        self._pause_at = scheduler.clock() + STEP_SECONDS

    async def run_with_pauses(self, work: Generator[object, None, T]) -> T:
        """Run a generator that yields after each element, with pauses, and return its result."""
        try:
            while (done := self._advance(work)) is None:
                await self.pause()
        finally:
            work.close()
        return done[0]

    def _advance(self, work: Generator[object, None, T]) -> tuple[T] | None:
        """Run ``work`` until a pause is due and return None, or return its result as a 1-tuple."""
        try:
            while not self.must_pause():
                next(work)
        except StopIteration as stop:
            return (stop.value,)
        return None

    @property
    def client_has_left(self) -> bool:
        """Whether the client has closed or half-closed its connection.

        A muted channel is not read, so this property queries the kernel. Kafka clients never
        half-close connections. A client that did would receive no responses to long calls that have
        no other effect.
        """
        channel = self.request.channel
        return not channel.is_open or channel.transport.peer_has_ended()

    # Responding.

    def encode(self, message: Any) -> Outgoing:
        """Encode a response as one frame, and count the response."""
        counts = self.counts
        counts.responses += 1
        if self.has_errors:
            self.request.error_code = counts.count_errors(message)
        codec = self.codec
        chunks: list[Any] = [encode_response_header(codec, self.correlation_id)]
        codec.encode_response(message, chunks)
        return outgoing(cast("list[Chunk]", frame(chunks)))

    def encode_body(self, message: Any) -> bytes:
        """Encode a response without its header, so that it can be cached for :meth:`frame_body`."""
        chunks: list[Any] = []
        self.codec.encode_response(message, chunks)
        return b"".join(chunks)

    def frame_body(self, body: bytes) -> bytes:
        """Frame a cached response body that contains no errors, and count the response."""
        self.counts.responses += 1
        header = encode_response_header(self.codec, self.correlation_id)
        return (len(header) + len(body)).to_bytes(4, "big") + header + body

    def respond(self, message: Any) -> None:
        """Send the response to a delayed call; :meth:`abandon` it if the connection has closed.

        A response that cannot be encoded fails only this call: one task may complete those of many
        clients.
        """
        if self._divert is not None:
            self._divert(message)
        elif self.is_long and not self.needs_lists:
            self.scheduler.start(self, partial(_returned, message))
        elif self.request.channel.is_open:
            try:
                encoded = self.encode(message)
            except Exception as error:  # boundary: one call, completed in the task of another
                self.fail(error)
            else:
                self.request.respond(encoded)
        else:
            self.abandon()

    def abandon(self) -> None:
        """End a call whose connection has closed; its request is still counted.

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
        """Return a copy that passes its delayed response to a function instead, for tests.

        Args:
            divert: called with the response message, or with the NoOp or CloseConnection object
                that ends the call.
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
        """Close the connection of a delayed call after an internal error."""
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
    """The work of a long call whose response already exists: return that response."""
    await trio.lowlevel.checkpoint()
    return message
