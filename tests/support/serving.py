"""A running SocketServer whose requests the test responses itself."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import trio

from support.tls_peer import TlsPeer
from support.wire import LOOPBACK, Peer, frame, open_sockets
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._endpoint import Endpoint, SecurityProtocol
from trionet.net.wire._readiness import ReadinessKind
from trionet.net.wire._transmission import Send
from trionet.server import Request, Response, ServerConfig, SocketServer
from trionet.server._channel_builder import PLAINTEXT, ListenerSecurity
from trionet.server._handler_pool import Handler, NeverWaits
from trionet.server._processor import Processor
from trionet.server._recorder import Recorder

TLS_PROTOCOLS = (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)


def listener(
    port: int = 0,
    *,
    name: str = "PLAINTEXT",
    host: str = LOOPBACK,
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT,
) -> Endpoint:
    return Endpoint(name, protocol, host, port)


def answer(payload: bytes) -> Send:
    """A response of one frame."""
    return Send([frame(payload)])


async def echo(request: Request) -> Response:
    """The handler that responds with what it was asked."""
    return answer(bytes(request.payload))


class Serving:
    """The server of a test, and what the test does with it.

    Attributes:
        server: the server.
        requests: what the handlers got, for the test to respond; unless it has its own handler.
    """

    server: SocketServer

    def __init__(self, opened: ExitStack) -> None:
        self._opened = opened
        self._arrived, self.requests = trio.open_memory_channel[Request](10_000)

    async def hand_to_test(self, request: Request) -> None:
        """The handler: responses nothing, the test does."""
        self._arrived.send_nowait(request)

    @property
    def processors(self) -> list[Processor]:
        return self.server.processors

    async def connect(
        self,
        number: int = 0,
        *,
        local_host: str = LOOPBACK,
        receive_buffer_bytes: int | None = None,
        context: ssl.SSLContext | None = None,
        raw: bool = False,
    ) -> Peer:
        """A new connection to the listener of this number, after its handshake if it has TLS.

        Args:
            receive_buffer_bytes: of its socket.
            context: the client's side of TLS; by default one that trusts ours.
            raw: without a handshake.
        """
        peer = await Peer.connect(
            self.server.endpoints[number].port,
            local_host=local_host,
            receive_buffer_bytes=receive_buffer_bytes,
        )
        self._opened.enter_context(peer)
        has_tls = self.server.endpoints[number].security_protocol in TLS_PROTOCOLS
        return await TlsPeer.over(peer, context) if has_tls and not raw else peer

    async def receive(self, payload: bytes) -> Request:
        """The next request that a handler got, which must have this payload."""
        request = await self.requests.receive()
        assert payload == request.payload
        return request

    async def exchange(self, peer: Peer, payload: bytes) -> None:
        """One request and its answer."""
        await peer.send_frames(b"? " + payload)
        (await self.receive(b"? " + payload)).respond(answer(b"! " + payload))
        assert b"! " + payload == await peer.receive_frame()

    def reasons(self) -> dict[CloseReason, int]:
        """The reasons of the connections that ended, and how often."""
        return self.server.statistics().closed


# What a test gets of each setting that it does not name: little, and no limits.
SETTINGS: dict[str, Any] = {
    "num_network_threads": 1,
    "num_io_threads": 2,
    "socket_send_buffer_bytes": -1,
    "socket_receive_buffer_bytes": -1,
    "socket_listen_backlog_size": 2000,
}


@asynccontextmanager
async def serving(
    kind: ReadinessKind,
    *,
    handler: Handler | None = None,
    never_waits: NeverWaits | None = None,
    listeners: int = 1,
    security: ListenerSecurity = PLAINTEXT,
    recorder: Recorder | None = None,
    **settings: Any,
) -> AsyncIterator[Serving]:
    """A server that is cancelled when the block ends; no socket may be left open then.

    Args:
        kind: its readiness backend.
        handler: None hands the requests to the test.
        never_waits: of the :class:`SocketServer`.
        listeners: how many; all on free ports of 127.0.0.1, named L0, L1 and so on.
        security: what goes before the requests of each of them.
        recorder: of the :class:`SocketServer`.
        settings: of :class:`ServerConfig`; for the others see :data:`SETTINGS`.
    """
    before = open_sockets()
    config = ServerConfig(**{**SETTINGS, **settings}, readiness=kind)
    protocol = security.security_protocol
    endpoints = [listener(name=f"L{number}", protocol=protocol) for number in range(listeners)]
    secured = {endpoint.listener_name: security for endpoint in endpoints}
    with trio.fail_after(10), ExitStack() as opened:
        async with trio.open_nursery() as nursery:
            serving = Serving(opened)
            handler = handler or serving.hand_to_test
            serving.server = SocketServer(
                handler, endpoints, config, secured, never_waits=never_waits, recorder=recorder
            )
            await nursery.start(serving.server.run)
            yield serving
            nursery.cancel_scope.cancel()
    assert before == open_sockets()


@asynccontextmanager
async def undisturbed(rig: Serving) -> AsyncIterator[None]:
    """A block that does harm to the connections of one processor; checks what P60 asks.

    When it ends a healthy connection of before still works, nothing is in flight, every other
    connection is gone, and a new one works.
    """
    with await rig.connect() as healthy:
        await rig.exchange(healthy, b"before")
        yield
        await rig.exchange(healthy, b"after")
        with await rig.connect() as new:
            await rig.exchange(new, b"new")
            statistics = rig.server.statistics()
            assert 2 == statistics.connections == rig.server.quotas.total
            assert 0 == statistics.request_queue_size
            assert 0 == statistics.response_queue_size
            assert 0 == sum(processor.counts.in_flight for processor in rig.processors)
            assert statistics.connections_created == 2 + sum(statistics.closed.values())
