"""The reconfiguration of running logs and nodes (Kafka: BrokerReconfigurable).

The problem: a change must be accepted or rejected as a whole, although several components apply it
(logs, network threads, quotas, certificates), and some must first read files or resolve names.

The choice: two phases. :meth:`prepare` performs all steps that can fail or wait, and returns a
function. When all components are prepared and the change is stored, these functions apply the
change; they cannot fail. :class:`.BrokerConfigs` drives both phases, one change at a time.

Rejected: Kafka's approach, which validates a change and then applies it to one component after
another. If a component fails, Kafka logs the error, and the other components keep the change.

All nodes share the logs, so only settings for all nodes apply to them. With a single node, the
settings of that node also apply to the logs. The cleaner follows the settings of the first node.

Reconsider if applying a change must wait for I/O, since it would no longer be all or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
import trio

from ...errors import ConfigError, LocalProtocolError
from ...server._socket_server import SocketServer, check_resize
from ...server.quotas._connection_limits import ServerLimits
from ..config._broker_config import BrokerConfig, ListenerSettings
from ..config._dynamic_config import STORES, THREADS, TOPIC_DEFAULTS, DynamicConfig
from ..config._dynamic_config_store import Apply
from ..config._listeners import LISTENER_PREFIX
from ..config._topic_keys import TOPIC_KEYS, broker_value
from ..log import LogConfig
from ..model._broker_state import BrokerState
from ..model._cluster import Cluster
from ._server_settings import OVERRIDES, listener_limits, server_limits

if TYPE_CHECKING:
    from ..security._listener_security import SecuredListener

#: The maximum time to resolve the host names of a change; all other changes wait meanwhile.
LOOKUP_SECONDS_MAX: Final = 10.0

# How many topics are configured before other tasks run.
TOPICS_AT_ONCE = 20

LOG_KEYS = TOPIC_DEFAULTS | {"producer.id.expiration.ms"}
"""The keys that apply to logs. Several nodes have the same logs, so that none is set for one."""

CLEANER_THREADS: Final = "log.cleaner.threads"


@attrs.define(eq=False)
class LogReconfiguration:
    """The :class:`.Reconfigurable` that applies altered settings to the logs.

    Args:
        cluster: the cluster that owns the logs.
        settings: the settings of the cluster's first node.
    """

    _cluster: Cluster
    settings: DynamicConfig

    async def prepare(self, settings: DynamicConfig, altered: frozenset[str]) -> Apply:
        """Return a function that applies the settings to the logs and their cleaner.

        Raises:
            ConfigError: the number of cleanings at the same time would change by too much (Kafka:
                LogCleaner.validateReconfiguration), or local retention would exceed retention.
        """
        old, new = self.settings.current, settings.current
        if old[CLEANER_THREADS] != new[CLEANER_THREADS]:  # 0 at the start is allowed, and stays
            check_resize(
                CLEANER_THREADS, old.integer(CLEANER_THREADS), new.integer(CLEANER_THREADS)
            )
        if not altered.isdisjoint(TOPIC_DEFAULTS):  # else the start's would refuse any change
            _check_local_retention(new)
        await trio.lowlevel.checkpoint()
        return partial(self._apply, settings, altered)

    async def _apply(self, settings: DynamicConfig, altered: frozenset[str]) -> None:
        self.settings = settings
        self._cluster.reconfigure(settings.current)
        if not altered.isdisjoint(LOG_KEYS):
            await self._configure_logs()
        await trio.lowlevel.checkpoint()

    async def _configure_logs(self) -> None:
        """Update the settings of all logs, since topics inherit the broker's settings."""
        # Most topics have no own settings, so that all logs share a few configs.
        cluster = self._cluster
        made: dict[tuple[tuple[str, str], ...], LogConfig] = {}
        names = [topic.name for topic in cluster.topics]
        for index, name in enumerate(names):
            if index % TOPICS_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            # Looked up again, since it may have been altered or deleted during the checkpoint.
            topic = cluster.topics.get(name)
            if topic is None:
                continue
            own = tuple(topic.configs.items())
            config = made.get(own)
            if config is None:
                config = made[own] = cluster.log_config(topic.configs)
            cluster.configure_logs(topic, config)


@attrs.define(eq=False)
class NodeReconfiguration:
    """The :class:`.Reconfigurable` that applies altered settings to one node and its server.

    (Kafka: SocketServer, DynamicThreadPool and SslFactory as Reconfigurable.)

    Args:
        state: the node's state.
        server: the node's running server.
        secured: the server's listeners with TLS or SASL, by name.
        nodes: the number of nodes in the process; None if connections use no file descriptors.
    """

    _state: BrokerState
    _server: SocketServer
    _secured: Mapping[str, SecuredListener]
    _nodes: int | None

    @property
    def settings(self) -> DynamicConfig:
        """The current settings."""
        return self._state.settings

    async def prepare(self, settings: DynamicConfig, altered: frozenset[str]) -> Apply:
        """Validate new settings, and return a function that applies them.

        Args:
            settings: the new settings.
            altered: the altered keys; a store that any of them concerns is read again.

        Raises:
            ConfigError: the settings are not allowed.
        """
        old, new = self._state.config, settings.current
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
            self._state.reconfigure(settings)
            for renew in renewals:
                renew()
            quotas = self._server.quotas
            quotas.set_limits(limits)
            try:
                for name, of_listener in of_listeners.items():
                    quotas.set_listener_limits(name, of_listener)
                self._server.resize_handlers(new.integer("num.io.threads"))
                for name, count in processors.items():
                    await self._server.resize_processors(count, name)
            except LocalProtocolError:  # the server has stopped, and its successor applies these
                await trio.lowlevel.checkpoint()

        return apply

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
            keys = {f"{LISTENER_PREFIX}{name.lower()}.{key}" for key in STORES}
            if listener.tls is not None and not keys.isdisjoint(altered):
                renewals.append(await listener.prepare_certificates(new))
        await trio.lowlevel.checkpoint()
        return renewals


def _check_local_retention(config: BrokerConfig) -> None:
    """Reject what Kafka rejects at run time (DynamicLogConfig), though nothing here is tiered."""
    for unit in ("ms", "bytes"):
        row = TOPIC_KEYS[f"retention.{unit}"]
        key, longest = f"log.local.retention.{unit}", broker_value(config, row)
        local = config.integer(key)
        if isinstance(longest, int) and longest >= 0 and (local == -1 or local > longest):
            raise ConfigError(
                f"{key} = {local} must not exceed log.retention.{unit} = {longest}, of which -2 is"
                " all"
            )


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
