"""Kafka clients on trio: the network client, producer, consumer and admin client."""

from __future__ import annotations

from ._node import Node
from ._topic_partition import TopicPartition
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
    "TopicPartition",
    "open_network_client",
]
