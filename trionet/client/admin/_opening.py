"""Opens an admin client, and closes it with its block."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Unpack

from ...net._network import SYSTEM, Network
from ..config._keywords import AdminKeywords
from ..security._settings import TokenProvider
from ._admin import Admin
from ._calls_opening import open_calls
from ._config import admin_settings
from .calls._settings import AdminSettings


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
    async with open_calls(bootstrap_servers, settings, network=network) as calls:
        yield Admin(calls)
