"""Kafka clients on trio: the network client, producer, consumer and admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._util._imports import lazy_exports

if TYPE_CHECKING:
    from ._node import Node
    from ._topic_partition import OffsetAndMetadata, TopicPartition
    from .metadata._cluster import Cluster
    from .metadata._manual_metadata_updater import ManualMetadataUpdater
    from .metadata._metadata import Metadata
    from .network._network_client import NetworkClient
    from .network._open_client import open_network_client
    from .network._settings import ClientSettings
    from .requests._response import ClientResponse

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
    "_node": "Node",
    "_topic_partition": "OffsetAndMetadata TopicPartition",
    "metadata._cluster": "Cluster",
    "metadata._manual_metadata_updater": "ManualMetadataUpdater",
    "metadata._metadata": "Metadata",
    "network._network_client": "NetworkClient",
    "network._open_client": "open_network_client",
    "network._settings": "ClientSettings",
    "requests._response": "ClientResponse",
}

if not TYPE_CHECKING:  # a type checker would accept every misspelt name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
