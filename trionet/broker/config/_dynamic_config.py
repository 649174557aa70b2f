"""A broker's settings in layers: static settings, and settings altered at run time.

(Kafka: DynamicBrokerConfig.) Settings altered for one broker take precedence over settings altered
for all brokers, which take precedence over the settings that the broker was started with.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import attrs

from ...errors import ConfigError
from ...protocol._config_types import Value
from ._broker_config import BrokerConfig
from ._dynamic_keys import check_group, read_settings

logger = logging.getLogger("trionet.broker")


@attrs.frozen
class DynamicConfig:
    """The settings of one broker.

    Args:
        static: the settings that the broker was started with.
        cluster: the settings altered for all brokers.
        own: the settings altered for this broker.

    Attributes:
        current: the effective settings.

    Raises:
        ConfigError: settings conflict.
    """

    static: BrokerConfig
    cluster: Mapping[str, Value] = attrs.field(factory=dict)
    own: Mapping[str, Value] = attrs.field(factory=dict)
    current: BrokerConfig = attrs.field(init=False)

    @current.default
    def _current(self) -> BrokerConfig:
        if not self.cluster and not self.own:
            return self.static
        return BrokerConfig({**self.static.originals, **self.cluster, **self.own})

    def without(self, group: str) -> DynamicConfig:
        """Return the settings without the altered settings of one group of keys.

        Args:
            group: the group's identifier; see :func:`._dynamic_keys.check_group`.
        """
        return DynamicConfig(self.static, _without(self.cluster, group), _without(self.own, group))

    @classmethod
    def restore(
        cls, static: BrokerConfig, cluster: Mapping[str, str], own: Mapping[str, str]
    ) -> DynamicConfig:
        """Return the settings at startup, including the stored alterations.

        Altered settings that a change to ``static`` has made invalid are logged and ignored.

        Args:
            static: the settings that the broker is started with.
            cluster: the stored settings of all brokers, as strings.
            own: the stored settings of this broker, as strings.
        """
        layers = []
        for texts, for_all_brokers in ((cluster, True), (own, False)):
            values, problems = read_settings(static, texts, for_all_brokers=for_all_brokers)
            layers.append(values)
            for problem in problems.values():
                logger.warning("ignoring an altered setting: %s", problem)
        try:
            return cls(static, *layers)
        except ConfigError as error:
            logger.warning("ignoring all altered settings: %s", error)
            return cls(static)


def _without(settings: Mapping[str, Value], group: str) -> dict[str, Value]:
    return {key: value for key, value in settings.items() if check_group(key) != group}
