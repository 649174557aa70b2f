"""What a cluster knows of one of its nodes (Kafka: BrokerRegistration)."""

from __future__ import annotations

from ...net.wire._endpoint import Endpoint
from ..groups._group_coordinator import GroupCoordinator


class BrokerRegistration:
    """A node as the other nodes see it: its id, rack, addresses, and the groups it coordinates.

    It exists so that a cluster need not know the :class:`.BrokerState` of its nodes, which knows
    the cluster.

    Args:
        node_id: the node's id.
        rack: ``broker.rack``.
        groups: the coordinator of the node's groups.
    """

    def __init__(self, node_id: int, rack: str | None, groups: GroupCoordinator) -> None:
        self.node_id = node_id
        self.rack = rack
        self.groups = groups
        self._advertised: dict[str, Endpoint] = {}

    @property
    def has_addresses(self) -> bool:
        """Whether the node has ever listened."""
        return bool(self._advertised)

    def advertise(self, endpoint: Endpoint) -> None:
        """Set the address of one listener for clients."""
        self._advertised[endpoint.listener_name] = endpoint

    def advertised(self, listener_name: str) -> Endpoint:
        """The address advertised to clients of a listener."""
        return self._advertised[listener_name]
