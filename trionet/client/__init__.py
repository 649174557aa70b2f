"""Kafka clients on trio: the network client, producer, consumer and admin client."""

from __future__ import annotations

from .manual_metadata_updater import ManualMetadataUpdater
from .network_client import NetworkClient
from .node import Node
from .opening import ClientSettings, open_network_client
from .response import ClientResponse

__all__ = [
    "ClientResponse",
    "ClientSettings",
    "ManualMetadataUpdater",
    "NetworkClient",
    "Node",
    "open_network_client",
]
