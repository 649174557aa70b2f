"""Other settings for what runs (Kafka: DynamicBrokerConfig's reconfigurables).

The logs are common to all nodes, so they obey what is set for all of them. Only where there is one
node, its own settings are those of the logs, too.
"""

from __future__ import annotations

from functools import partial

import trio

from ..config._dynamic_config import DynamicConfig
from ..config._dynamic_config_store import Apply
from ..config._dynamic_keys import TOPIC_DEFAULTS
from ..log import LogConfig
from ..model._broker_state import BrokerState
from ..model._cluster import Cluster
from ._server_reconfiguration import ServerChanges

# After so many topics the others on the loop have their turn.
TOPICS_AT_ONCE = 20

OF_LOGS = TOPIC_DEFAULTS | {"producer.id.expiration.ms"}
"""The keys that logs obey; of several nodes, none has them of its own."""


class LogReconfiguration:
    """Brings other settings to the logs; see :class:`._dynamic_config_store.ConfiguredBroker`.

    Args:
        cluster: whose logs.
        settings: of its first node.
    """

    def __init__(self, cluster: Cluster, settings: DynamicConfig) -> None:
        self._cluster = cluster
        self.settings = settings

    async def prepare(self, settings: DynamicConfig, altered: frozenset[str]) -> Apply:
        """Give what has the logs obey other settings; there is nothing that could be wrong."""
        await trio.lowlevel.checkpoint()
        return partial(self._apply, settings, altered)

    async def _apply(self, settings: DynamicConfig, altered: frozenset[str]) -> None:
        self.settings = settings
        self._cluster.use(settings.current)
        if not altered.isdisjoint(OF_LOGS):
            await self._configure_logs()
        await trio.lowlevel.checkpoint()

    async def _configure_logs(self) -> None:
        """The settings are the defaults of topics; most topics have none of their own."""
        cluster = self._cluster
        made: dict[tuple[tuple[str, str], ...], LogConfig] = {}
        names = [topic.name for topic in cluster.topics]
        for index, name in enumerate(names):
            if index % TOPICS_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            topic = cluster.topics.get(name)  # it may be altered or deleted meanwhile
            if topic is None:
                continue
            own = tuple(topic.configs.items())
            config = made.get(own)
            if config is None:
                config = made[own] = cluster.log_config(topic.configs)
            cluster.configure_logs(topic, config)


class NodeReconfiguration:
    """Brings other settings to one node; see :class:`._dynamic_config_store.ConfiguredBroker`.

    Args:
        state: the node without its network.
        server: its network.
    """

    def __init__(self, state: BrokerState, server: ServerChanges) -> None:
        self._state = state
        self._server = server

    @property
    def settings(self) -> DynamicConfig:
        """The settings that count now."""
        return self._state.settings

    async def prepare(self, settings: DynamicConfig, altered: frozenset[str]) -> Apply:
        """Check what has to be done for other settings, and give what does it.

        Raises:
            ConfigError: they are not allowed.
        """
        change_server = await self._server.prepare(self._state.config, settings.current, altered)
        return partial(self._apply, settings, change_server)

    async def _apply(self, settings: DynamicConfig, change_server: Apply) -> None:
        self._state.use(settings)
        await change_server()
