from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.scripted_node import ScriptedNode
from trionet.testing import MemoryNetwork


@pytest.fixture
def network() -> MemoryNetwork:
    return MemoryNetwork()


@pytest.fixture
async def node(network: MemoryNetwork) -> AsyncIterator[ScriptedNode]:
    scripted = ScriptedNode(network)
    async with scripted.listening():
        yield scripted
