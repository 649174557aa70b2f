"""Implements :func:`open_admin`, the context manager for an admin client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Unpack

from ...net._network import SYSTEM, Network
from ..config._keywords import AdminKeywords
from ..security._settings import TokenProvider
from ._admin import Admin
from ._open_calls import open_calls
from .calls._settings import AdminSettings, admin_settings


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
    """Open an admin client for the duration of an ``async with`` block.

    The client connects on the first call.

    Args:
        bootstrap_servers: ``host:port`` strings, or one comma-separated string; None if
            ``bootstrap.controllers`` is set, to send all requests to controllers (KIP-919).
        config: settings under Kafka's dotted keys, as strings or Python values; or a settings
            object.
        network: opens connections.
        token_provider: a sync or async function that returns the tokens for
            ``sasl.mechanism=OAUTHBEARER``.
        keywords: settings under Kafka's keys, with underscores instead of dots; they take
            precedence over ``config``.

    Raises:
        ConfigError: a key is unknown, a value is not allowed, ``bootstrap_servers`` is invalid, or
            both servers and controllers are set, or neither.
        AuthenticationError, DisconnectedError: a token endpoint returned no token.
        Exception: the token provider raised it.

    Cancellation: at the end of the block all connections are closed immediately.
    """
    settings = admin_settings(config, keywords, token_provider)
    async with open_calls(bootstrap_servers, settings, network=network) as calls:
        yield Admin._create(calls)  # noqa: SLF001 - nothing else creates one
