"""``trionet.serve()``, which runs a server for any request/response protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

import trio

from .._util._raising import raise_single_error
from .._util._trio_task import check_trio
from ..net._network import SYSTEM, Network
from ..net.wire._endpoint import Endpoint, SecurityProtocol
from ..net.wire._framing import Frame
from ..net.wire._transmission import Send, outgoing
from ._channel_builder import ListenerSecurity
from ._dialect import SIZE_PREFIXED, Dialect
from ._request_channel import NO_OP, CloseConnection, Request, Response
from ._server_config import ServerConfig
from ._server_statistics import ServerStatistics
from ._socket_server import SocketServer

ServeResult = Frame | Send | CloseConnection | None
"""What a handler returns: a payload, a Send of one whole frame, a close, or no response."""

ServeHandler = Callable[[Request], Awaitable[ServeResult]]
"""``async (request) -> response``; up to ``num_io_threads`` calls run concurrently."""


class Served:
    """A running server: the sequence of its bound endpoints, with methods to inspect and stop it.

    Attributes:
        server: the underlying SocketServer.
    """

    def __init__(self, server: SocketServer) -> None:
        self.server = server

    def __len__(self) -> int:
        return len(self.server.endpoints)

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(self.server.endpoints)

    def __getitem__(self, index: int) -> Endpoint:
        return self.server.endpoints[index]

    def statistics(self) -> ServerStatistics:
        """Return the server's current totals and queue sizes."""
        return self.server.statistics()

    async def stop(self) -> None:
        """Stop gracefully: send all pending responses, then close every connection.

        If this wait is cancelled, the server still stops.

        Raises:
            LocalProtocolError: this was called in a handler, for whose response it would wait. A
                handler can start it as a task in a nursery outside: ``start_soon(served.stop)``.
        """
        await self.server.stop()


async def serve(
    handler: ServeHandler,
    endpoints: Sequence[str | Endpoint],
    *,
    dialect: Dialect = SIZE_PREFIXED,
    config: ServerConfig | None = None,
    security: Mapping[str, ListenerSecurity] | None = None,
    network: Network = SYSTEM,
    task_status: trio.TaskStatus[Served] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve a request/response protocol until stopped or cancelled.

    A connection has one request in progress at a time: the next request is read only after the
    response has been sent. TCP flow control slows down a peer that sends requests faster than it
    gets responses.

    Args:
        handler: handles one request, and returns the payload of the response (bytes or bytearray),
            a :class:`Send` of a complete frame (which may include files), ``None`` for a request
            without a response, or a :class:`CloseConnection`. An exception is logged, and closes
            the connection with the reason HANDLER_FAILED. A call that waits occupies one of
            ``config.num_io_threads`` handler tasks.
        endpoints: the endpoints to listen on, such as ``"PLAINTEXT://127.0.0.1:0"``; port 0 selects
            a free port. A listener's name is its protocol, or a key of ``security``.
        dialect: the framing; by default Kafka's, a 32-bit size before each payload.
        config: limits and sizes.
        security: TLS and authentication by listener name.
        network: provides the sockets; see :class:`trionet.testing.MemoryNetwork`.
        task_status: reports a :class:`Served` once connections are accepted.

    Raises:
        ConfigError: ``endpoints`` is empty, an endpoint or a limit is not allowed, a listener lacks
            the security that its protocol requires, or a setting names an unknown listener.
        OSError: an endpoint cannot be bound.
        RuntimeError: trio does not run the calling task.

    Cancellation: closes all connections and listening sockets immediately; :meth:`Served.stop`
    sends all pending responses first.
    """
    check_trio("servers")

    async def handle(request: Request) -> Response:
        result = await handler(request)
        if result is None:
            return NO_OP
        if isinstance(result, (bytes, bytearray)):
            return outgoing(dialect.frame(result))
        if isinstance(result, (Send, CloseConnection)):
            return result
        raise TypeError(
            f"the handler returned {type(result).__name__}; allowed: bytes, bytearray, Send,"
            " CloseConnection or None"
        )

    secured = {name.upper(): each for name, each in (security or {}).items()}
    protocols = {name: each.security_protocol for name, each in secured.items()}
    # The name of a protocol always means that protocol, even if it is a key of ``security``.
    protocols |= SecurityProtocol.__members__
    parsed = [
        Endpoint.parse(each, protocols) if isinstance(each, str) else each for each in endpoints
    ]
    server = SocketServer(handle, parsed, config, secured, dialect, network)
    with raise_single_error():
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run, name="socket-server")
            task_status.started(Served(server))
