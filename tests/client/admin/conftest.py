from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import trionet
from trionet import Admin, Broker


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with trionet.open_broker() as broker:
        yield broker


@pytest.fixture
async def admin(broker: Broker) -> AsyncIterator[Admin]:
    async with trionet.open_admin(broker.bootstrap_servers) as admin:
        yield admin
