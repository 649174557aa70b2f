"""The builder of a listener's channels, with TLS and authentication (Kafka: ChannelBuilder)."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import Final

import attrs

from ..errors import AuthenticationError, ConfigError
from ..net._authenticator import Authenticator
from ..net._channel import Channel
from ..net._network import SYSTEM, Network
from ..net._principal import Identity, Principal, PrincipalBuilder, PrincipalMapping
from ..net.tls._certificate import distinguished_name
from ..net.tls._tls_transport import TlsTransport
from ..net.wire._connecting import Socket
from ..net.wire._endpoint import Endpoint, SecurityProtocol
from ..net.wire._framing import LimitNames
from ..net.wire._memory_pool import MemoryPool
from ._dialect import SIZE_PREFIXED, Dialect

_LIMIT_NAMES: Final = LimitNames("socket.request.max.bytes", "sasl.server.max.receive.size")

CERTIFICATE_BYTES_MAX: Final = 32_768
"""The maximum size of a peer's certificate, which bounds the time to read its subject.

Kafka has the same limit for a whole handshake message (``jdk.tls.maxHandshakeMessageSize``).
"""

NewAuthenticator = Callable[[Identity], Authenticator]
"""Creates the authenticator of a connection from the identity proved by TLS, if any."""


@attrs.frozen(kw_only=True)
class ListenerSecurity:
    """The TLS and authentication of a listener's connections.

    Attributes:
        tls_context: returns the TLS context for a new connection; None without TLS.
        authenticator: creates the authenticator of a connection; None without SASL.
        principal_builder: creates the principal of a peer that does not use SASL.
    """

    tls_context: Callable[[], ssl.SSLContext] | None = None
    authenticator: NewAuthenticator | None = None
    principal_builder: PrincipalBuilder = attrs.field(factory=PrincipalMapping)

    @property
    def security_protocol(self) -> SecurityProtocol:
        """The security protocol that these settings result in."""
        if self.tls_context is None:
            has_sasl = self.authenticator is not None
            return SecurityProtocol.SASL_PLAINTEXT if has_sasl else SecurityProtocol.PLAINTEXT
        return SecurityProtocol.SSL if self.authenticator is None else SecurityProtocol.SASL_SSL

    def check(self, endpoint: Endpoint) -> None:
        """Check that these settings match the security protocol of a listener.

        Raises:
            ConfigError: these settings lack TLS or authentication that the protocol requires, or
                have TLS or authentication that it does not allow.
        """
        if self.security_protocol is not endpoint.security_protocol:
            raise ConfigError(
                f"listener {endpoint} uses {endpoint.security_protocol}, but its security settings"
                f" are for {self.security_protocol}; SSL requires a tls_context, SASL an"
                " authenticator, and PLAINTEXT neither"
            )


PLAINTEXT = ListenerSecurity()


@attrs.frozen
class ChannelBuilder:
    """A builder of channels for accepted sockets.

    Args:
        endpoint: the listener.
        security: the TLS and authentication of its connections.
        frame_bytes_max: ``socket.request.max.bytes``.
        pool: provides memory for large requests; None for no limit.
        dialect: the framing on the wire.
        network: the network of the sockets.
    """

    _endpoint: Endpoint
    _security: ListenerSecurity
    _frame_bytes_max: int
    _pool: MemoryPool | None
    _dialect: Dialect = SIZE_PREFIXED
    _network: Network = SYSTEM

    def build(self, id: str, sock: Socket, peer_host: str) -> Channel:
        """Create a channel that takes ownership of ``sock``.

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
        """Return the principal for the peer's certificate, or the authenticator for SASL."""
        certificate = tls.peer_certificate
        if certificate is not None and len(certificate) > CERTIFICATE_BYTES_MAX:
            raise AuthenticationError(
                f"the peer's certificate has {len(certificate)} bytes; it may have"
                f" {CERTIFICATE_BYTES_MAX}"
            )
        try:
            name = distinguished_name(certificate) if certificate is not None else None
        except ValueError as error:
            raise AuthenticationError(f"invalid peer certificate: {error}") from error
        identity = Identity(
            self._endpoint.security_protocol,
            peer_host,
            distinguished_name=name,
            certificate=certificate,
        )
        if self._security.authenticator is not None:
            return self._security.authenticator(identity)
        return self._security.principal_builder(identity)
