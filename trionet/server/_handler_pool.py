"""The pool of tasks that take requests from the request channel and handle them.

(Kafka: KafkaRequestHandlerPool, num.io.threads.) A handler never waits for an event in the broker.
A request that must wait for one is stored elsewhere, and gets its response later through
:meth:`~trionet.server._request_channel.Request.respond`.
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from .._util._cancellation import Checkpoint
from ..metrics._request_times import now_ns
from ..net.wire._close_reason import CloseReason
from ._request_channel import CloseConnection, Request, RequestChannel, Response

Handler = Callable[[Request], Awaitable[Response | None]]
"""Handles one request. Returns its response, or None if ``request.respond`` provides it."""

NeverWaits = Callable[[Request], bool]
"""Returns whether the handler is certain to handle a request without a checkpoint."""

# After a wake-up a handler takes up to this many requests, or those of two milliseconds, before it
# lets other tasks run: a scheduler pass costs as much as taking ten waiting requests. After every
# 64 of them the responses are sent, which are still in the CPU's cache then.
REQUESTS_PER_WAKEUP_MAX: Final = 256
REQUESTS_PER_BATCH: Final = 64
# For the first eighth of that time the sockets are polled as well each time that responses are
# sent. With eight connections this makes every second pass unnecessary. For longer it would keep
# the connections of the other processors waiting: the 99th percentile of 64 producers on three
# processors was twice as long.
POLLING_SHARE: Final = 8
# A handler that has emptied the queue checks it this many times, one scheduler pass apart, before
# it waits to be woken. Being woken and waiting again costs four passes, and a busy connection
# delivers its next request after two or three; with eight connections this saves a tenth of all
# work. Checks beyond the fourth would run alone, after the processors have parked.
EMPTY_LOOKS_BEFORE_WAIT: Final = 4


async def handle_requests(
    request_channel: RequestChannel,
    handler: Handler,
    is_wanted: Callable[[], bool],
    log: logging.LoggerAdapter[logging.Logger],
) -> None:
    """Run a handler task until it is cancelled or, between requests, is no longer wanted."""
    incoming = request_channel.incoming
    checkpoint = Checkpoint()
    while True:
        request_channel.idle_handlers += 1
        try:
            batch = await incoming.receive()
        finally:
            request_channel.idle_handlers -= 1
        request_channel.received(batch)
        empty_looks = 0
        while empty_looks < EMPTY_LOOKS_BEFORE_WAIT:
            if not is_wanted():
                return  # requests that are left go to another handler in the next turn
            if len(request_channel):
                empty_looks = 0
                await handle_waiting(request_channel, handler, log)
            else:
                empty_looks += 1
            # No handler is woken while this one is about to check the queue again and will take
            # the requests itself.
            request_channel.looking_handlers += 1
            try:
                await checkpoint
            finally:
                request_channel.looking_handlers -= 1


async def handle_waiting(  # noqa: ASYNC910 -- callers have a checkpoint before and after it
    request_channel: RequestChannel,
    handler: Handler,
    log: logging.LoggerAdapter[logging.Logger],
    requests_max: int = REQUESTS_PER_WAKEUP_MAX,
) -> None:
    """Handle waiting requests, up to the limits per wake-up, and send their responses."""
    at_ns = now_ns()
    until_ns = at_ns + request_channel.ns_per_wakeup_max
    polls_until_ns = at_ns + request_channel.ns_per_wakeup_max // POLLING_SHARE
    remaining = requests_max
    while remaining > 0 and at_ns < until_ns:
        for _ in range(min(remaining, REQUESTS_PER_BATCH)):
            request = request_channel.take() if at_ns < until_ns else None
            if request is None:
                break
            remaining -= 1
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
        request_channel.send_responses(at_ns < polls_until_ns)
        if not len(request_channel):
            break
        at_ns = now_ns()


def _close_after(
    request: Request, error: Exception, log: logging.LoggerAdapter[logging.Logger]
) -> None:
    has_response = request.response is not None
    log.error(
        "unexpected error while handling a request from %s; %s",
        request.channel.id,
        "it already has a response" if has_response else "closing the connection",
        exc_info=error,
    )
    if not has_response:
        request.respond(CloseConnection(CloseReason.HANDLER_FAILED, repr(error)))


class HandlerPool:
    """The handler tasks of a server, whose number can change while the server is running.

    Args:
        request_channel: the queue from which the tasks take requests.
        handler: handles each request.
        name: the prefix of the task names, which are ``<name>-0`` and so on.
        nursery: the nursery in which the tasks run.
        log: the log for exceptions that the handler raises.
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
        """Return the total run time of all tasks, which grows by one second per second and task."""
        self._count_time()
        return self._available_ns / 1e9

    def _count_time(self) -> None:
        now = now_ns()
        self._available_ns += (now - self._counted_at_ns) * len(self._running)
        self._counted_at_ns = now

    def waits_for(self, task: trio.lowlevel.Task) -> bool:
        """Return whether ``task`` is one of the server's, or one that such a task waits for."""
        nursery = task.parent_nursery
        while nursery is not None and nursery is not self._nursery:
            nursery = nursery.parent_task.parent_nursery
        return nursery is not None

    def resize(self, count: int) -> None:
        """Change the number of tasks to ``count``.

        Surplus tasks end when they become idle, in no particular order.
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
