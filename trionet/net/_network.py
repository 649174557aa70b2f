"""What a server and its clients need from the machine: connections, time of day, randomness.

:data:`SYSTEM` is the machine as it is. Another :class:`Network` takes its place where connections
are memory and time is the loop's own, so that hours pass in milliseconds and nothing happens by
accident: :class:`trionet.testing.MemoryNetwork`. The three belong together, because who lives in
virtual time may not look at any clock or die but that of its network.
"""

from __future__ import annotations

import random
import socket
import ssl
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import trio

from .tls import _wall_clock as wall_clock
from .tls._tls_client import ClientTlsTransport
from .tls._tls_transport import TlsTransport
from .wire import _connecting as connecting
from .wire._connecting import Address, ListeningSocket, Socket
from .wire._endpoint import Endpoint, bind
from .wire._readiness import Readiness, ReadinessKind, open_readiness
from .wire._transport import PlaintextTransport, TransportLayer


class Network(Protocol):
    """Where connections come from, what time it is there, and what is drawn at random."""

    @property
    def is_virtual(self) -> bool:
        """Nothing but the loop may do work or keep time: no thread, no real socket, no clock."""

    @property
    def rng(self) -> random.Random:
        """What ids are drawn from."""

    def shuffle(self, items: list[Any], /) -> None:
        """Put a list in any order, where nobody gains by guessing it."""

    def now_ms(self) -> int:
        """The time of day, in milliseconds since the epoch."""

    def listen(
        self, endpoint: Endpoint, *, backlog: int, receive_buffer_bytes: int
    ) -> ListeningSocket:
        """See :func:`trionet.net.wire._endpoint.bind`."""

    async def wait_acceptable(self, listening: Any) -> None:
        """Wait until a listening socket of this network may have a connection."""

    def open_readiness(self, kind: ReadinessKind | None) -> AbstractAsyncContextManager[Readiness]:
        """See :func:`trionet.net.wire._readiness.open_readiness`."""

    def transport(
        self,
        sock: Any,
        tls_context: ssl.SSLContext | None = None,
        server_name: str | None = None,
    ) -> TransportLayer:
        """The byte layer over a connection's socket of this network.

        Under TLS if there is a context, then as the client of ``server_name`` if there is one.
        """

    async def resolve(self, host: str, port: int) -> list[Address]:
        """See :func:`trionet.net.wire._connecting.resolve`."""

    def open_socket(
        self, address: Address, *, send_buffer_bytes: int = -1, receive_buffer_bytes: int = -1
    ) -> Socket:
        """See :func:`trionet.net.wire._connecting.open_socket`."""


class SystemNetwork:
    """The system's TCP, clock and randomness."""

    is_virtual = False
    rng: random.Random = random.SystemRandom()
    shuffle: staticmethod[[list[Any]], None] = staticmethod(random.shuffle)
    now_ms: staticmethod[[], int] = staticmethod(wall_clock.now_ms)
    wait_acceptable = staticmethod(trio.lowlevel.wait_readable)
    resolve = staticmethod(connecting.resolve)
    open_socket = staticmethod(connecting.open_socket)

    def listen(
        self, endpoint: Endpoint, *, backlog: int, receive_buffer_bytes: int
    ) -> socket.socket:
        return bind(endpoint, backlog=backlog, receive_buffer_bytes=receive_buffer_bytes)

    def open_readiness(self, kind: ReadinessKind | None) -> AbstractAsyncContextManager[Readiness]:
        return open_readiness(kind)

    def transport(
        self,
        sock: socket.socket,
        tls_context: ssl.SSLContext | None = None,
        server_name: str | None = None,
    ) -> TransportLayer:
        if tls_context is None:
            return PlaintextTransport(sock)
        if server_name is None:
            return TlsTransport(sock, tls_context)
        return ClientTlsTransport(sock, tls_context, server_name)


SYSTEM = SystemNetwork()
