"""What tests ask a running broker beside its responses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import trio

from support.calls import fetch, values_of
from support.client import Client, connect
from trionet import Broker, open_broker
from trionet.broker import BrokerStatistics
from trionet.broker.log import Log
from trionet.net.wire._close_reason import CloseReason
from trionet.protocol.error_codes import name_of


async def settled(broker: Broker) -> BrokerStatistics:
    """The broker's statistics once everything that can happen now has happened."""
    await trio.testing.wait_all_tasks_blocked()
    return broker.statistics()


async def close_reasons(broker: Broker) -> dict[CloseReason, int]:
    """Why connections have ended so far."""
    return (await settled(broker)).server.closed


async def waiting(broker: Broker, count: int) -> None:
    """Return when this many calls wait for data; fail if they never will."""
    assert count == (await settled(broker)).delayed


def log_of(broker: Broker, topic: str = "t", partition: int = 0) -> Log:
    """The log of a partition of a running broker."""
    return broker._state.folder.logs[topic, partition]


@asynccontextmanager
async def broker_and_client(
    settings: Mapping[str, object] | None = None, /, **keywords: Any
) -> AsyncIterator[tuple[Broker, Client]]:
    """A broker, and a client that is connected to it."""
    async with (
        open_broker(settings, **keywords) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        yield broker, client


@asynccontextmanager
async def broker_client(
    settings: Mapping[str, object] | None = None, /, **keywords: Any
) -> AsyncIterator[Client]:
    """A connection to a broker of its own, which ends with the block."""
    async with broker_and_client(settings, **keywords) as (_, client):
        yield client


async def read_all(client: Client, topic: str = "t", partition: int = 0) -> list[bytes | None]:
    """The values of all records of a partition."""
    values: list[bytes | None] = []
    while True:
        data = await fetch(client, topic, len(values), partition=partition)
        assert 0 == data.error_code, f"offset {len(values)}: {name_of(data.error_code)}"
        more = values_of(data)
        if not more:
            return values
        values += more
