"""A client's nodes as its owner gives them, in place of metadata (Kafka: ManualMetadataUpdater).

For whatever drives several brokers by hand, as Kafka's controller does: it knows them from
elsewhere, and no request goes out that it did not send.
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
from ._metadata_updater import Asker, MetadataUpdater


class ManualMetadataUpdater(MetadataUpdater):
    """The nodes of a client that never asks for metadata; see :func:`.open_network_client`.

    Args:
        nodes: at the beginning.

    Raises:
        ValueError: see :meth:`set_nodes`.
    """

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        super().__init__(Metadata([], MetadataTimes(), SYSTEM.chance))
        self.asks = False
        self.set_nodes(nodes)

    @property
    def nodes(self) -> list[Node]:
        """The nodes that were given last (Kafka: fetchNodes)."""
        return list(self.metadata.cluster.nodes.values())

    def set_nodes(self, nodes: Iterable[Node]) -> None:
        """Replace the nodes; from here on ``least_loaded_node`` chooses from these.

        Connections are as they were. One to a node that is not among them any more, or is elsewhere
        now, stays until it is lost, or its owner ends it with ``client.close(node)``.

        Raises:
            ValueError: an id is below zero, or two nodes have the same.
        """
        found: dict[int, Node] = {}
        for node in nodes:
            if node.id < 0:
                raise ValueError(f"node id {node.id} ({node.address}); allowed: 0 or more")
            if node.id in found:
                addresses = f"{found[node.id].address} and {node.address}"
                raise ValueError(f"node id {node.id} is given twice: {addresses}")
            found[node.id] = node
        before = self.metadata.cluster
        self.metadata.cluster = attrs.evolve(before, nodes=found, is_bootstrap=False)

    def is_due(self, now: float) -> bool:  # noqa: ARG002 - as the other updater
        return False

    def maybe_update(self, asker: Asker, now: float) -> float:  # noqa: ARG002 - the same
        return math.inf

    def connection_lost(self, error: TrionetError, now: float) -> None:
        pass  # the owner hears of it by the connection's requests
