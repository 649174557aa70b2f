"""Makes the channels of a listener, as its security protocol wants them (Kafka: ChannelBuilder)."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import Final

import attrs

from ..errors import AuthenticationError, ConfigError
from ..net.authenticator import Authenticator
from ..net.certificate import distinguished_name
from ..net.channel import Channel
from ..net.endpoint import Endpoint, SecurityProtocol
from ..net.framing import LimitNames
from ..net.memory_pool import MemoryPool
from ..net.network import SYSTEM, Network
from ..net.principal import Identity, Principal, PrincipalBuilder, PrincipalMapping
from ..net.sockets import Socket
from ..net.tls import TlsTransport
from .dialect import SIZE_PREFIXED, Dialect

_LIMIT_NAMES: Final = LimitNames("socket.request.max.bytes", "sasl.server.max.receive.size")

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

    @property
    def security_protocol(self) -> SecurityProtocol:
        """What this is called in Kafka's terms."""
        if self.tls_context is None:
            has_sasl = self.authenticator is not None
            return SecurityProtocol.SASL_PLAINTEXT if has_sasl else SecurityProtocol.PLAINTEXT
        return SecurityProtocol.SSL if self.authenticator is None else SecurityProtocol.SASL_SSL

    def check(self, endpoint: Endpoint) -> None:
        """Refuse a listener that would not do what its protocol promises.

        Raises:
            ConfigError: it would have no TLS or no authentication where clients expect some, or
                some that they do not expect.
        """
        if self.security_protocol is not endpoint.security_protocol:
            raise ConfigError(
                f"the listener {endpoint} is to speak {endpoint.security_protocol}, but what it was"
                f" given as its security makes it {self.security_protocol}; SSL takes a"
                " tls_context, SASL an authenticator"
            )


PLAINTEXT = ListenerSecurity()


@attrs.frozen
class ChannelBuilder:
    """Makes a channel of an accepted socket.

    Args:
        endpoint: the listener.
        security: what its connections have to go through first.
        frame_bytes_max: ``socket.request.max.bytes``.
        pool: memory for large requests; None for no limit.
        dialect: how frames are marked on the wire.
        network: that the sockets are of.
    """

    _endpoint: Endpoint
    _security: ListenerSecurity
    _frame_bytes_max: int
    _pool: MemoryPool | None
    _dialect: Dialect = SIZE_PREFIXED
    _network: Network = SYSTEM

    def build(self, id: str, sock: Socket, peer_host: str) -> Channel:
        """A channel of ``sock``, which is its own from here on.

        Raises:
            OSError, ssl.SSLError: the socket, or a TLS session over it, cannot be set up.
        """
        security = self._security
        decoder = None
        if self._dialect is not SIZE_PREFIXED:
            decoder = self._dialect.decoder(self._frame_bytes_max)
        tls_context = None if security.tls_context is None else security.tls_context()
        transport = self._network.transport(sock, tls_context)

        authenticator = None
        if security.authenticator is not None and security.tls_context is None:
            authenticator = security.authenticator(
                Identity(self._endpoint.security_protocol, peer_host)
            )
        return Channel(
            id,
            transport,
            self._frame_bytes_max,
            limit_names=_LIMIT_NAMES,
            authenticator=authenticator,
            identify=partial(self._identify, peer_host),
            pool=self._pool,
            decoder=decoder,
        )

    def _identify(self, peer_host: str, tls: TlsTransport) -> Authenticator | Principal:
        """The peer by its certificate; SASL, if there is any, goes on from there."""
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
        if self._security.authenticator is not None:
            return self._security.authenticator(identity)
        return self._security.principal_builder(identity)
