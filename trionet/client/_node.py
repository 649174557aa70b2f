"""A broker's id and address (Kafka: Node)."""

from __future__ import annotations

from typing import Final

import attrs

COORDINATOR_ID_BASE: Final = 2**31 - 1
"""Group coordinators get a connection of their own, whose node id counts down from here, as in
Kafka: a heartbeat must not wait behind a Fetch request that the broker is holding."""

# Broker ids are far below this; the node ids of coordinator connections are above.
_COORDINATORS_ABOVE: Final = 2**30


@attrs.frozen
class Node:
    """One broker of a cluster.

    Attributes:
        id: the broker's ``node.id``; negative for an entry of ``bootstrap.servers``; counting down
            from :data:`COORDINATOR_ID_BASE` for the connection to a coordinator.
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
