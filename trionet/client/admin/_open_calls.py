"""Implements :func:`open_calls`: an admin client that does not import every group of calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import trio

from ..._util._raising import raise_single_error
from ...errors import ConfigError
from ...net._network import SYSTEM, Network
from ..network._open_client import keep_polling, open_kafka_client
from .calls._calls import Calls
from .calls._settings import AdminSettings


@asynccontextmanager
async def open_calls(
    bootstrap_servers: str | Iterable[str] | None,
    settings: AdminSettings,
    *,
    network: Network = SYSTEM,
) -> AsyncIterator[Calls]:
    """Open an admin client's request sender for the duration of an ``async with`` block.

    Pass the sender to a group of calls, such as ``GroupCalls(calls)``. Unlike
    :func:`._open_admin.open_admin`, this does not import the other groups of calls.

    Args:
        bootstrap_servers: see :func:`._open_admin.open_admin`.
        settings: the settings.
        network: opens connections.

    Raises:
        ConfigError: ``bootstrap_servers`` is invalid, or both servers and controllers are set, or
            neither.

    Cancellation: at the end of the block all connections are closed immediately.
    """
    if (bootstrap_servers is None) == (not settings.controllers):
        raise ConfigError(
            "an admin client requires either bootstrap.servers or bootstrap.controllers;"
            f" {'both are' if settings.controllers else 'neither is'} set"
        )
    async with open_kafka_client(
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
                        yield Calls(client, settings, network.rng)
                finally:
                    nursery.cancel_scope.cancel(reason="the admin client is closed")
