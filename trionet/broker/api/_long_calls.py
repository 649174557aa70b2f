"""Runs long calls in separate tasks and in steps, so that they do not block the event loop.

A request may have 250,000 elements, and its response ten times as many. Calls with more than
:data:`._call.QUICK_ELEMENTS` elements are decoded, handled and encoded in steps of a millisecond,
between which all other tasks run. They do not occupy a handler. Otherwise, a dozen such requests
would tie up all handlers and block every client, as can happen with Kafka's num.io.threads.

``response.max.bytes`` limits how much memory a response takes while it is encoded. The elements are
generated one by one and encoded immediately (:func:`trionet.protocol._stepping.elements`).

If a call has no effect other than its response, it is cancelled when its client disconnects or the
broker stops. Other calls always complete, since the client could not detect that they had not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from typing import Any, Final, cast

import trio

from ..._util._full_collections import full_collections
from ..._util._logging import get_logger
from ..._util._monotonic import perf_counter
from ...errors import WireFormatError
from ...net.wire._close_reason import CloseReason
from ...net.wire._transmission import Chunk, Outgoing, outgoing
from ...protocol._header import encode_response_header, frame, join_small
from ...protocol._lenient_text import is_text_error, lenient
from ...protocol._stepping import stepping
from ...server._request_channel import CloseConnection, NoOp
from ._call import Abandoned, Call, LongCallScheduler
from ._response_errors import find_errors

logger = get_logger("trionet.broker")

#: The maximum number of concurrent long calls that have no effect other than the response and,
#: separately, of other long calls, which may wait for a disk. Further calls wait, if possible as
#: undecoded frames, since each running call holds its elements in memory.
AT_A_TIME: Final = 8

Work = Callable[[], Awaitable[Any]]
"""The work of a long call; returns what a handler may return."""


class LongCalls:
    """The long calls of one node.

    Args:
        nursery: runs the calls.
        response_bytes_max: the maximum size of a response in memory (``response.max.bytes``),
            excluding records that are sent from files.
        is_virtual: whether to time steps by a simulated clock, so that they do not depend on the
            speed of the machine.

    Attributes:
        scheduler: the part of this object that the calls use.
    """

    def __init__(
        self, nursery: trio.Nursery, response_bytes_max: int, *, is_virtual: bool = False
    ) -> None:
        clock = _ticks() if is_virtual else perf_counter
        self.scheduler = LongCallScheduler(clock, self.start)
        self._nursery = nursery
        self._response_bytes_max = response_bytes_max
        self._responders = trio.CapacityLimiter(AT_A_TIME)
        self._others = trio.CapacityLimiter(AT_A_TIME)
        self._responding: set[trio.CancelScope] = set()
        self._is_stopping = False

    @property
    def under_way(self) -> int:
        """The number of running calls, excluding queued calls."""
        return self._responders.borrowed_tokens + self._others.borrowed_tokens

    def start(self, call: Call, work: Work) -> None:
        """Run a call in a separate task; ``work`` computes the response."""
        call.is_long = True
        self._nursery.start_soon(self._run, call, work, name=f"long {call.codec.name}")

    def stop(self) -> None:
        """Cancel all current and future calls that have no effect other than the response."""
        self._is_stopping = True
        for scope in list(self._responding):
            scope.cancel(reason="the node is stopping")

    async def decode(self, call: Call, position: int, elements_max: int) -> Any:
        """Decode a long request, or one with strings that are not valid UTF-8, in steps.

        Raises:
            WireFormatError: the request is malformed, or has too many elements.
            Abandoned: the client has disconnected, and the call has no effect other than its
                response.
        """
        decode, arguments = (
            call.codec.decode_request,
            (call.request.payload, position, elements_max),
        )
        try:
            return await call.run_with_pauses(stepping(decode, *arguments))
        except WireFormatError as error:
            if not is_text_error(error):
                raise
            return await call.run_with_pauses(stepping(lenient(decode), *arguments))

    async def _run(self, call: Call, work: Work) -> None:
        with trio.CancelScope() as scope:
            await trio.lowlevel.checkpoint()
            if call.only_responds:
                self._responding.add(scope)
                if self._is_stopping:
                    scope.cancel(reason="the node is stopping")
            try:
                async with self._responders if call.only_responds else self._others:
                    with full_collections.put_off():
                        await self._serve(call, work)
            except Abandoned:
                call.abandon()
            except WireFormatError as error:
                call.end(CloseConnection(CloseReason.INVALID_REQUEST, str(error)))
            except Exception as error:  # boundary: one call, in a task of its own
                call.fail(error)
            finally:
                self._responding.discard(scope)
        if scope.cancelled_caught and call.request.response is None:
            call.end(CloseConnection(CloseReason.SERVER_SHUTDOWN))

    async def _serve(self, call: Call, work: Work) -> None:
        if call.only_responds and call.client_has_left:
            raise Abandoned
        result = await work()
        if result is None:
            return  # the handler responds later
        if isinstance(result, (NoOp, CloseConnection)):
            call.end(result)
            return
        if call.needs_lists and not isinstance(result, Outgoing):
            call.respond(result)
            return
        response = result if isinstance(result, Outgoing) else await self._encode(call, result)
        if call.request.channel.is_open:
            call.request.respond(response)
        else:
            call.abandon()

    async def _encode(self, call: Call, message: Any) -> Outgoing | CloseConnection:
        """Encode the response as one frame, in steps; return CloseConnection if it is too large."""
        codec, counts = call.codec, call.counts
        out: list[Any] = [encode_response_header(codec, call.correlation_id)]
        packed: list[Any] = []
        size = 0
        work = stepping(codec.encode_response, message, out)
        try:
            for _ in work:
                if call.must_pause():
                    size += _pack(out, packed)
                    if size > self._response_bytes_max:
                        return self._too_large(call)
                    await call.pause()
        finally:
            work.close()
        if size + _pack(out, packed) > self._response_bytes_max:
            return self._too_large(call)
        counts.responses += 1
        if call.has_errors:
            found = await call.run_with_pauses(find_errors(message))
            call.request.error_code = counts.add_errors(found + (call.errors or []))
        return outgoing(cast("list[Chunk]", frame(packed)))

    def _too_large(self, call: Call) -> CloseConnection:
        detail = (
            f"the response to {call.codec.name} would exceed {self._response_bytes_max} bytes"
            " (response.max.bytes); request less at a time, or raise the limit"
        )
        logger.warning("closing %s: %s", call.request.channel.id, detail)
        return CloseConnection(CloseReason.RESPONSE_TOO_LARGE, detail)


def _ticks() -> Callable[[], float]:
    """Return a clock that advances by 10 µs with each call."""
    return partial(next, count(0.0, 0.000_01))


def _pack(out: list[Any], packed: list[Any]) -> int:
    """Move the chunks in ``out`` to ``packed``, joining small ones; return their size in memory."""
    joined = join_small(out)
    out.clear()  # the encoder keeps appending to the same list
    packed += joined
    return sum(len(chunk) for chunk in joined if isinstance(chunk, (bytes, memoryview, bytearray)))
