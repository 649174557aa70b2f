"""Tells once in the log which settings have no effect: accepted is not the same as applied."""

from __future__ import annotations

import logging

from .config import BrokerConfig

logger = logging.getLogger("trionet.broker")


# What means nothing on one node only because it is one.
_OF_SEVERAL = ("min.insync.replicas",)


def report_settings(
    config: BrokerConfig, before: BrokerConfig | None = None, *, nodes: int = 1
) -> None:
    """Report settings.

    Args:
        config: the settings.
        before: those that were reported already; None for a start.
        nodes: how many nodes the broker has.
    """
    has_meaning = _OF_SEVERAL if nodes > 1 else ()

    def added(now: tuple[str, ...], then: tuple[str, ...]) -> str:
        return ", ".join(each for each in now if each not in then and each not in has_meaning)

    if said := added(config.without_meaning, before.without_meaning if before else ()):
        logger.info("without meaning on one node: %s", said)
    if said := added(config.not_applied, before.not_applied if before else ()):
        logger.warning("not applied by this version: %s", said)
    if said := added(config.of_no_listener, before.of_no_listener if before else ()):
        logger.warning("for listeners that there are not: %s", said)
