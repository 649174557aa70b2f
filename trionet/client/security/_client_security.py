"""What each new connection of a client goes through before it carries requests."""

from __future__ import annotations

import ssl
from collections.abc import Callable
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
from ...net.tls._store_threads import in_store_thread
from ...net.tls._tls_client_context import client_context
from ...net.wire._endpoint import SecurityProtocol
from ...net.wire._transport import TransportLayer
from ._login import TokenLogin
from ._sasl_client_authenticator import SaslClientExchange
from ._settings import SaslClientSettings, SecuritySettings
from ._token_retriever import fetch_token


class ClientSecurity:
    """The security of all connections of one client; made by :func:`prepare_security`.

    Args:
        protocol: ``security.protocol``.
        network: where they come from.
        tls_context: what they speak TLS with; None for those in the clear.
        begin_sasl: begins the exchange of a connection; None for those without SASL.
        login: who we are by tokens; None for all other mechanisms.
    """

    def __init__(
        self,
        protocol: SecurityProtocol,
        network: Network,
        tls_context: ssl.SSLContext | None,
        begin_sasl: Callable[[], SaslClientExchange] | None,
        login: TokenLogin | None,
    ) -> None:
        self.protocol = protocol
        self._network = network
        self._tls_context = tls_context
        self._begin_sasl = begin_sasl
        self._login = login

    def transport(self, sock: Any, host: str) -> TransportLayer:
        """The byte layer of a connection to a host, as the node is called."""
        if self._tls_context is None:
            return self._network.transport(sock)
        return self._network.transport(sock, self._tls_context, host)

    def initiator(self) -> SaslClientExchange | None:
        """What says who we are on one connection; None where nobody asks."""
        return None if self._begin_sasl is None else self._begin_sasl()

    async def keep_fresh(self) -> None:
        """Replace what expires, until cancelled or nothing does."""
        await trio.lowlevel.checkpoint()
        if self._login is not None:
            await self._login.keep_fresh()


async def prepare_security(
    settings: SecuritySettings, client_id: str, network: Network
) -> ClientSecurity:
    """Read what connections need from files, and have the first token.

    Raises:
        ConfigError: a store cannot be read or used, or a token provider gives something else.
        AuthenticationError, DisconnectedError: a token endpoint gives no token.
        Exception: what a token provider raises.

    Cancellation: nothing is left behind but a token provider's thread, if it is a plain function.
    """
    await trio.lowlevel.checkpoint()
    context = login = begin_sasl = None
    if settings.has_tls:
        if network.is_virtual:
            raise ConfigError("security.protocol: there is no TLS on a network in memory")
        context = await in_store_thread(client_context, settings.tls)
    sasl = settings.sasl
    if settings.has_sasl and sasl is not None:
        provider = sasl.token_provider
        if sasl.token_endpoint is not None:
            if network.is_virtual:
                raise ConfigError("a network in memory has no sasl.oauthbearer.token.endpoint.url")
            provider = partial(fetch_token, sasl.token_endpoint, network)
        if provider is not None:
            login = TokenLogin(provider, sasl.refresh, network)
            await login.log_in()
        begin = _mechanism(sasl, login)
        begin_sasl = partial(SaslClientExchange, sasl.mechanism, begin, client_id, network.chance)
    return ClientSecurity(settings.protocol, network, context, begin_sasl, login)


def _mechanism(sasl: SaslClientSettings, login: TokenLogin | None) -> Callable[[], SaslClient]:
    """What begins an authentication by the mechanism."""
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
