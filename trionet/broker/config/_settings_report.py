"""Logs accepted settings that have no effect."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType

from ...protocol._config_types import Value, value_text
from ._broker_config import BrokerConfig
from ._broker_keys import OFFSETS_PARTITIONS

logger = logging.getLogger("trionet.broker")


# Settings without effect on a single node that are applied with several nodes.
EFFECTIVE_WITH_SEVERAL = ("min.insync.replicas",)

# Settings that are not applied with several nodes either, and the values that match the actual
# behavior; None if no value does.
_NOT_SIMULATED: Mapping[str, Value] = MappingProxyType(
    {
        "auto.leader.rebalance.enable": False,
        "leader.imbalance.check.interval.seconds": None,
        "offsets.topic.num.partitions": OFFSETS_PARTITIONS,
        "offsets.topic.replication.factor": None,
        "replica.selector.class": None,
    }
)


def report_settings(
    config: BrokerConfig, before: BrokerConfig | None = None, *, nodes: int = 1
) -> None:
    """Log the settings that have no effect or are not applied.

    Args:
        config: the current settings.
        before: the settings before a change, which have already been reported; None at startup.
        nodes: the number of nodes.
    """

    def added(now: tuple[str, ...], then: tuple[str, ...]) -> str:
        return ", ".join(each for each in now if each not in then)

    ignored, not_applied = _without_effect(config, nodes)
    ignored_before, not_applied_before = _without_effect(before, nodes) if before else ((), ())
    if text := added(ignored, ignored_before):
        logger.info("settings without effect on a single node: %s", text)
    if text := added(not_applied, not_applied_before):
        logger.warning("settings not applied by this version: %s", text)
    if text := added(config.unknown_listener_keys, before.unknown_listener_keys if before else ()):
        logger.warning("settings for listeners that do not exist: %s", text)


def _without_effect(config: BrokerConfig, nodes: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the keys without effect, and ``key=value`` of each setting that is not applied."""
    if nodes == 1:
        return config.without_effect, config.not_applied
    ignored = [key for key in config.without_effect if key not in EFFECTIVE_WITH_SEVERAL]
    not_simulated = [
        f"{key}={value_text(config.originals[key])}"
        for key in ignored
        if key in _NOT_SIMULATED and config.originals[key] != _NOT_SIMULATED[key]
    ]
    return (
        tuple(key for key in ignored if key not in _NOT_SIMULATED),
        (*config.not_applied, *not_simulated),
    )
