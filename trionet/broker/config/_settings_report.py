"""Tells once in the log which settings have no effect: accepted is not the same as applied."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType

from ...protocol._config_types import Value, value_text
from ..groups._offsets_partition import PARTITIONS
from ._broker_config import BrokerConfig

logger = logging.getLogger("trionet.broker")


# What means nothing on one node only because it is one.
_OF_SEVERAL = ("min.insync.replicas",)

# On several it would mean something, too, but is not applied; None where no value tells what is so.
_NOT_SIMULATED: Mapping[str, Value] = MappingProxyType(
    {
        "auto.leader.rebalance.enable": False,
        "leader.imbalance.check.interval.seconds": None,
        "offsets.topic.num.partitions": PARTITIONS,
        "offsets.topic.replication.factor": None,
        "replica.selector.class": None,
    }
)


def report_settings(
    config: BrokerConfig, before: BrokerConfig | None = None, *, nodes: int = 1
) -> None:
    """Report settings.

    Args:
        config: the settings.
        before: those that were reported already; None for a start.
        nodes: how many nodes the broker has.
    """

    def added(now: tuple[str, ...], then: tuple[str, ...]) -> str:
        return ", ".join(each for each in now if each not in then)

    ignored, not_applied = _without_effect(config, nodes)
    ignored_before, not_applied_before = _without_effect(before, nodes) if before else ((), ())
    if said := added(ignored, ignored_before):
        logger.info("without meaning on one node: %s", said)
    if said := added(not_applied, not_applied_before):
        logger.warning("not applied by this version: %s", said)
    if said := added(config.of_no_listener, before.of_no_listener if before else ()):
        logger.warning("for listeners that there are not: %s", said)


def _without_effect(config: BrokerConfig, nodes: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The keys that mean nothing, and the settings that are not applied."""
    if nodes == 1:
        return config.without_meaning, config.not_applied
    ignored = [key for key in config.without_meaning if key not in _OF_SEVERAL]
    not_simulated = [
        f"{key}={value_text(config.given[key])}"
        for key in ignored
        if key in _NOT_SIMULATED and config.given[key] != _NOT_SIMULATED[key]
    ]
    return (
        tuple(key for key in ignored if key not in _NOT_SIMULATED),
        (*config.not_applied, *not_simulated),
    )
