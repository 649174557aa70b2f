"""Kafka's client side on trio: requests to the nodes of a cluster, and the answers."""

from __future__ import annotations

from .network_client import NetworkClient
from .opening import ClientSettings, open_network_client
from .response import ClientResponse

__all__ = ["ClientResponse", "ClientSettings", "NetworkClient", "open_network_client"]
