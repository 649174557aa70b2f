"""Kafka clients on trio: the network client, producer, consumer and admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._util._imports import lazy_exports

if TYPE_CHECKING:
    from ._topic_partition import OffsetAndMetadata, TopicPartition
    from .network._cluster import Cluster, Node
    from .network._metadata import Metadata
    from .network._metadata_updater import ManualMetadataUpdater
    from .network._network_client import NetworkClient
    from .network._open_client import ClientSettings, open_network_client
    from .network._responses import ClientResponse

__all__ = [
    "ClientResponse",
    "ClientSettings",
    "Cluster",
    "ManualMetadataUpdater",
    "Metadata",
    "NetworkClient",
    "Node",
    "OffsetAndMetadata",
    "TopicPartition",
    "open_network_client",
]

#: The module that defines each name; it is imported when the name is first used, so that a command
#: that needs only TopicPartition does not import the network client.
_HOMES = {
    "_topic_partition": "OffsetAndMetadata TopicPartition",
    "network._cluster": "Cluster Node",
    "network._metadata": "Metadata",
    "network._metadata_updater": "ManualMetadataUpdater",
    "network._network_client": "NetworkClient",
    "network._open_client": "ClientSettings open_network_client",
    "network._responses": "ClientResponse",
}

if not TYPE_CHECKING:  # a type checker would accept every misspelt name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
