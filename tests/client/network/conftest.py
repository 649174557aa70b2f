"""A network client of a node that does what a test says."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio

from support.scripted_node import ScriptedNode
from trionet.client.network._network_client import NetworkClient
from trionet.client.network._open_client import open_network_client
from trionet.testing import MemoryNetwork


@pytest.fixture
async def client(network: MemoryNetwork, node: ScriptedNode) -> AsyncIterator[NetworkClient]:
    """A client that the test polls."""
    async with open_network_client(node.address, network=network) as opened:
        yield opened


@pytest.fixture
async def running(client: NetworkClient) -> AsyncIterator[NetworkClient]:
    """A client that another task polls."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.run)
        yield client
        nursery.cancel_scope.cancel()
