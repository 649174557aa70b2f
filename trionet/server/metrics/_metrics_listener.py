"""The HTTP listener for monitoring, for clients such as Prometheus, the dashboard and curl.

Clients may be hostile, and share the loop with the server. So everything is limited: the number of
connections (a new connection displaces the least recently used one), the rate of accepting, the
size of a header and the time to receive it, the time for a client to read a response, and the share
of the loop's time for requests and pages, including rejected requests, TLS handshakes and
decryption. Waiting connections stay in the kernel's backlog.
"""

from __future__ import annotations

import math
import socket
import ssl
import zlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from http import HTTPStatus

import attrs
import trio

from ..._util._logging import get_logger
from ..._util._monotonic import perf_counter
from ...net.wire._endpoint import Endpoint, bind
from .._acceptor import OUT_OF_RESOURCES, RESOURCE_PAUSE_SECONDS
from .._recorder import SECONDS_BETWEEN_LINES
from ._http_connection import HttpConnection
from ._http_exchange import Headers, HttpExchange, HttpRequest, HttpResponse, HttpRules, Refused

logger = get_logger("trionet.server.metrics")

FindPage = Callable[[HttpRequest], "Page"]
"""Returns the page at a path; raises :class:`._http_exchange.Refused` for an unknown path."""

_BACKLOG = 50
# A page is built in steps of about this length; between them the loop does something else.
_STEP_SECONDS = 0.001
# The lowest level shrinks the text of metrics to a twelfth, and the default one, which takes seven
# times as long, to a fifteenth.
_GZIP_LEVEL = 1
# For zlib: with the header and the trailer of gzip.
_GZIP = zlib.MAX_WBITS | 16
_ENCODED: Headers = (("Content-Encoding", "gzip"),)
_VARY: Headers = (("Vary", "Accept, Accept-Encoding"),)
# How much is still read from a peer before its connection closes, so that it gets its response.
_LINGER_BYTES = 64 * 1024


@attrs.frozen
class Page:
    """The content of a response.

    Attributes:
        content_type: the media type of the text.
        parts: the text, generated in parts.
    """

    content_type: str
    parts: Iterator[str]


@attrs.frozen(kw_only=True)
class ListenerLimits:
    """The limits that protect a server from the clients of its metrics listener.

    Attributes:
        connections_max: the maximum number of open connections; another connection displaces the
            least recently used one.
        accept_pause_seconds: the pause after each accepted connection.
        header_seconds_max: the maximum time from the start of a connection or a request to the end
            of the request header; includes the TLS handshake, but not the pauses for
            ``loop_share_max``.
        idle_seconds_max: the maximum time between two requests.
        write_seconds_max: the maximum time to write a response.
        linger_seconds_max: how long data is read and dropped before a connection is closed.
        loop_share_max: the share of the loop's time for TLS handshakes, for reading, decrypting and
            rejecting requests, and for building pages.
    """

    connections_max: int = 32
    accept_pause_seconds: float = 0.02
    header_seconds_max: float = 5.0
    idle_seconds_max: float = 120.0
    write_seconds_max: float = 10.0
    linger_seconds_max: float = 1.0
    loop_share_max: float = 0.1


class LoopShare:
    """A limit on the share of the loop's time: one turn at a time, with pauses between turns.

    Args:
        share_max: the share of the loop's time, above 0 and at most 1.
    """

    def __init__(self, share_max: float) -> None:
        self._rest_per_second = 1 / share_max - 1
        self._lock = trio.StrictFIFOLock()
        self._free_at = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for any other turn to end, and for the pause that the time already spent requires.

        The block may let other tasks run; only the time in :meth:`spending` counts.
        """
        async with self._lock:
            await trio.sleep_until(self._free_at)
            yield

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Count the time of the block, in which no other task may run."""
        began = perf_counter()
        try:
            yield
        finally:
            rest = (perf_counter() - began) * self._rest_per_second
            self._free_at = max(self._free_at, trio.current_time()) + rest


