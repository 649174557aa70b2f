"""The tasks that take requests from the request channel and answer them.

(Kafka: KafkaRequestHandlerPool, num.io.threads.) A handler never waits for an event of the
broker: a request that must wait is kept elsewhere and answered later through
:meth:`~trionet.server.request_channel.Request.respond`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import trio

from ..net.close_reason import CloseReason
from .request_channel import CloseConnection, Request, RequestChannel, Response

logger = logging.getLogger("trionet.server")

Handler = Callable[[Request], Awaitable[Response | None]]
"""Answers one request; None says that ``request.respond`` is (or will be) called instead."""

# After a wake-up a handler takes this many requests before it lets the others run: a pass of the
# scheduler costs 5 µs, taking a request that waits costs a tenth of that.
REQUESTS_PER_WAKEUP_MAX = 64


async def handle_requests(request_channel: RequestChannel, handler: Handler) -> None:
    """Run one handler task until it is cancelled."""
    take = request_channel.take
    while True:
        await request_channel.wait()
        for _ in range(REQUESTS_PER_WAKEUP_MAX):
            request = take()
            if request is None:
                break
            try:
                response = await handler(request)
                if response is not None:
                    request.respond(response)
            except Exception as error:  # boundary: one request
                _close_after(request, error)
        request_channel.send_responses()


def _close_after(request: Request, error: Exception) -> None:
    logger.error(
        "unexpected error while handling a request of %s; closing it",
        request.channel.id,
        exc_info=error,
    )
    if request.response is None:
        request.respond(CloseConnection(CloseReason.ERROR, repr(error)))


def start_handlers(
    nursery: trio.Nursery,
    request_channel: RequestChannel,
    handler: Handler,
    *,
    count: int,
    name: str,
) -> None:
    """Start ``count`` handler tasks, named ``<name>-0`` and so on."""
    for index in range(count):
        nursery.start_soon(handle_requests, request_channel, handler, name=f"{name}-{index}")
