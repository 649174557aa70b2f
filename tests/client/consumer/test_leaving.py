"""A member that is cancelled from outside its block while its group joins leaves the group."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock

from trionet import Broker, ConsumerRecord, open_broker, open_consumer, process_records
from trionet.testing import BrokerControl, MemoryNetwork, control

DELAY_SECONDS = 3.0
#: What a member needs besides the delays of the broker: requests, and backoffs of retries.
OWN_SECONDS = 0.5
SETTINGS = {"group.id": "g", "auto.offset.reset": "earliest"}
Settings = dict[str, object]
Live = Callable[[Broker, MemoryNetwork, Settings], Awaitable[None]]


@pytest.fixture
async def broker(network: MemoryNetwork) -> AsyncIterator[Broker]:
    delay_ms = round(1000 * DELAY_SECONDS)
    settings = {"group.initial.rebalance.delay.ms": delay_ms}
    async with open_broker(settings, network=network) as running:
        yield running


@pytest.fixture
async def kit(broker: Broker) -> BrokerControl:
    kit = control(broker)
    await kit.create_topic("t", 1)
    await kit.seed("t", [b"a"])
    return kit


async def consume(broker: Broker, network: MemoryNetwork, settings: Settings) -> None:
    async with open_consumer(
        broker.bootstrap_servers, settings, topics="t", network=network
    ) as consumer:
        async for _ in consumer:
            pass


async def handle(_: ConsumerRecord) -> None:
    await trio.lowlevel.checkpoint()


async def process(broker: Broker, network: MemoryNetwork, settings: Settings) -> None:
    await process_records(
        broker.bootstrap_servers, "t", handle, settings, concurrency=2, network=network
    )


@pytest.mark.parametrize("live", [consume, process])
@pytest.mark.parametrize("seconds", [0.3, 1.5, 2.9])
async def test_next_member_waits_for_the_delays_of_the_broker_only(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    broker: Broker,
    kit: BrokerControl,
    live: Live,
    seconds: float,
) -> None:
    """A member that joins within the first delay begins a second one."""
    with trio.move_on_after(seconds) as scope:
        await live(broker, network, {**SETTINGS})
    assert scope.cancelled_caught
    cancelled_at = scope.deadline
    assert [] == kit.group("g").members

    async with open_consumer(
        broker.bootstrap_servers, SETTINGS, topics="t", network=network
    ) as consumer:
        await anext(consumer)
        waited = trio.current_time() - cancelled_at

    assert waited <= 2 * DELAY_SECONDS - seconds + OWN_SECONDS


@pytest.mark.parametrize("live", [consume, process])
async def test_member_leaves_over_a_new_connection_whatever_the_reconnect_backoff_is(
    autojump_clock: MockClock,
    network: MemoryNetwork,
    broker: Broker,
    kit: BrokerControl,
    live: Live,
) -> None:
    backoff_ms = {"reconnect.backoff.ms": 20_000, "reconnect.backoff.max.ms": 20_000}
    with trio.move_on_after(1) as scope:
        await live(broker, network, {**SETTINGS, **backoff_ms})

    assert trio.current_time() - scope.deadline < OWN_SECONDS
    assert [] == kit.group("g").members


async def test_member_that_has_unsubscribed_while_it_joined_joins_again(
    autojump_clock: MockClock, network: MemoryNetwork, broker: Broker, kit: BrokerControl
) -> None:
    async with open_consumer(
        broker.bootstrap_servers, SETTINGS, topics="t", network=network
    ) as consumer:
        with trio.move_on_after(1):
            await anext(consumer)
        await consumer.unsubscribe()
        assert [] == kit.group("g").members

        consumer.subscribe("t")
        record = await anext(consumer)

    assert b"a" == record.value
