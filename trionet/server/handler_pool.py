"""The tasks that take requests from the request channel and answer them.

(Kafka: KafkaRequestHandlerPool, num.io.threads.) A handler never waits for an event of the
broker: a request that must wait is kept elsewhere and answered later through
:meth:`~trionet.server.request_channel.Request.respond`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from ..metrics.request_times import now_ns
from ..net.close_reason import CloseReason
from .request_channel import CloseConnection, Request, RequestChannel, Response

Handler = Callable[[Request], Awaitable[Response | None]]
"""Answers one request; None says that ``request.respond`` is (or will be) called instead."""

NeverWaits = Callable[[Request], bool]
"""Whether the handler is certain to come back from a request without a single checkpoint."""

# After a wake-up a handler takes this many requests before it lets the others run, or those of two
# milliseconds: a pass of the scheduler costs 5 µs, taking a request that waits a tenth of that.
REQUESTS_PER_WAKEUP_MAX: Final = 64
# A handler that has emptied its batch looks into it this often, a pass apart, before it waits for
# the next. To be woken and to wait again costs four passes, and a busy connection has its next
# request there after two or three: with eight connections this is a tenth of all work. More than 4
# would run alone, when the processors have parked.
EMPTY_LOOKS_BEFORE_WAIT: Final = 4


async def handle_requests(
    request_channel: RequestChannel,
    handler: Handler,
    is_wanted: Callable[[], bool],
    log: logging.LoggerAdapter[logging.Logger],
) -> None:
    """Run one handler task until it is cancelled, or not wanted: then it ends between requests."""
    incoming = request_channel.incoming
    while True:
        request_channel.idle_handlers += 1
        try:
            await incoming.receive()
        finally:
            request_channel.idle_handlers -= 1
        request_channel.received()
        empty_looks = 0
        while empty_looks < EMPTY_LOOKS_BEFORE_WAIT:
            if not is_wanted():
                return  # the batch, if it is one, is sent to another in its processor's next turn
            if request_channel.requests:
                empty_looks = 0
                await handle_waiting(request_channel, handler, log)
            else:
                empty_looks += 1
            # Until it looks again, the batch is not sent: no other handler is woken for what this
            # one will take.
            request_channel.looking_handlers += 1
            try:
                await trio.lowlevel.checkpoint()
            finally:
                request_channel.looking_handlers -= 1


def has_lone(
    request_channel: RequestChannel,
    never_waits: NeverWaits,
    log: logging.LoggerAdapter[logging.Logger],
) -> bool:
    """Whether one request waits that a processor may answer in its own turn."""
    try:
        return request_channel.has_lone(never_waits)
    except Exception:  # boundary: one request, which is then a handler's as all others
        log.exception("could not find out whether a request has to wait")
        return False


async def handle_waiting(  # noqa: ASYNC910 -- a checkpoint is before it, and behind it
    request_channel: RequestChannel, handler: Handler, log: logging.LoggerAdapter[logging.Logger]
) -> None:
    """Take the requests that wait, up to a bound, and send the responses."""
    at_ns = now_ns()
    until_ns = at_ns + request_channel.ns_per_wakeup_max
    for _ in range(REQUESTS_PER_WAKEUP_MAX):
        if at_ns >= until_ns:
            break
        request = request_channel.take()
        if request is None:
            break
        request.taken_ns = at_ns
        try:
            response = await handler(request)
            at_ns = request.handled_ns = now_ns()
            if response is not None:
                request.set_response(response, at_ns)
                request.responses.collect(request)
        except Exception as error:  # boundary: one request
            at_ns = request.handled_ns = now_ns()
            _close_after(request, error, log)
    request_channel.send_responses()


def _close_after(
    request: Request, error: Exception, log: logging.LoggerAdapter[logging.Logger]
) -> None:
    is_answered = request.response is not None
    log.error(
        "unexpected error while handling a request of %s; %s",
        request.channel.id,
        "it is answered already" if is_answered else "closing it",
        exc_info=error,
    )
    if not is_answered:
        request.respond(CloseConnection(CloseReason.HANDLER_FAILED, repr(error)))


class HandlerPool:
    """The handler tasks of a server; their number can change while it runs.

    Args:
        request_channel: where requests come from.
        handler: answers them.
        name: tasks are named ``<name>-0`` and so on.
        nursery: where they run.
        log: where errors of the handler go.
    """

    def __init__(
        self,
        request_channel: RequestChannel,
        handler: Handler,
        name: str,
        nursery: trio.Nursery,
        log: logging.LoggerAdapter[logging.Logger],
    ) -> None:
        self._request_channel = request_channel
        self._handler = handler
        self._name = name
        self._nursery = nursery
        self._log = log
        self._running: set[int] = set()
        self._wanted = 0
        self._available_ns = 0
        self._counted_at_ns = now_ns()

    def __len__(self) -> int:
        return self._wanted

    def available_seconds(self) -> float:
        """For how long there were tasks, in all: two of them make two seconds a second."""
        self._count_time()
        return self._available_ns / 1e9

    def _count_time(self) -> None:
        now = now_ns()
        self._available_ns += (now - self._counted_at_ns) * len(self._running)
        self._counted_at_ns = now

    def resize(self, count: int) -> None:
        """Have ``count`` tasks.

        Those that are too many end when they are idle, whichever are first.
        """
        self._count_time()
        self._wanted = count
        for index in range(count):
            if len(self._running) >= count:
                break
            if index not in self._running:
                self._running.add(index)
                self._nursery.start_soon(self._run, index, name=f"{self._name}-{index}")
        if len(self._running) > count:
            self._request_channel.wake_all_handlers()

    def _is_wanted(self) -> bool:
        return len(self._running) <= self._wanted

    async def _run(self, index: int) -> None:
        try:
            await handle_requests(self._request_channel, self._handler, self._is_wanted, self._log)
        finally:
            self._count_time()
            self._running.remove(index)
