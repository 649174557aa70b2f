"""The reconfiguration of a running SocketServer: threads, limits and certificates.

(Kafka: SocketServer, DynamicThreadPool and SslFactory as Reconfigurable.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from ...errors import ConfigError, LocalProtocolError
from ...server._connection_quotas import ServerLimits
from ...server._socket_server import SocketServer, check_resize
from ..config._broker_config import BrokerConfig
from ..config._dynamic_keys import STORES, THREADS
from ..config._listener_keys import PREFIX
from ..config._listener_settings import ListenerSettings
from ._server_settings import OVERRIDES, listener_limits, server_limits

if TYPE_CHECKING:
    from ..config._dynamic_config_store import Apply
    from ..security._listener_security import SecuredListener


#: The maximum time to resolve the host names of a change; all other changes wait meanwhile.
LOOKUP_SECONDS_MAX: Final = 10.0


class ServerChanges:
    """A component that applies altered settings to a running server.

    Args:
        server: the running server.
        secured: the server's listeners with TLS or SASL, by name.
        nodes: the number of nodes in the process; None if connections use no file descriptors.
    """

    def __init__(
        self,
        server: SocketServer,
        secured: Mapping[str, SecuredListener],
        nodes: int | None = 1,
    ) -> None:
        self._server = server
        self._secured = secured
        self._nodes = nodes

    async def prepare(self, old: BrokerConfig, new: BrokerConfig, altered: frozenset[str]) -> Apply:
        """Validate new settings, and return a function that applies them.

        Args:
            old: the current settings.
            new: the new settings.
            altered: the altered keys; a store that any of them concerns is read again.

        Raises:
            ConfigError: the settings are not allowed.
        """
        for key in THREADS:
            check_resize(key, old.integer(key), new.integer(key))
        processors = _processors(old, new)
        overrides: Mapping[str, int] | None = None
        if OVERRIDES not in altered and old[OVERRIDES] == new[OVERRIDES]:
            overrides = self._server.quotas.limits.overrides  # resolving names may take long
        limits = await self._limits(new, overrides)
        of_listeners = {
            endpoint.listener_name: listener_limits(ListenerSettings(new, endpoint.listener_name))
            for endpoint in new.listeners
        }
        renewals = await self._prepare_certificates(new, altered)

        async def apply() -> None:
            for renew in renewals:
                renew()
            quotas = self._server.quotas
            quotas.set_limits(limits)
            for name, of_listener in of_listeners.items():
                quotas.set_listener_limits(name, of_listener)
            self._server.resize_handlers(new.integer("num.io.threads"))
            for name, count in processors.items():
                await self._server.resize_processors(count, name)

        return partial(_unless_it_ends, apply)

    async def _limits(self, new: BrokerConfig, overrides: Mapping[str, int] | None) -> ServerLimits:
        with trio.move_on_after(LOOKUP_SECONDS_MAX):
            return await server_limits(new, overrides, nodes=self._nodes)
        raise ConfigError(
            f"{OVERRIDES}: the host names could not be resolved within {LOOKUP_SECONDS_MAX:.0f} s;"
            " use fewer host names, or use addresses"
        )

    async def _prepare_certificates(
        self, new: BrokerConfig, altered: frozenset[str]
    ) -> list[Callable[[], None]]:
        renewals = []
        for name, listener in self._secured.items():
            keys = {f"{PREFIX}{name.lower()}.{key}" for key in STORES}
            if listener.tls is not None and not keys.isdisjoint(altered):
                renewals.append(await listener.prepare_certificates(new))
        await trio.lowlevel.checkpoint()
        return renewals


def _processors(old: BrokerConfig, new: BrokerConfig) -> dict[str, int]:
    """Return the new number of processors of each listener for which the number changes.

    Raises:
        ConfigError: a new number is less than half or more than twice the current number.
    """
    key = "num.network.threads"
    changed = {}
    for endpoint in new.listeners:
        name = endpoint.listener_name
        before = ListenerSettings(old, name).integer(key)
        count = ListenerSettings(new, name).integer(key)
        check_resize(key, before, count)
        if count != before:
            changed[name] = count
    return changed


async def _unless_it_ends(apply: Apply) -> None:
    """Apply a change; do nothing if the server is stopping, since its successor applies it."""
    try:
        await apply()
    except LocalProtocolError:
        await trio.lowlevel.checkpoint()
