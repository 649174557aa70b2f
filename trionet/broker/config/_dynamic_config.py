"""A broker's settings in their layers: what it was started with, and what was altered since then.

(Kafka: DynamicBrokerConfig.) The settings of one broker win over those of all brokers, and these
over what it was started with.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import attrs

from ...errors import ConfigError
from ...protocol._config_types import Value
from ._broker_config import BrokerConfig
from ._dynamic_keys import checked_with, read_settings

logger = logging.getLogger("trionet.broker")


@attrs.frozen
class DynamicConfig:
    """The settings of one broker.

    Args:
        static: what it was started with.
        cluster: what was altered for all brokers.
        own: what was altered for this one.

    Attributes:
        current: what counts.

    Raises:
        ConfigError: the settings do not fit each other.
    """

    static: BrokerConfig
    cluster: Mapping[str, Value] = attrs.field(factory=dict)
    own: Mapping[str, Value] = attrs.field(factory=dict)
    current: BrokerConfig = attrs.field(init=False)

    @current.default
    def _current(self) -> BrokerConfig:
        if not self.cluster and not self.own:
            return self.static
        return BrokerConfig({**self.static.given, **self.cluster, **self.own})

    def without(self, group: str) -> DynamicConfig:
        """The settings without what was altered of keys that are checked together.

        Args:
            group: what :func:`._dynamic_keys.checked_with` says of these keys.
        """
        return DynamicConfig(self.static, _without(self.cluster, group), _without(self.own, group))

    @classmethod
    def restore(
        cls, static: BrokerConfig, cluster: Mapping[str, str], own: Mapping[str, str]
    ) -> DynamicConfig:
        """The settings at a start, with what was altered before.

        What cannot be used any more, since ``static`` has changed, is told in the log and left out.

        Args:
            static: what the broker is started with.
            cluster: what was altered for all brokers, as texts.
            own: what was altered for this one.
        """
        layers = []
        for texts, of_all in ((cluster, True), (own, False)):
            values, problems = read_settings(static, texts, of_all=of_all)
            layers.append(values)
            for problem in problems.values():
                logger.warning("an altered setting is left out: %s", problem)
        try:
            return cls(static, *layers)
        except ConfigError as error:
            logger.warning("what was altered is left out: %s", error)
            return cls(static)


def _without(settings: Mapping[str, Value], group: str) -> dict[str, Value]:
    return {key: value for key, value in settings.items() if checked_with(key) != group}
