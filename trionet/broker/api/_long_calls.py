"""Calls that would hold the loop up: in tasks of their own, in steps, a few at a time.

Requests may have 250,000 elements and responses ten times as many. What has more than
:data:`._call.QUICK_ELEMENTS` is read, handled and written in steps of a millisecond, between which
all others have their turns. It does not keep a handler meanwhile, of which there are few: a dozen
such requests would keep everybody waiting (Kafka's num.io.threads can be taken that way).

What a response takes in memory is bounded while it is written, by ``response.max.bytes``: the
elements of a long one are made one by one and written at once (:func:`._stepping.elements`).

A call that only responds ends with its connection, and when the broker stops. One with effects goes
on to its end: it has arrived, and its client may never learn that it has not happened.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any, Final, cast

import trio

from ...errors import WireFormatError
from ...net.wire._close_reason import CloseReason
from ...net.wire._transmission import Chunk, Outgoing, outgoing
from ...protocol._header import encode_response_header, frame, join_small
from ...protocol._stepping import stepping
from ...server._request_channel import CloseConnection, NoOp
from ._call import Abandoned, Call
from ._response_errors import find_errors

logger = logging.getLogger("trionet.broker")

#: How many are under way that only respond, and as many of the others, which may wait for a disk.
#: What comes then waits as the frame that it came in. Each has its elements in memory.
AT_A_TIME: Final = 8

# Collections of everything are put off while a long call is under way: each would look at all of
# its elements, none of which is garbage, for a tenth of a second. But not for ever.
_NO_FULL_COLLECTION: Final = 1_000_000
_PUT_OFF_SECONDS_MAX: Final = 60.0

Work = Callable[[], Awaitable[Any]]
"""What a long call does: gives what a handler gives."""


class LongCalls:
    """The long calls of one node.

    Args:
        nursery: where they run.
        response_bytes_max: what a response may take before it is sent (``response.max.bytes``);
            record bytes that stay in files are not counted.
        is_virtual: nothing may depend on how fast the machine is.

    Attributes:
        clock: the time that steps are measured in, in seconds.
        line: where they queue up for their next step, first come first served.
    """

    def __init__(
        self, nursery: trio.Nursery, response_bytes_max: int, *, is_virtual: bool = False
    ) -> None:
        self.clock = _ticks() if is_virtual else time.perf_counter
        self._nursery = nursery
        self._response_bytes_max = response_bytes_max
        self.line = trio.Lock()
        self._responders = trio.CapacityLimiter(AT_A_TIME)
        self._others = trio.CapacityLimiter(AT_A_TIME)
        self._responding: set[trio.CancelScope] = set()
        self._is_stopping = False

    @property
    def under_way(self) -> int:
        """How many are served now; those that wait for their turn are not."""
        return self._responders.borrowed_tokens + self._others.borrowed_tokens

    def start(self, call: Call, work: Work) -> None:
        """Serve a call in a task of its own; what ``work`` gives is its response."""
        call.is_long = True
        self._nursery.start_soon(self._run, call, work, name=f"long {call.codec.name}")

    def respond(self, call: Call, message: Any) -> None:
        """Write the response of a long call that was kept waiting."""

        async def give() -> Any:
            await trio.lowlevel.checkpoint()
            return message

        self.start(call, give)

    def stop(self) -> None:
        """End the calls that only respond, and from now on each that begins."""
        self._is_stopping = True
        for scope in list(self._responding):
            scope.cancel(reason="the node is stopping")

    async def decode(self, call: Call, position: int, elements_max: int) -> Any:
        """The message of a long request, in steps.

        Raises:
            WireFormatError: it does not decode, or has too many elements.
            Abandoned: the client has gone.
        """
        decode = call.codec.decode_request
        return await call.paused(stepping(decode, call.request.payload, position, elements_max))

    async def _run(self, call: Call, work: Work) -> None:
        with trio.CancelScope() as scope:
            await trio.lowlevel.checkpoint()
            if call.only_responds:
                self._responding.add(scope)
                if self._is_stopping:
                    scope.cancel(reason="the node is stopping")
            try:
                async with self._responders if call.only_responds else self._others:
                    with _full_collections.put_off():
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
        if call.only_responds and call.has_gone:
            raise Abandoned
        given = await work()
        if given is None:
            return  # it responds later
        if isinstance(given, (NoOp, CloseConnection)):
            call.end(given)
            return
        if call.wants_lists and not isinstance(given, Outgoing):
            call.respond(given)
            return
        response = given if isinstance(given, Outgoing) else await self._encode(call, given)
        if call.request.channel.is_open:
            call.request.respond(response)
        else:
            call.abandon()

    async def _encode(self, call: Call, message: Any) -> Outgoing | CloseConnection:
        """The response as one frame, in steps."""
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
        counts.answers += 1
        if call.has_errors:
            found = await call.paused(find_errors(message))
            call.request.error_code = counts.add_errors(found + (call.errors or []))
        return outgoing(cast("list[Chunk]", frame(packed)))

    def _too_large(self, call: Call) -> CloseConnection:
        detail = (
            f"the response to {call.codec.name} would have more than the {self._response_bytes_max}"
            " bytes of response.max.bytes; ask for less at a time, or raise it"
        )
        logger.warning("%s is closed: %s", call.request.channel.id, detail)
        return CloseConnection(CloseReason.RESPONSE_TOO_LARGE, detail)


def _ticks() -> Callable[[], float]:
    """A clock that goes on by 10 µs with each look at it."""
    return partial(next, count(0.0, 0.000_01))


def _pack(out: list[Any], packed: list[Any]) -> int:
    """Move what was written to ``packed``, small pieces as one; the bytes that are in memory."""
    joined = join_small(out)
    out.clear()  # the encoder goes on with the same list
    packed += joined
    return sum(len(chunk) for chunk in joined if isinstance(chunk, (bytes, memoryview, bytearray)))


class _FullCollections:
    """Put off while anything long is under way in the process, whichever broker and thread it is
    of.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way = 0
        self._threshold = 0
        self._since = 0.0

    @contextmanager
    def put_off(self) -> Iterator[None]:
        with self._lock:
            now = time.monotonic()
            if not self._under_way:
                self._threshold = self._exchange(_NO_FULL_COLLECTION)
                self._since = now
            elif now - self._since > _PUT_OFF_SECONDS_MAX:
                gc.collect()
                self._since = now
            self._under_way += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way -= 1
                if not self._under_way:
                    self._exchange(self._threshold)

    def _exchange(self, threshold: int) -> int:
        young, middle, old = gc.get_threshold()
        gc.set_threshold(young, middle, threshold)
        return old


_full_collections: Final = _FullCollections()
