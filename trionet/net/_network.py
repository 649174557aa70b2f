"""The system services of servers and clients: connections, wall-clock time, random numbers.

:data:`SYSTEM` is the real system. :class:`trionet.testing.MemoryNetwork` provides connections in
memory and virtual time, so that hours pass in milliseconds and all runs with the same seed are
identical. For that, a single object must provide all three services: code in virtual time must not
use another clock or another source of random numbers.
"""

from __future__ import annotations

import random
import socket
import ssl
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import trio

from .._util import _wall_clock as wall_clock
from .tls._tls_transport import TlsTransport
from .wire import _connecting as connecting
from .wire._connecting import Address, ListeningSocket, Socket
from .wire._endpoint import Endpoint, bind
from .wire._readiness import Readiness, ReadinessKind, open_readiness
from .wire._transport import PlaintextTransport, TransportLayer


class Network(Protocol):
    """A source of connections, wall-clock time and random numbers."""

    @property
    def is_virtual(self) -> bool:
        """Whether time is virtual; if so, do not use threads, real sockets or real clocks."""

    @property
    def rng(self) -> random.Random:
        """The random number generator for ids."""

    def shuffle(self, items: list[Any], /) -> None:
        """Shuffle a list in place; the order need not be unpredictable to an attacker."""

    def now_ms(self) -> int:
        """Return the wall-clock time, in milliseconds since the epoch."""

    def listen(
        self, endpoint: Endpoint, *, backlog: int, receive_buffer_bytes: int
    ) -> ListeningSocket:
        """Bind a listening socket; see :func:`trionet.net.wire._endpoint.bind`."""

    async def wait_acceptable(self, listening: Any) -> None:
        """Wait until a listening socket of this network may have a connection to accept."""

    def open_readiness(self, kind: ReadinessKind | None) -> AbstractAsyncContextManager[Readiness]:
        """Open a readiness backend; see :func:`trionet.net.wire._readiness.open_readiness`."""

    def transport(
        self,
        sock: Any,
        tls_context: ssl.SSLContext | None = None,
        server_name: str | None = None,
    ) -> TransportLayer:
        """Create the transport for a socket of this network.

        Args:
            sock: the socket, accepted or connecting.
            tls_context: the TLS context; None for plaintext.
            server_name: on the client side of TLS, the name of the server.
        """

    async def resolve(self, host: str, port: int) -> list[Address]:
        """Look up the addresses of a host; see :func:`trionet.net.wire._connecting.resolve`."""

    def open_socket(
        self, address: Address, *, send_buffer_bytes: int = -1, receive_buffer_bytes: int = -1
    ) -> Socket:
        """Create an outgoing socket; see :func:`trionet.net.wire._connecting.open_socket`."""


class SystemNetwork:
    """The TCP sockets, clock and random numbers of the operating system."""

    is_virtual = False
    rng: random.Random = random.SystemRandom()
    shuffle: staticmethod[[list[Any]], None] = staticmethod(random.shuffle)
    now_ms: staticmethod[[], int] = staticmethod(wall_clock.now_ms)
    listen = staticmethod(bind)
    wait_acceptable = staticmethod(trio.lowlevel.wait_readable)
    resolve = staticmethod(connecting.resolve)
    open_socket = staticmethod(connecting.open_socket)

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
        return TlsTransport(sock, tls_context, server_name)


SYSTEM = SystemNetwork()