@attrs.define(eq=False, slots=False)
class MetricsListener:
    """An HTTP server for pages on one address.

    Args:
        find_page: returns the page for a request.
        rules: the requirements for requests.
        tls: returns the TLS context of a new connection; None serves plain HTTP.
        limits: the limits for clients.
        admits: returns whether to serve a new connection, given its socket; None to serve all.
    """

    _find_page: FindPage
    _rules: HttpRules = attrs.field(kw_only=True)
    _tls: Callable[[], ssl.SSLContext] | None = attrs.field(default=None, kw_only=True)
    _limits: ListenerLimits = attrs.field(factory=ListenerLimits, kw_only=True)
    _admits: Callable[[trio.socket.SocketType], bool] | None = attrs.field(
        default=None, kw_only=True
    )
    # The cancel scope of each connection, in the order of their last use.
    _connections: OrderedDict[trio.CancelScope, None] = attrs.field(factory=OrderedDict, init=False)

    def __attrs_post_init__(self) -> None:
        self._share = LoopShare(self._limits.loop_share_max)

    async def run(
        self,
        endpoint: Endpoint,
        *,
        task_status: trio.TaskStatus[Endpoint] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve on an address until cancelled, then close every connection.

        Reports ``started`` with the bound endpoint.

        Args:
            endpoint: the endpoint to listen on; port 0 selects a free port.
            task_status: passed by :meth:`trio.Nursery.start`.

        Raises:
            OSError: the endpoint cannot be bound.
        """
        sock = bind(endpoint, backlog=_BACKLOG, receive_buffer_bytes=-1)
        task_status.started(endpoint.with_port(sock.getsockname()[1]))
        await self.serve(sock)

    async def serve(self, sock: socket.socket) -> None:
        """Serve on a listening socket until cancelled, then close it and every connection."""
        async with (
            trio.SocketListener(trio.socket.from_stdlib_socket(sock)) as listener,
            trio.open_nursery() as nursery,
        ):
            await self._accept(listener, nursery)

    async def _accept(self, listener: trio.SocketListener, nursery: trio.Nursery) -> None:
        logged_at = -math.inf
        while True:
            try:
                stream = await listener.accept()
            except OSError as error:
                if error.errno not in OUT_OF_RESOURCES:
                    raise
                if trio.current_time() >= logged_at + SECONDS_BETWEEN_LINES:
                    logged_at = trio.current_time()
                    message = "the metrics listener cannot accept a connection: %s; retrying"
                    logger.error(message, error)  # noqa: TRY400 - no bug, no traceback
                await trio.sleep(RESOURCE_PAUSE_SECONDS)
                continue
            if self._admits is not None and not self._admits(stream.socket):
                await trio.aclose_forcefully(stream)
                continue
            if len(self._connections) >= self._limits.connections_max:
                unused, _ = self._connections.popitem(last=False)
                unused.cancel(reason="displaced by a new connection")
            scope = trio.CancelScope()
            self._connections[scope] = None
            sock = socket.socket(fileno=stream.socket.detach())
            nursery.start_soon(self._serve, scope, sock, name="metrics-connection")
            await trio.sleep(self._limits.accept_pause_seconds)

    async def _serve(self, scope: trio.CancelScope, sock: socket.socket) -> None:
        """Serve one connection until it ends."""
        try:
            with scope, closing(sock):
                tls_context = None if self._tls is None else self._tls()
                client = HttpConnection(sock, tls_context, self._limits.header_seconds_max)
                with closing(client):
                    await self._serve_all(scope, client)
        except trio.BrokenResourceError:
            pass  # the peer has disconnected, or does not speak TLS
        except Exception:  # boundary: one connection
            logger.exception("unexpected error on a metrics connection; closing it")
        finally:
            self._connections.pop(scope, None)

    async def _serve_all(self, scope: trio.CancelScope, client: HttpConnection) -> None:
        if client.has_tls and not await self._shake_hands(client):
            return
        exchange = HttpExchange(self._rules)
        while await self._serve_one(exchange, client):
            if scope in self._connections:  # else it is displaced, and about to end
                self._connections.move_to_end(scope)
        await self._linger(client)

    async def _shake_hands(self, client: HttpConnection) -> bool:
        """Do the TLS handshake. Returns whether it was completed in time."""
        while True:
            async with self._share.turn():
                with self._share.spending():
                    wanted = client.handshake_step()
            if not wanted:
                return True
            if not await client.wait(wanted):
                return False

    async def _serve_one(self, exchange: HttpExchange, client: HttpConnection) -> bool:
        """Serve one request. Returns whether another request may follow."""
        try:
            request = await self._receive(exchange, client)
            if request is None:
                return False
            response = await self._build(request)
        except Refused as refused:
            response = refused.response
        except trio.BrokenResourceError:
            return False
        except Exception:  # boundary: one page
            logger.exception("unexpected error while building a metrics page")
            response = HttpResponse(
                b"internal error; see the server's log\n", status=HTTPStatus.INTERNAL_SERVER_ERROR
            )
        with self._share.spending():
            data = exchange.send(response)
        with trio.move_on_after(self._limits.write_seconds_max) as too_slow:
            await client.send_all(data)
        return not too_slow.cancelled_caught and not exchange.must_close

    async def _receive(self, exchange: HttpExchange, client: HttpConnection) -> HttpRequest | None:
        """Return the next request; None if the connection ends before a request.

        Raises:
            Refused: the request is rejected, or took too long.
        """
        limits = self._limits
        must_hurry = exchange.has_begun or not exchange.responses
        if exchange.responses:  # the first request has what the handshake has left
            client.seconds_left = (
                limits.header_seconds_max if must_hurry else limits.idle_seconds_max
            )
        while True:
            # The wait for a turn does not count: it is the load's fault, not this client's.
            async with self._share.turn():
                with self._share.spending():
                    try:
                        request = exchange.next_request()
                        has_arrived = request is None and self._read(exchange, client)
                    except EOFError:
                        return None
            if request is not None:
                return request
            if exchange.has_begun and not must_hurry:
                must_hurry = True
                client.seconds_left = limits.header_seconds_max
            if not has_arrived and not client.has_buffered and not await client.wait():
                break
        if not exchange.has_begun:
            return None
        raise exchange.too_slow()

    def _read(self, exchange: HttpExchange, client: HttpConnection) -> bool:
        """Pass what has arrived to the exchange. Returns whether anything has."""
        data = client.read()
        if data is not None:
            exchange.receive(data)
        return data is not None

    async def _build(self, request: HttpRequest) -> HttpResponse:
        """Build the page for a request, within the loop share and one page at a time.

        Raises:
            Refused: the path has no page.
        """
        with self._share.spending():
            page = self._find_page(request)
        parts: Iterator[bytes] = map(str.encode, page.parts)
        headers = _VARY
        if request.takes_gzip:
            parts = _compressed(parts)
            headers += _ENCODED
        body = bytearray()
        async with self._share.turn():
            while True:
                if self._build_step(parts, body):
                    break
                await trio.lowlevel.checkpoint()
        return HttpResponse(bytes(body), page.content_type, headers=headers)

    def _build_step(self, parts: Iterator[bytes], body: bytearray) -> bool:
        """Build one step of a page. Returns whether the page is complete."""
        with self._share.spending():
            began = perf_counter()
            for part in parts:
                body += part
                if perf_counter() - began >= _STEP_SECONDS:
                    return False
        return True

    async def _linger(self, client: HttpConnection) -> None:
        """Let a peer that is still sending read its response: a close would send a reset."""
        if client.has_tls:
            return  # TLS has its close_notify
        client.send_end()
        client.seconds_left = self._limits.linger_seconds_max
        left = _LINGER_BYTES
        while left > 0 and await client.wait():
            data = client.read()
            if data == b"":
                break
            left -= len(data or b"")


def _compressed(parts: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(_GZIP_LEVEL, wbits=_GZIP)
    for part in parts:
        yield compressor.compress(part)
    yield compressor.flush()
