"""What each new connection of a client goes through before it carries requests."""

from __future__ import annotations

import ssl
from typing import Any

import trio

from ...errors import ConfigError
from ...net.network import Network
from ...net.tls_client_context import client_context
from ...net.transport import TransportLayer
from .settings import SecuritySettings


class ClientSecurity:
    """The security of all connections of one client.

    Args:
        network: where they come from.
        tls_context: what they speak TLS with; None for those in the clear.
    """

    def __init__(self, network: Network, tls_context: ssl.SSLContext | None = None) -> None:
        self._network = network
        self._tls_context = tls_context

    def transport(self, sock: Any, host: str) -> TransportLayer:
        """The byte layer of a connection to a host, as the node is called."""
        if self._tls_context is None:
            return self._network.transport(sock)
        return self._network.transport(sock, self._tls_context, host)


async def prepare_security(settings: SecuritySettings, network: Network) -> ClientSecurity:
    """Read what connections need from files.

    Raises:
        ConfigError: a store cannot be read or used.

    Cancellation: nothing is left behind.
    """
    await trio.lowlevel.checkpoint()
    if settings.has_sasl:
        raise ConfigError("security.protocol: SASL is not supported")
    if not settings.has_tls:
        return ClientSecurity(network)
    if network.is_virtual:
        raise ConfigError("security.protocol: there is no TLS on a network in memory")
    return ClientSecurity(network, await trio.to_thread.run_sync(client_context, settings.tls))
