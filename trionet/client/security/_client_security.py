"""TLS and SASL for each new connection of a client."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import trio

from ...errors import ConfigError
from ...net._network import Network
from ...net.sasl import _oauthbearer as oauthbearer
from ...net.sasl import _plain as plain
from ...net.sasl._mechanism import SaslClient
from ...net.sasl._oauthbearer import OAuthBearerClient
from ...net.sasl._plain import PlainClient
from ...net.sasl._scram import ScramClient, ScramPassword
from ...net.tls._key_stores import in_store_thread
from ...net.tls._tls_context import client_context
from ...net.wire._endpoint import SecurityProtocol
from ...net.wire._transport import TransportLayer
from ._msk_iam import new_token
from ._sasl_client_authenticator import SaslClientAuthenticator
from ._settings import SaslClientSettings, SecuritySettings
from ._tokens import TokenLogin, fetch_token


class ClientSecurity:
    """The TLS and SASL setup of a client's connections; see :func:`prepare_security`.

    Args:
        protocol: ``security.protocol``.
        network: creates the transports.
        tls_context: the TLS context; None if TLS is not used.
        begin_sasl: creates the SASL exchange of a connection; None if SASL is not used.
        login: keeps the OAUTHBEARER token; None for other mechanisms.
    """

    def __init__(
        self,
        protocol: SecurityProtocol,
        network: Network,
        tls_context: ssl.SSLContext | None,
        begin_sasl: Callable[[], SaslClientAuthenticator] | None,
        login: TokenLogin | None,
    ) -> None:
        self.protocol = protocol
        self._network = network
        self._tls_context = tls_context
        self._begin_sasl = begin_sasl
        self._login = login

    def transport(self, sock: Any, host: str) -> TransportLayer:
        """Create the transport of a connection; TLS verifies the certificate for ``host``."""
        if self._tls_context is None:
            return self._network.transport(sock)
        return self._network.transport(sock, self._tls_context, host)

    def initiator(self) -> SaslClientAuthenticator | None:
        """Create the SASL exchange of a connection; None if SASL is not used."""
        return None if self._begin_sasl is None else self._begin_sasl()

    async def keep_token_fresh(self) -> None:
        """Refresh the OAUTHBEARER token until cancelled; return if the token never expires."""
        await trio.lowlevel.checkpoint()
        if self._login is not None:
            await self._login.keep_token_fresh()


async def prepare_security(
    settings: SecuritySettings, client_id: str, network: Network, hosts: Sequence[str] = ()
) -> ClientSecurity:
    """Prepare TLS and SASL for a client: read keystores, and obtain the first token.

    Args:
        settings: the settings.
        client_id: the client id in request headers.
        network: creates the transports.
        hosts: the names of the bootstrap servers.

    Raises:
        ConfigError: a keystore or truststore cannot be read or used, or a token provider returned
            an invalid token.
        AuthenticationError, DisconnectedError: a token endpoint returned no token.
        Exception: a token provider raised it.

    Safe to cancel at any point, but a synchronous token provider keeps running in its thread.
    """
    await trio.lowlevel.checkpoint()
    context = login = begin_sasl = None
    if settings.has_tls:
        if network.is_virtual:
            raise ConfigError("security.protocol: an in-memory network does not support TLS")
        context = await in_store_thread(client_context, settings.tls)
    sasl = settings.sasl
    if settings.has_sasl and sasl is not None:
        provider = sasl.token_provider
        if sasl.token_endpoint is not None:
            if network.is_virtual:
                raise ConfigError(
                    "sasl.oauthbearer.token.endpoint.url is not available on an in-memory network"
                )
            provider = partial(fetch_token, sasl.token_endpoint, network)
        if sasl.iam is not None:
            provider = partial(new_token, sasl.iam, hosts)
        if provider is not None:
            login = TokenLogin(provider, sasl.refresh, network)
            await login.log_in()
        begin = _mechanism(sasl, login)
        begin_sasl = partial(SaslClientAuthenticator, sasl.mechanism, begin, client_id, network.rng)
    return ClientSecurity(settings.protocol, network, context, begin_sasl, login)


def _mechanism(sasl: SaslClientSettings, login: TokenLogin | None) -> Callable[[], SaslClient]:
    """Return a function that creates the client side of the mechanism."""
    if sasl.mechanism == plain.NAME:
        return partial(PlainClient, sasl.user_name, sasl.password)
    if sasl.mechanism == oauthbearer.NAME:
        assert login is not None
        return lambda: OAuthBearerClient(login.token.value, login.token.extensions)
    password = ScramPassword(
        sasl.mechanism,
        sasl.user_name,
        sasl.password,
        is_delegation_token=sasl.is_delegation_token,
    )
    return partial(ScramClient, password)
