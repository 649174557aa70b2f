"""Kafka's client side on trio: requests to the nodes of a cluster, and the answers."""

from __future__ import annotations

from ._node import Node
from .metadata._manual_metadata_updater import ManualMetadataUpdater
from .network._network_client import NetworkClient
from .network._opening import ClientSettings, open_network_client
from .requests._response import ClientResponse

__all__ = [
    "ClientResponse",
    "ClientSettings",
    "ManualMetadataUpdater",
    "NetworkClient",
    "Node",
    "open_network_client",
]
