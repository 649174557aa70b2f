from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.coordinator_members import make_topic
from trionet import Broker, open_broker
from trionet.testing import BrokerControl, MemoryNetwork, control


@pytest.fixture
def network() -> MemoryNetwork:
    return MemoryNetwork()


@pytest.fixture
async def broker(network: MemoryNetwork) -> AsyncIterator[Broker]:
    """A broker in memory that has a topic ``t`` of four partitions."""
    async with open_broker(network=network) as running:
        await make_topic(running, "t", 4, network)
        yield running


@pytest.fixture
def kit(broker: Broker) -> BrokerControl:
    """What tests may ask of the broker."""
    return control(broker)
