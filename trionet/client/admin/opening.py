"""Opens an admin client, and closes it with its block."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Unpack

import trio

from ..._util.single_error import raise_single_error
from ...errors import ConfigError
from ...net.network import SYSTEM, Network
from ..config.keywords import AdminKeywords
from ..opening import keep_polling, open_network_client
from ..security.settings import TokenProvider
from .admin import Admin
from .calls import Calls
from .config import admin_settings
from .settings import AdminSettings


@asynccontextmanager
async def open_admin(
    bootstrap_servers: str | Iterable[str] | None = None,
    config: Mapping[str, object] | AdminSettings | None = None,
    /,
    *,
    network: Network = SYSTEM,
    token_provider: TokenProvider | None = None,
    **keywords: Unpack[AdminKeywords],
) -> AsyncIterator[Admin]:
    """An admin client for the length of a block.

    It connects with its first call.

    Args:
        bootstrap_servers: ``host:port`` texts, or one text of them with commas; None if
            ``bootstrap.controllers`` names controllers, which are asked instead (KIP-919).
        config: settings by Kafka's dotted keys, as texts or Python values; or made settings.
        network: where connections come from.
        token_provider: gives the tokens of ``sasl.mechanism=OAUTHBEARER``; plain or async.
        keywords: settings by Kafka's keys with underscores for dots; they win.

    Raises:
        ConfigError: a key is unknown, a value is not allowed, ``bootstrap_servers`` is not of
            that form, or there are both servers and controllers, or neither.

    Cancellation: at the end of the block every connection is closed at once.
    """
    settings = admin_settings(config, keywords, token_provider)
    if (bootstrap_servers is None) == (not settings.controllers):
        raise ConfigError(
            "an admin client needs either bootstrap.servers or bootstrap.controllers, not"
            f" {'both' if settings.controllers else 'none of them'}"
        )
    async with open_network_client(
        settings.controllers if bootstrap_servers is None else bootstrap_servers,
        settings.client,
        network=network,
        kind="admin-client",
        of_controllers=bootstrap_servers is None,
    ) as client:
        with raise_single_error() as caller:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(keep_polling, client)
                try:
                    with caller.block():
                        yield Admin(Calls(client, settings, network.chance))
                finally:
                    nursery.cancel_scope.cancel(reason="the admin client is closed")
