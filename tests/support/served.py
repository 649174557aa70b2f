"""A running `trionet.serve()`, for tests of what its handlers are promised."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial

import trio
from trio.testing import wait_all_tasks_blocked

import trionet
from support.tls import certificate, client_context
from support.wire import LOOPBACK, Peer, open_sockets
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._endpoint import Endpoint
from trionet.net.wire._readiness import ReadinessKind
from trionet.server import SIZE_PREFIXED, Dialect, ListenerSecurity, Served, ServerConfig
from trionet.server._closed_connections import ClosedConnection
from trionet.server._serve import ServeHandler

ANYWHERE = "PLAINTEXT://127.0.0.1:0"


class Rig:
    """The server of a test, and what the test does with it.

    Attributes:
        served: what `serve` reported.
    """

    def __init__(self, served: Served, nursery: trio.Nursery, opened: ExitStack) -> None:
        self.served = served
        self._nursery = nursery
        self._opened = opened

    def is_serving(self) -> bool:
        """Whether `serve` has not returned."""
        return bool(self._nursery.child_tasks)

    async def connect(self, number: int = 0) -> Peer:
        """A new connection to the listener of this number."""
        return self._opened.enter_context(await Peer.connect(self.served[number].port))

    def reasons(self) -> Mapping[CloseReason, int]:
        return self.served.statistics().closed

    async def last_closed(self) -> ClosedConnection:
        """The connection that ended last, when the server has nothing more to do."""
        await wait_all_tasks_blocked()
        [(_, connection)] = self.served.server.closed_connections.page(1)
        return connection


@asynccontextmanager
async def serving_with(
    handler: ServeHandler,
    kind: ReadinessKind,
    *,
    endpoints: Sequence[str | Endpoint] = (ANYWHERE,),
    dialect: Dialect = SIZE_PREFIXED,
    security: Mapping[str, ListenerSecurity] | None = None,
    num_network_threads: int = 1,
    num_io_threads: int = 2,
    queued_max_request_bytes: int = -1,
    socket_request_max_bytes: int = 100 * 1024 * 1024,
) -> AsyncIterator[Rig]:
    """`serve` in a task that is cancelled when the block ends; no socket may be left open then.

    Args:
        kind: its readiness backend.
        num_network_threads: as the others after it, a setting of the server.
    """
    before = open_sockets()
    config = ServerConfig(
        num_network_threads=num_network_threads,
        num_io_threads=num_io_threads,
        queued_max_request_bytes=queued_max_request_bytes,
        socket_request_max_bytes=socket_request_max_bytes,
        readiness=kind,
    )
    serve = partial(
        trionet.serve, handler, endpoints, dialect=dialect, config=config, security=security
    )
    with trio.fail_after(10), ExitStack() as opened:
        async with trio.open_nursery() as nursery:
            served: Served = await nursery.start(serve)
            yield Rig(served, nursery, opened)
            nursery.cancel_scope.cancel()
    assert before == open_sockets()


@asynccontextmanager
async def tls_stream(
    port: int, *, show: str | None = None, names: Sequence[str] = ()
) -> AsyncIterator[trio.SSLStream[trio.SocketStream]]:
    """A connection under TLS, made by trio.

    Args:
        show: the common name of the certificate that the client shows, if it shows one.
        names: the other names in that certificate.
    """
    context = client_context(leaf=certificate(*names, common_name=show) if show else None)
    tcp = await trio.open_tcp_stream(LOOPBACK, port)
    stream = trio.SSLStream(tcp, context, server_hostname=LOOPBACK, https_compatible=True)
    try:
        yield stream
    finally:
        await trio.aclose_forcefully(stream)
