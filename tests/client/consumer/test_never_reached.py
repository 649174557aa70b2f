"""What a consumer's loop does while no broker can be reached: before the first one, and after."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from support.scripted_logs import Logs
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer._open_consumer import open_consumer
from trionet.errors import CallTimedOutError
from trionet.testing import MemoryNetwork

T0 = TopicPartition("t", 0)
NOWHERE = "10.0.0.9:9092"
CAUSE = r"no bootstrap broker could be reached \(10\.0\.0\.9:9092: connection refused\)"


async def test_loop_that_never_reached_a_broker_ends_with_the_cause(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """Waiting for ever would hide a wrong address or protocol."""
    async with open_consumer(NOWHERE, network=network) as consumer:
        consumer.assign([T0])
        with pytest.raises(CallTimedOutError, match=CAUSE):
            await anext(aiter(consumer))

        assert 60 == pytest.approx(trio.current_time())
        with pytest.raises(CallTimedOutError, match=CAUSE):  # and it may be tried again
            await consumer.next_batch()
        assert 120 == pytest.approx(trio.current_time())


async def test_loop_with_a_time_limit_of_its_own_learns_the_cause_too(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """As users of Kafka's ``poll(timeout)`` write it; the times of its waits add up."""
    async with open_consumer(NOWHERE, network=network, default_api_timeout_ms=30_000) as consumer:
        consumer.assign([T0])
        for _ in range(29):
            with trio.move_on_after(1):
                await consumer.next_batch()

            assert "10.0.0.9:9092: connection refused" in consumer.connection_problem()
        with pytest.raises(CallTimedOutError, match=CAUSE):
            await consumer.next_batch()


async def test_group_that_was_never_reached_is_not_waited_for(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    async with open_consumer(NOWHERE, network=network, group_id="g", topics="t") as consumer:
        with pytest.raises(CallTimedOutError, match=CAUSE):
            await anext(aiter(consumer))


async def test_loop_that_has_reached_a_broker_waits_through_every_outage(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    logs = Logs(network)
    logs.write(b"one")
    async with open_consumer(logs.address, network=network) as consumer:
        async with logs.listening():
            consumer.assign([T0])
            consumer.seek(T0, 0)
            await anext(aiter(consumer))
        with trio.move_on_after(100) as outage:
            await anext(aiter(consumer))

        assert outage.cancelled_caught
        assert "10.0.0.1:9092" in consumer.connection_problem()


async def test_topic_that_does_not_exist_is_waited_for(
    network: MemoryNetwork, autojump_clock: MockClock
) -> None:
    """Nothing is wrong with the brokers."""
    logs = Logs(network)
    async with logs.listening(), open_consumer(logs.address, network=network) as consumer:
        consumer.assign([TopicPartition("none", 0)])
        with trio.move_on_after(100) as waiting:
            await anext(aiter(consumer))

        assert waiting.cancelled_caught
