"""Nodes set by the client's owner rather than fetched (Kafka: ManualMetadataUpdater).

For programs that manage brokers, such as a controller: they know the nodes from another source, and
the client sends no metadata requests.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
from collections.abc import Iterable

import attrs

from ...errors import TrionetError
from ...net._network import SYSTEM
from .._node import Node
from ._metadata import Metadata, MetadataTimes
from ._metadata_updater import MetadataUpdater, Requester


class ManualMetadataUpdater(MetadataUpdater):
    """The nodes of a client that never requests metadata; see :func:`.open_network_client`.

    Args:
        nodes: the initial nodes.

    Raises:
        ValueError: see :meth:`set_nodes`.
    """

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        super().__init__(Metadata([], MetadataTimes(), SYSTEM.rng), is_automatic=False)
        self.set_nodes(nodes)

    @property
    def nodes(self) -> list[Node]:
        """The most recently set nodes (Kafka: fetchNodes)."""
        return list(self.metadata.cluster.nodes.values())

    def set_nodes(self, nodes: Iterable[Node]) -> None:
        """Replace the nodes from which ``least_loaded_node`` chooses.

        Connections are not affected: a connection to a node that was removed, or whose address has
        changed, stays open until it is lost or closed with ``client.close(node)``.

        Raises:
            ValueError: a node id is negative, or occurs more than once.
        """
        found: dict[int, Node] = {}
        for node in nodes:
            if node.id < 0:
                raise ValueError(f"node id {node.id} ({node.address}) must be 0 or more")
            if node.id in found:
                addresses = f"{found[node.id].address} and {node.address}"
                raise ValueError(f"duplicate node id {node.id}: {addresses}")
            found[node.id] = node
        before = self.metadata.cluster
        self.metadata.cluster = attrs.evolve(before, nodes=found, is_bootstrap=False)

    def is_due(self, now: float) -> bool:  # noqa: ARG002 - the base class's signature
        return False

    def maybe_update(self, client: Requester, now: float) -> float:  # noqa: ARG002 - the same
        return math.inf

    def connection_lost(self, error: TrionetError, now: float) -> None:
        pass  # the outcomes of the requests inform the owner
