"""A broker's id and address (Kafka: Node)."""

from __future__ import annotations

from typing import Final

import attrs

COORDINATOR_ID_BASE: Final = 2**31 - 1
"""The node ids of connections to group coordinators count down from this value, as in Kafka.

These connections are separate, because a heartbeat must not wait for a Fetch request that the
broker is holding."""

# Broker ids are far below this value; the node ids of coordinator connections are above it.
_COORDINATORS_ABOVE: Final = 2**30


@attrs.frozen
class Node:
    """A broker of a cluster.

    Attributes:
        id: the broker's ``node.id``. Entries of ``bootstrap.servers`` have negative ids;
            connections to coordinators have ids that count down from :data:`COORDINATOR_ID_BASE`.
        host: the advertised host name or address.
        port: the advertised port.
        rack: the broker's rack; None if it has none.
    """

    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> str:
        """``host:port``, with brackets around an IPv6 address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def broker_id(self) -> int | None:
        """The broker's ``node.id``; None for a bootstrap server."""
        if self.id < 0:
            return None
        return COORDINATOR_ID_BASE - self.id if self.id > _COORDINATORS_ABOVE else self.id

    def __str__(self) -> str:
        if self.id < 0:
            return f"{self.address} (bootstrap)"
        role = "coordinator, " if self.id > _COORDINATORS_ABOVE else ""
        return f"{self.address} ({role}node {self.broker_id})"
