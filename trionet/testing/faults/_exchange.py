"""An intercepted request and its response, to which faults are applied."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import trio

from ...broker.api._call import Call
from ...broker.api._dispatch import RESPONSES, Handle
from ...broker.api._response_errors import errors_in
from ...net.wire._transmission import FileRange
from ...protocol import error_codes
from ...protocol._header import encode_response_header, frame
from ...protocol._wire import Chunk, Message
from ...server._request_channel import CloseConnection
from .._internals import NodeInternals
from .._seen_requests import SeenRequest

# pytest leaves the frames of this module out of its reports.
__tracebackhide__ = True

Then = Callable[[Any], None]
"""A callback for a handler's response: a message, or one of :data:`RESPONSES`."""


class Exchange:
    """An intercepted API call.

    Args:
        node: the broker that received the request.
        call: the request with its header, and the methods for responding to it.
        handle: the API's handler.
        seen: the request as tests see it; the outcome is added to it.

    Attributes:
        proceed: applies the remaining faults, then handles the request normally.
    """

    def __init__(self, node: NodeInternals, call: Call, handle: Handle, seen: SeenRequest) -> None:
        self.node = node
        self.call = call
        self.seen = seen
        self._handle = handle
        self.proceed: Callable[[], Awaitable[None]] = self.execute

    @property
    def message(self) -> Message:
        return self.seen.message

    async def execute(self, then: Then | None = None, message: Message | None = None) -> None:
        """Call the API's handler with the request, or with ``message`` in its place.

        Args:
            then: called with the response; by default, the response is sent.
            message: another request for the same API; None for the intercepted request.
        """

        def take(response: Any) -> None:
            (then or self.respond)(response)
            self.node.changes.unpark_all()

        diverted = self.call.diverted(take)
        response = await self._handle(self.message if message is None else message, diverted)
        if response is not None:
            take(response)

    def respond(self, response: Any) -> None:
        """End the call with a response: a message, or one of :data:`RESPONSES`."""
        if isinstance(response, RESPONSES):
            if not isinstance(response, CloseConnection):
                self.seen.errors = ()
            self.call.request.respond(response)
            return
        self.note(response)
        # The handler may have set this on the diverted call that it was given instead.
        self.call.has_errors = bool(self.seen.errors)
        self.call.respond(response)

    def note(self, response: Message) -> None:
        """Record the errors in a response."""
        self.seen.errors = tuple(error_codes.name_of(code) for code in errors_in(response))

    def frame_of(self, response: Message | bytes) -> bytes:
        """Encode a response as a frame; a bytes response is taken as the encoded body."""
        codec = self.call.codec
        chunks: list[Chunk] = [encode_response_header(codec, self.call.correlation_id)]
        if isinstance(response, bytes):
            chunks.append(response)
        else:
            codec.encode_response(response, chunks)
        return b"".join(map(bytes_of, frame(chunks)))

    def start(self, work: Callable[[], Any]) -> None:
        """Run ``work`` as a task in the broker's nursery; if it raises, the call fails."""
        self.node.state.nursery.start_soon(self._guarded, work, name=f"fault on {self.seen.api}")

    async def _guarded(self, work: Callable[[], Any]) -> None:
        await trio.lowlevel.checkpoint()
        try:
            await work()
        except Exception as error:  # boundary: one call, in a task of its own
            self.call.fail(error)

    def __repr__(self) -> str:
        return f"<Exchange {self.seen.as_line()}>"


def bytes_of(chunk: Chunk) -> bytes:
    """Return a chunk as bytes, reading a file range from its file."""
    if isinstance(chunk, FileRange):
        return chunk.file.read_at(chunk.offset, chunk.count)
    return bytes(cast(bytes, chunk))


class DelayedExchange:
    """A call held in the broker's purgatory until its deadline, its completion or broker shutdown.

    See :class:`trionet.broker.model._purgatory.DelayedOperation`. By default, the call is held
    although its client may disconnect: like a broker that hangs, it handles what it has read.

    Args:
        exchange: the call.
        proceed: continues with the call.
        only_responds: whether ``proceed`` does nothing but respond, so that the call need not be
            held without its client.
    """

    def __init__(
        self, exchange: Exchange, proceed: Callable[[], None], *, only_responds: bool = False
    ) -> None:
        self._exchange = exchange
        self._proceed = proceed
        self._only_responds = only_responds

    def hold(self, key: object, seconds: float) -> None:
        """Proceed after ``seconds``, or as soon as ``key`` is completed."""
        deadline = trio.current_time() + seconds
        self._exchange.node.state.purgatory.add(self, [key], deadline)

    @property
    def is_abandoned(self) -> bool:
        return self._only_responds and not self._exchange.call.request.channel.is_open

    def is_satisfied_by(self, amount: int) -> bool:  # noqa: ARG002  # of the interface
        return False

    def complete(self) -> None:
        self._proceed()
