"""What tests ask a running broker beside its responses."""

from __future__ import annotations

import trio

from trionet import Broker
from trionet.broker import BrokerStatistics
from trionet.broker.log import Log
from trionet.net.wire._close_reason import CloseReason


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
