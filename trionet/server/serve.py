"""``trionet.serve()``: the SocketServer for any request/response protocol, in one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

import trio

from .._util.single_error import raise_single_error
from ..net.endpoint import Endpoint, SecurityProtocol
from ..net.framing import Frame
from ..net.network import SYSTEM, Network
from ..net.transmission import Send, outgoing
from .channel_builder import ListenerSecurity
from .dialect import SIZE_PREFIXED, Dialect
from .request_channel import NO_OP, CloseConnection, Request, Response
from .server_config import ServerConfig
from .server_statistics import ServerStatistics
from .socket_server import SocketServer

Answer = Frame | Send | CloseConnection | None
"""What a handler answers: a payload, a Send of one whole frame, nothing, or the end."""

ServeHandler = Callable[[Request], Awaitable[Answer]]
"""``async (request) -> answer``; ``num_io_threads`` of them run at a time."""


class Served:
    """A server that runs: a sequence of the endpoints it is bound to, and what can be done with it.

    Attributes:
        server: the SocketServer itself.
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
        """What it did and holds at this moment."""
        return self.server.statistics()

    async def stop(self) -> None:
        """Stop gracefully: answers that are owed leave, then every connection is closed.

        If this wait is cancelled the server goes on stopping.
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

    Connections have one request out at a time: the next one is read when the answer has left, so
    that a peer which sends faster than it is answered waits in TCP.

    Args:
        handler: answers one request: with the payload of the answer (bytes or bytearray), a
            :class:`Send` of one whole frame (files included), ``None`` for a request that has no
            answer, or a :class:`CloseConnection`. An exception closes that connection, with the
            reason HANDLER_FAILED, and is logged. Held up, it holds up one of
            ``config.num_io_threads``.
        endpoints: where to listen, such as ``"PLAINTEXT://127.0.0.1:0"``; port 0 takes a free one.
            A listener is named by its protocol, or has a name of its own in ``security``.
        dialect: the framing; by default Kafka's, a 32-bit size before each frame.
        config: limits and sizes.
        security: by listener name, TLS and authentication.
        network: where connections come from; see :class:`trionet.testing.MemoryNetwork`.
        task_status: reports a :class:`Served` when connections are accepted.

    Raises:
        ConfigError: there is no endpoint, one or a limit is not allowed, a listener has not the
            security that its protocol stands for, or something is set for none of them.
        OSError: an endpoint cannot be bound.

    Cancellation closes every connection at once and leaves no socket; :meth:`Served.stop` lets the
    answers that are owed leave first.
    """

    async def answer(request: Request) -> Response:
        result = await handler(request)
        if result is None:
            return NO_OP
        if isinstance(result, (bytes, bytearray)):
            return outgoing(dialect.frame(result))
        if isinstance(result, (Send, CloseConnection)):
            return result
        raise TypeError(
            f"the handler answered with {type(result).__name__}; allowed: bytes, bytearray, Send,"
            " CloseConnection or None"
        )

    secured = {name.upper(): each for name, each in (security or {}).items()}
    protocols = {name: each.security_protocol for name, each in secured.items()}
    # The names of protocols stand for them, whatever is given as their security.
    protocols |= SecurityProtocol.__members__
    parsed = [
        Endpoint.parse(each, protocols) if isinstance(each, str) else each for each in endpoints
    ]
    server = SocketServer(answer, parsed, config, secured, dialect, network)
    with raise_single_error():
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run, name="socket-server")
            task_status.started(Served(server))
