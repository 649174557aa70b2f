"""Opens what an admin client's calls are made with, and closes it with its block."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import trio

from ..._util._single_error import raise_single_error
from ...errors import ConfigError
from ...net._network import SYSTEM, Network
from ..network._opening import keep_polling, open_kafka_client
from .calls._calls import Calls
from .calls._settings import AdminSettings


@asynccontextmanager
async def open_calls(
    bootstrap_servers: str | Iterable[str] | None,
    settings: AdminSettings,
    *,
    network: Network = SYSTEM,
) -> AsyncIterator[Calls]:
    """What calls are made with, for the length of a block.

    A family of calls is made of it, such as ``GroupCalls(calls)``: who needs a few of them does
    not load them all, as :func:`._opening.open_admin` does.

    Args:
        bootstrap_servers: as of :func:`._opening.open_admin`.
        settings: made.
        network: where connections come from.

    Raises:
        ConfigError: ``bootstrap_servers`` is not of that form, or there are both servers and
            controllers, or neither.

    Cancellation: at the end of the block every connection is closed at once.
    """
    if (bootstrap_servers is None) == (not settings.controllers):
        raise ConfigError(
            "an admin client needs either bootstrap.servers or bootstrap.controllers, not"
            f" {'both' if settings.controllers else 'none of them'}"
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
                        yield Calls(client, settings, network.chance)
                finally:
                    nursery.cancel_scope.cancel(reason="the admin client is closed")
