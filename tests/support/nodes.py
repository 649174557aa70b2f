"""Connections to the single nodes of a broker that has several."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from support.client import Client, connect
from trionet import Broker


def address(broker: Broker, node: int) -> str:
    """Where a node listens."""
    return broker.endpoints_of(node)[0].address


@asynccontextmanager
async def connect_to(broker: Broker, *nodes: int) -> AsyncIterator[list[Client]]:
    """A connection to each of these nodes."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(connect(address(broker, n))) for n in nodes]


def leaders(broker: Broker, topic: str = "t", partitions: int = 3) -> list[int]:
    """Who leads the first partitions of a topic."""
    return [broker.leader(topic, partition) for partition in range(partitions)]
