"""Notices within seconds that no broker can be reached, long before requests time out.

The client retries in silence for as long as a request may take, since a broker that restarts is
back soon. A user who has typed an address waits for a word. So while there are no responses, this
part tries to connect by itself. It does not while responses arrive: the broker would see
connections that come and go.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import Final

import trio

from ...client.network._addresses import parse_bootstrap_servers
from ...net.wire._connecting import IPV6_PARTS, Address, reason_of, resolve
from ..model._model import REACHABILITY, Model
from ._source import INTERVAL_SECONDS, Started

#: How long a source may take for its first response before this part tries to connect.
PATIENCE_SECONDS: Final = 1.0
#: The interval between attempts, in seconds.
RETRY_SECONDS: Final = 1.0
#: The interval between attempts if a connection can be made, but no response arrives, in seconds.
SILENT_SECONDS: Final = 10.0
#: How long to wait for a connection. With :data:`PATIENCE_SECONDS`, a user waits for 3 s at most.
CONNECT_SECONDS_MAX: Final = 2.0
#: The number of refresh intervals without a response after which this part tries to connect.
SILENT_INTERVALS: Final = 3


class ReachabilitySource:
    """A :class:`.Part` that reports when none of the bootstrap servers can be reached.

    Args:
        bootstrap_servers: the addresses, as the user gave them.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        self.interval_seconds = INTERVAL_SECONDS
        self._servers = parse_bootstrap_servers(bootstrap_servers)

    def focus(self, section: str | None, key: object = None) -> None:
        """Do nothing, since this part reads no data; see :meth:`.Source.focus`."""

    async def run(self, model: Model, *, task_status: Started = trio.TASK_STATUS_IGNORED) -> None:
        """Update the model until cancelled; see :class:`.Source`."""
        task_status.started()
        began = trio.current_time()
        await trio.sleep(PATIENCE_SECONDS)
        while True:
            pause = RETRY_SECONDS
            why = None
            if self._is_silent(model):
                why = await self._why_unreachable()
                if why is None:
                    pause = SILENT_SECONDS
            if why != model.unreachable:
                model.unreachable = why
                alarm = None if why is None else f"{why}; trying again every second"
                model.set_alarm(REACHABILITY, alarm, model.responded_at or began)
                model.changed()
            await trio.sleep(pause)

    def _is_silent(self, model: Model) -> bool:
        if model.responded_at is None:
            return True
        seconds = max(PATIENCE_SECONDS, SILENT_INTERVALS * self.interval_seconds)
        return trio.current_time() - model.responded_at > seconds

    async def _why_unreachable(self) -> str | None:
        """Try to connect to all servers, and return why none can be reached, or None."""
        failures: dict[tuple[str, int], tuple[str, str]] = {}

        async def attempt(host: str, port: int) -> None:
            why = await _why_not_connected(host, port)
            if why is not None:
                failures[host, port] = why

        async with trio.open_nursery() as nursery:
            for server in self._servers:
                nursery.start_soon(attempt, *server)
        if len(failures) < len(self._servers):
            return None
        addresses: dict[tuple[str, str], list[str]] = {}
        for host, port in self._servers:
            address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            addresses.setdefault(failures[host, port], []).append(address)
        return "; ".join(
            f"{before}{', '.join(found)}{after}" for (before, after), found in addresses.items()
        )


async def _why_not_connected(host: str, port: int) -> tuple[str, str] | None:
    """Return why no connection can be made, as the words around the address, or None."""
    refused: OSError | None = None
    with trio.move_on_after(CONNECT_SECONDS_MAX):
        try:
            addresses = await resolve(host, port)
        except OSError as error:
            return "", f" cannot be reached: {error}"
        for address in addresses:
            try:
                await _connect(address)
            except OSError as error:
                # trio's text has the address in it, as the socket knows it.
                refused = OSError(error.errno, os.strerror(error.errno)) if error.errno else error
            else:
                return None
    if refused is None:
        return "no connection to ", f" within {CONNECT_SECONDS_MAX:g} s"
    if refused.errno == errno.ECONNREFUSED:
        return "nothing listens at ", f" ({reason_of(refused)})"
    return "", f" cannot be reached: {reason_of(refused)}"


async def _connect(address: Address) -> None:
    """Connect to an address, and close the connection.

    Raises:
        OSError: the connection cannot be made.
    """
    family = socket.AF_INET6 if len(address) == IPV6_PARTS else socket.AF_INET
    with trio.socket.socket(family, socket.SOCK_STREAM) as sock:
        await sock.connect(address)
