"""The HTTP listener for monitoring: Prometheus, the dashboard, an operator with curl.

Its clients may be hostile, and share the loop with the server. So everything is limited: the number
of connections (a new one displaces the one unused longest) and how fast they are accepted, the
size of a header and the time to receive it, the time for a client to read a response, and the share
of the loop's time for requests and pages, including rejected ones. Connections that have to wait
stay in the kernel's backlog.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from time import perf_counter

import attrs
import trio

from ...net.wire._endpoint import Endpoint, bind
from .._acceptor import OUT_OF_RESOURCES, RESOURCE_PAUSE_SECONDS
from ._http_exchange import HttpAnswer, HttpExchange, HttpRequest, HttpRules, Refused

logger = logging.getLogger("trionet.server.metrics")

FindPage = Callable[[HttpRequest], "Page"]
"""Returns the page at a path; raises :class:`._http_exchange.Refused` if there is none."""

_BACKLOG = 50
# A page is built in steps of about this length; between them the loop does something else.
_STEP_SECONDS = 0.001
_READ_BYTES = 4096
# What a peer that is not listened to any more may still send, so that it gets its answer first.
_LINGER_BYTES = 64 * 1024


@attrs.frozen
class Page:
    """What is answered with.

    Attributes:
        content_type: of the text.
        parts: its text, made piece by piece.
    """

    content_type: str
    parts: Iterator[str]


@attrs.frozen(kw_only=True)
class ListenerLimits:
    """How much a metrics listener gives to others.

    Attributes:
        connections_max: open ones; above, the one that was unused longest is closed.
        accept_pause_seconds: rest after each accepted one.
        header_seconds_max: from the begin of a connection, or of a request, to the end of its
            header; the TLS handshake included, but not the time in which we are at rest.
        idle_seconds_max: from one request to the next.
        write_seconds_max: until an answer must be written.
        linger_seconds_max: for which a connection that is closed is still read.
        loop_share_max: share of the loop's time that reading requests, refusing them and making
            pages may take.
    """

    connections_max: int = 32
    accept_pause_seconds: float = 0.02
    header_seconds_max: float = 5.0
    idle_seconds_max: float = 120.0
    write_seconds_max: float = 10.0
    linger_seconds_max: float = 1.0
    loop_share_max: float = 0.1


class LoopShare:
    """Gives one turn after the other, and rests between them: all work together has its share.

    Args:
        share_max: of the loop's time, above 0 and at most 1.
    """

    def __init__(self, share_max: float) -> None:
        self._rest_per_second = 1 / share_max - 1
        self._lock = trio.StrictFIFOLock()
        self._free_at = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until nobody else has the turn and what was spent before is rested from.

        The block may let others run; only what it does in :meth:`spending` counts.
        """
        async with self._lock:
            await trio.sleep_until(self._free_at)
            yield

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Count the time of the block, in which nothing else may run."""
        began = perf_counter()
        try:
            yield
        finally:
            rest = (perf_counter() - began) * self._rest_per_second
            self._free_at = max(self._free_at, trio.current_time()) + rest


@attrs.define(eq=False, slots=False)
class MetricsListener:
    """Serves pages on one address.

    Args:
        find_page: what is at a path.
        endpoint: where to listen; port 0 takes a free one.
        rules: who may ask.
        tls: makes the TLS context of a new connection; None serves plain HTTP.
        limits: how much it gives to others.
    """

    _find_page: FindPage
    _endpoint: Endpoint
    _rules: HttpRules = attrs.field(kw_only=True)
    _tls: Callable[[], ssl.SSLContext] | None = attrs.field(default=None, kw_only=True)
    _limits: ListenerLimits = attrs.field(factory=ListenerLimits, kw_only=True)
    # What ends each connection, in the order of their last use.
    _connections: dict[trio.CancelScope, None] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._share = LoopShare(self._limits.loop_share_max)

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    async def run(
        self, *, task_status: trio.TaskStatus[Endpoint] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until cancelled; then every connection is closed.

        Reports ``started`` with the endpoint that was bound.

        Raises:
            OSError: the address cannot be listened on.
        """
        sock = bind(self._endpoint, backlog=_BACKLOG, receive_buffer_bytes=-1)
        async with (
            trio.SocketListener(trio.socket.from_stdlib_socket(sock)) as listener,
            trio.open_nursery() as nursery,
        ):
            task_status.started(self._endpoint.with_port(sock.getsockname()[1]))
            await self._accept(listener, nursery)

    async def _accept(self, listener: trio.SocketListener, nursery: trio.Nursery) -> None:
        while True:
            try:
                stream = await listener.accept()
            except OSError as error:
                if error.errno not in OUT_OF_RESOURCES:
                    raise
                message = "cannot accept a connection for metrics: %s; waiting"
                logger.error(message, error)  # noqa: TRY400 - no bug, no traceback
                await trio.sleep(RESOURCE_PAUSE_SECONDS)
                continue
            self._make_room()
            scope = trio.CancelScope()
            self._connections[scope] = None
            nursery.start_soon(self._serve, scope, stream, name="metrics-connection")
            await trio.sleep(self._limits.accept_pause_seconds)

    def _make_room(self) -> None:
        """Close what was unused longest, if there are as many connections as there may be."""
        if len(self._connections) >= self._limits.connections_max:
            unused = next(iter(self._connections))
            del self._connections[unused]
            unused.cancel(reason="another connection needs its place")

    def _was_used(self, scope: trio.CancelScope) -> None:
        if scope in self._connections:  # or it was told to go, and does not know it yet
            del self._connections[scope]
            self._connections[scope] = None

    async def _serve(self, scope: trio.CancelScope, plain: trio.SocketStream) -> None:
        """One connection, from its begin to its end."""
        try:
            with scope:
                exchange = HttpExchange(self._rules)
                stream: trio.abc.Stream = plain
                if self._tls is not None:
                    stream = trio.SSLStream(
                        plain, self._tls(), server_side=True, https_compatible=True
                    )
                async with stream:
                    while await self._serve_one(exchange, stream):
                        self._was_used(scope)
                    await self._linger(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the peer went away, or does not speak TLS
        except Exception:  # boundary: one connection
            logger.exception("unexpected error on a connection for metrics; closing it")
        finally:
            self._connections.pop(scope, None)

    async def _serve_one(self, exchange: HttpExchange, stream: trio.abc.Stream) -> bool:
        """One request and its answer; whether another may follow."""
        try:
            request = await self._receive(exchange, stream)
            if request is None:
                return False
            answer = await self._build(request)
        except Refused as refused:
            answer = refused.answer
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        except Exception:  # boundary: one page
            logger.exception("unexpected error while making a page for metrics")
            answer = HttpAnswer(b"an error of ours\n", status=HTTPStatus.INTERNAL_SERVER_ERROR)
        with self._share.spending():
            data = exchange.answer(answer)
        with trio.move_on_after(self._limits.write_seconds_max) as too_slow:
            await stream.send_all(data)
        return not too_slow.cancelled_caught and not exchange.must_close

    async def _receive(self, exchange: HttpExchange, stream: trio.abc.Stream) -> HttpRequest | None:
        """The next request; None if none comes.

        Raises:
            Refused: it does not fit, or takes too long.
        """
        limits = self._limits
        must_hurry = exchange.has_begun or not exchange.answers
        seconds = limits.header_seconds_max if must_hurry else limits.idle_seconds_max
        while True:
            # Many who send much make all wait for their turns: that is not held against anyone.
            async with self._share.turn():
                with self._share.spending():
                    try:
                        request = exchange.next_request()
                    except EOFError:
                        return None
            if request is not None:
                return request
            if exchange.has_begun and not must_hurry:
                must_hurry = True
                seconds = limits.header_seconds_max
            began = trio.current_time()
            with trio.move_on_after(seconds) as deadline:
                data = await stream.receive_some(_READ_BYTES)
            if deadline.cancelled_caught:
                break
            seconds = max(0.0, seconds - (trio.current_time() - began))
            exchange.receive(data)
        if not exchange.has_begun:
            return None
        raise exchange.too_slow()

    async def _build(self, request: HttpRequest) -> HttpAnswer:
        """Make a page, one at a time, and not too many of them.

        Raises:
            Refused: there is none at this path.
        """
        with self._share.spending():
            page = self._find_page(request)
        body = bytearray()
        async with self._share.turn():
            is_whole = False
            while not is_whole:
                with self._share.spending():
                    is_whole = _build_on(page, body)
                if not is_whole:
                    await trio.lowlevel.checkpoint()
        return HttpAnswer(bytes(body), page.content_type)

    async def _linger(self, stream: trio.abc.Stream) -> None:
        """Let a peer that is still sending read its answer: a close would reset the connection."""
        if not isinstance(stream, trio.SocketStream):
            return  # TLS says goodbye by itself
        with trio.move_on_after(self._limits.linger_seconds_max):
            await stream.send_eof()
            left = _LINGER_BYTES
            while left > 0 and (data := await stream.receive_some(_READ_BYTES)):
                left -= len(data)


def _build_on(page: Page, body: bytearray) -> bool:
    """Make as much of a page as fits into a step; whether it is whole now."""
    began = perf_counter()
    for part in page.parts:
        body += part.encode()
        if perf_counter() - began >= _STEP_SECONDS:
            return False
    return True
