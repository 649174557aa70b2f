"""The reconfiguration of running logs and nodes (Kafka: BrokerReconfigurable).

The problem: a change must be accepted or rejected as a whole, although several components apply it
(logs, network threads, quotas, certificates), and some must first read files or resolve names.

The choice: two phases. :meth:`prepare` performs all steps that can fail or wait, and returns a
function. When all components are prepared and the change is stored, these functions apply the
change; they cannot fail. :class:`.BrokerConfigs` drives both phases, one change at a time.

Rejected: Kafka's approach, which validates a change and then applies it to one component after
another. If a component fails, Kafka logs the error, and the other components keep the change.

All nodes share the logs, so only settings for all nodes apply to them. With a single node, the
settings of that node also apply to the logs.

Reconsider if applying a change must wait for I/O, since it would no longer be all or nothing.
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

# How many topics are configured before other tasks run.
TOPICS_AT_ONCE = 20

LOG_KEYS = TOPIC_DEFAULTS | {"producer.id.expiration.ms"}
"""The keys that apply to logs; with several nodes, they cannot be set for a single node."""


class LogReconfiguration:
    """The :class:`.Reconfigurable` that applies altered settings to the logs.

    Args:
        cluster: the cluster that owns the logs.
        settings: the settings of the cluster's first node.
    """

    def __init__(self, cluster: Cluster, settings: DynamicConfig) -> None:
        self._cluster = cluster
        self.settings = settings

    async def prepare(self, settings: DynamicConfig, altered: frozenset[str]) -> Apply:
        """Return a function that applies the settings; logs accept all valid settings."""
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


class NodeReconfiguration:
    """The :class:`.Reconfigurable` that applies altered settings to one node.

    Args:
        state: the node's state.
        server: applies settings to the node's network.
    """

    def __init__(self, state: BrokerState, server: ServerChanges) -> None:
        self._state = state
        self._server = server

    @property
    def settings(self) -> DynamicConfig:
        """The current settings."""
        return self._state.settings

    async def prepare(self, settings: DynamicConfig, altered: frozenset[str]) -> Apply:
        """Validate new settings, and return a function that applies them.

        Raises:
            ConfigError: the settings are not allowed.
        """
        change_server = await self._server.prepare(self._state.config, settings.current, altered)
        return partial(self._apply, settings, change_server)

    async def _apply(self, settings: DynamicConfig, change_server: Apply) -> None:
        self._state.reconfigure(settings)
        await change_server()
