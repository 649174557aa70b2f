"""Makes the channels of a listener, as its security protocol wants them (Kafka: ChannelBuilder)."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable

import attrs

from ..errors import AuthenticationError
from ..net.authenticator import Authenticator
from ..net.certificate import distinguished_name
from ..net.channel import Channel
from ..net.endpoint import Endpoint
from ..net.memory_pool import MemoryPool
from ..net.principal import Identity, Principal, PrincipalBuilder, PrincipalMapping
from ..net.tls import TlsTransport
from ..net.transport import PlaintextTransport
from .dialect import SIZE_PREFIXED, Dialect

NewAuthenticator = Callable[[Identity], Authenticator]
"""Begins the authentication of a connection, of which nothing is proved yet but its address."""


@attrs.frozen(kw_only=True)
class ListenerSecurity:
    """What goes before the requests of a listener's connections.

    Attributes:
        tls_context: gives the context for a new connection; None for no TLS.
        authenticator: begins a SASL exchange; None for a listener without.
        principal_builder: makes a principal of a peer's certificate.
    """

    tls_context: Callable[[], ssl.SSLContext] | None = None
    authenticator: NewAuthenticator | None = None
    principal_builder: PrincipalBuilder = attrs.field(factory=PrincipalMapping)


PLAINTEXT = ListenerSecurity()


class ChannelBuilder:
    """Makes a channel of an accepted socket.

    Args:
        endpoint: the listener.
        security: what its connections have to go through first.
        frame_bytes_max: ``socket.request.max.bytes``.
        pool: memory for large requests; None for no limit.
        dialect: how frames are marked on the wire.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        security: ListenerSecurity,
        frame_bytes_max: int,
        pool: MemoryPool | None,
        dialect: Dialect = SIZE_PREFIXED,
    ) -> None:
        self._endpoint = endpoint
        self._security = security
        self._frame_bytes_max = frame_bytes_max
        self._pool = pool
        self._dialect = dialect

    def build(self, id: str, sock: socket.socket, peer_host: str) -> Channel:
        """A channel of ``sock``, which is its own from here on.

        Raises:
            OSError, ssl.SSLError: the socket, or a TLS session over it, cannot be set up.
        """
        security = self._security
        authenticator = None
        if security.authenticator is not None:
            identity = Identity(self._endpoint.security_protocol, peer_host)
            authenticator = security.authenticator(identity)
        decoder = None
        if self._dialect is not SIZE_PREFIXED:
            decoder = self._dialect.decoder(self._frame_bytes_max)
        if security.tls_context is None:
            return Channel(
                id,
                PlaintextTransport(sock),
                self._frame_bytes_max,
                authenticator=authenticator,
                pool=self._pool,
                decoder=decoder,
            )

        def identify(tls: TlsTransport) -> Principal:
            return self._identify(tls, peer_host)

        return Channel(
            id,
            TlsTransport(sock, security.tls_context()),
            self._frame_bytes_max,
            authenticator=authenticator,
            identify=identify if authenticator is None else None,
            pool=self._pool,
            decoder=decoder,
        )

    def _identify(self, tls: TlsTransport, peer_host: str) -> Principal:
        certificate = tls.peer_certificate
        try:
            name = distinguished_name(certificate) if certificate is not None else None
        except ValueError as error:
            raise AuthenticationError(f"the peer's certificate: {error}") from error
        identity = Identity(
            self._endpoint.security_protocol,
            peer_host,
            distinguished_name=name,
            certificate=certificate,
        )
        return self._security.principal_builder(identity)
