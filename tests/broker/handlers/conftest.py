"""A broker in memory and a client of it, for tests that need no other settings."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.client import Client, connect
from trionet import Broker, open_broker


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with open_broker() as broker:
        yield broker


@pytest.fixture
async def client(broker: Broker) -> AsyncIterator[Client]:
    async with connect(broker.bootstrap_servers) as client:
        yield client
