"""How many of the process's file descriptors connections may take; the others are for files."""

from __future__ import annotations

import logging

from ...server.quotas._connection_limits import UNLIMITED
from ..config._broker_config import BrokerConfig

logger = logging.getLogger("trionet.broker")

RESERVE = "file.descriptors.reserve"
# Without a limit that is so high, an administrator would be shut out with everybody else.
CONNECTIONS_MIN = 10


def connections_max(config: BrokerConfig, nodes: int = 1) -> int:
    """The most connections that one node may have.

    Any client that can reach a listener can open connections; without a limit they use up the
    descriptors that partitions need to be written to.

    Args:
        config: of the broker.
        nodes: how many nodes share the process, and so its descriptors.
    """
    wanted, limit = config.integer("max.connections"), descriptor_limit()
    if limit is None:
        return wanted
    reserve = config[RESERVE]
    files = reserve if isinstance(reserve, int) else limit // 2
    return min(wanted, max((limit - files) // nodes, CONNECTIONS_MIN))


def log_connections_max(config: BrokerConfig, nodes: int) -> None:
    """Warn of a setting that counts for less than it says."""
    if "max.connections" not in config.given:
        return
    wanted, most = config.integer("max.connections"), connections_max(config, nodes)
    if most < wanted:
        logger.warning(
            "max.connections = %d counts as %d: the process may open %s files, and %s leaves some"
            " of them to partitions; raise the limit (ulimit -n) or lower %s",
            wanted,
            most,
            descriptor_limit(),
            RESERVE,
            RESERVE,
        )


def descriptor_limit() -> int | None:
    """How many descriptors the process may open; None where there is no limit, or none known."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY or soft >= UNLIMITED else soft
