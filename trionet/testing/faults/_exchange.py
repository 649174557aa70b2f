"""One intercepted call, from its request to its answer: what a fault works on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import trio

from ...broker.api._call import Call, DivertedCall
from ...broker.api._dispatch import RESPONSES, Handle
from ...broker.api._response_errors import errors_in
from ...net.wire._transmission import FileRange
from ...protocol import error_codes
from ...protocol._header import encode_response_header, frame
from ...protocol._wire import Chunk, Message
from ...server._request_channel import CloseConnection
from ..internals._broker_internals import NodeInside
from ..requests._seen_requests import SeenRequest

Then = Callable[[Any], None]
"""Given the answer of the API: a message, or how the call ends without one."""


class Exchange:
    """A call of a client.

    Args:
        node: the broker that it came to.
        call: its header, and the way back.
        handle: the API.
        seen: what tests are shown of it; told how it ends.

    Attributes:
        go_on: meets what faults are left, and has the API do what it was asked for.
    """

    def __init__(self, node: NodeInside, call: Call, handle: Handle, seen: SeenRequest) -> None:
        self.node = node
        self.call = call
        self.seen = seen
        self._handle = handle
        self.go_on: Callable[[], Awaitable[None]] = self.execute

    @property
    def message(self) -> Message:
        return self.seen.message

    async def execute(self, then: Then | None = None, message: Message | None = None) -> None:
        """Have the API do what it was asked for, or ``message`` instead; its answer goes on.

        Args:
            then: takes the answer, now or when it comes; by default it leaves.
            message: another request of the same API.
        """

        def take(answer: Any) -> None:
            (then or self.give)(answer)
            self.node.changes.unpark_all()

        diverted = DivertedCall(self.call, take)
        answer = await self._handle(self.message if message is None else message, diverted)
        if answer is not None:
            take(answer)

    def give(self, answer: Any) -> None:
        """Let an answer leave: a message, or how the call ends without one."""
        if isinstance(answer, RESPONSES):
            if not isinstance(answer, CloseConnection):
                self.seen.errors = ()
            self.call.request.respond(answer)
            return
        self.note(answer)
        # The API may have told it to the call that it was given in this one's place.
        self.call.has_errors = bool(self.seen.errors)
        self.call.respond(answer)

    def note(self, answer: Message) -> None:
        """Remember the errors in an answer."""
        self.seen.errors = tuple(error_codes.name_of(code) for code in errors_in(answer))

    def frame_of(self, answer: Message | bytes) -> bytes:
        """An answer as it would travel; one of bytes is the body behind the header."""
        codec = self.call.codec
        chunks: list[Chunk] = [encode_response_header(codec, self.call.correlation_id)]
        if isinstance(answer, bytes):
            chunks.append(answer)
        else:
            codec.encode_response(answer, chunks)
        return b"".join(map(plain, frame(chunks)))

    def start(self, work: Callable[[], Any]) -> None:
        """Do the rest of a call in a task of the broker's."""
        self.node.state.nursery.start_soon(self._guarded, work, name=f"fault on {self.seen.api}")

    async def _guarded(self, work: Callable[[], Any]) -> None:
        await trio.lowlevel.checkpoint()
        try:
            await work()
        except Exception as error:  # boundary: one call, in a task of its own
            self.call.fail(error)

    def __repr__(self) -> str:
        return f"<Exchange {self.seen.as_line()}>"


def plain(chunk: Chunk) -> bytes:
    """The bytes of a chunk, also of one that is in a file."""
    if isinstance(chunk, FileRange):
        return chunk.file.read_at(chunk.offset, chunk.count)
    return bytes(cast(bytes, chunk))


class Waiting:
    """A call that waits in the broker's purgatory for its time, for a test, or for the stop.

    (See :class:`trionet.broker.model._purgatory.DelayedOperation`.)
    """

    def __init__(self, exchange: Exchange, go_on: Callable[[], None]) -> None:
        self._exchange = exchange
        self._go_on = go_on

    @classmethod
    def add(
        cls, exchange: Exchange, key: object, go_on: Callable[[], None], seconds: float
    ) -> None:
        """Keep a call for some seconds, or until ``key`` is completed, then ``go_on``."""
        exchange.node.state.purgatory.add(
            cls(exchange, go_on), [key], trio.current_time() + seconds
        )

    @property
    def is_abandoned(self) -> bool:
        return not self._exchange.call.request.channel.is_open

    def is_satisfied_by(self, amount: int) -> bool:  # noqa: ARG002  # of the interface
        return False

    def complete(self) -> None:
        self._go_on()
