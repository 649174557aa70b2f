"""Kafka's client side on trio: requests to the nodes of a cluster, and their responses."""

from __future__ import annotations

from ._node import Node
from ._topic_partition import TopicPartition
from .metadata._cluster import Cluster
from .metadata._manual_metadata_updater import ManualMetadataUpdater
from .metadata._metadata import Metadata
from .network._network_client import NetworkClient
from .network._opening import ClientSettings, open_network_client
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
