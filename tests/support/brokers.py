"""What tests ask a running broker beside its answers."""

from __future__ import annotations

import trio

from trionet import Broker
from trionet.broker import BrokerStatistics
from trionet.net.close_reason import CloseReason


async def settled(broker: Broker) -> BrokerStatistics:
    """The broker's statistics once everything that can happen now has happened."""
    await trio.testing.wait_all_tasks_blocked()
    return broker.statistics()


async def close_reasons(broker: Broker) -> dict[CloseReason, int]:
    """Why connections have ended so far."""
    return (await settled(broker)).server.closed
