"""The connection limit, which reserves some of the process's file descriptors for files."""

from __future__ import annotations

import logging

from ...server._connection_quotas import UNLIMITED
from ..config._broker_config import BrokerConfig

logger = logging.getLogger("trionet.broker")

RESERVE = "file.descriptors.reserve"
# A lower limit could lock out administrators as well.
CONNECTIONS_MIN = 10


def connections_max(config: BrokerConfig, nodes: int = 1) -> int:
    """Return the effective ``max.connections`` of one node.

    Without a limit, any client could exhaust the file descriptors that partitions need for their
    files.

    Args:
        config: the broker's settings.
        nodes: the number of nodes in the process, which share its file descriptors.
    """
    setting, limit = config.integer("max.connections"), descriptor_limit()
    if limit is None:
        return setting
    reserve = config[RESERVE]
    files = reserve if isinstance(reserve, int) else limit // 2
    return min(setting, max((limit - files) // nodes, CONNECTIONS_MIN))


def log_connections_max(config: BrokerConfig, nodes: int) -> None:
    """Warn if the effective ``max.connections`` is lower than the setting."""
    if "max.connections" not in config.originals:
        return
    setting, effective = config.integer("max.connections"), connections_max(config, nodes)
    if effective < setting:
        logger.warning(
            "max.connections = %d is reduced to %d: the process may open %s files, and %s reserves"
            " some of them for partitions; raise the limit (ulimit -n) or lower %s",
            setting,
            effective,
            descriptor_limit(),
            RESERVE,
            RESERVE,
        )


def descriptor_limit() -> int | None:
    """Return the process's limit on file descriptors; None if it is unlimited or unknown."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY or soft >= UNLIMITED else soft
