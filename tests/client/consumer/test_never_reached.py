"""What a consumer's loop does while no broker can be reached: before the first one, and after."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from support.scripted_logs import Logs
from trionet import open_broker, open_producer
from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer._open_consumer import open_consumer
from trionet.errors import CallTimedOutError, DisconnectedError
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
        with pytest.raises(CallTimedOutError, match=CAUSE) as raised:
            await anext(aiter(consumer))

        assert 60 == pytest.approx(trio.current_time())
        cause = raised.value.__cause__
        assert "could not connect to 10.0.0.9:9092 (bootstrap): connection refused" == str(cause)
        assert isinstance(cause, DisconnectedError)
        assert isinstance(cause.__cause__, ConnectionRefusedError)
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


async def test_partition_that_does_not_exist_is_waited_for_and_named(
    network: MemoryNetwork, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """It may be added later; until then the loop, and each time limit, learns why it waits."""
    text = "partition 5 does not exist; topic t has 2 partitions"
    async with (
        open_broker(network=network, topics={"t": 2}) as broker,
        open_consumer(broker.bootstrap_servers, network=network) as consumer,
    ):
        consumer.assign([TopicPartition("t", 1), TopicPartition("t", 5)])
        with trio.move_on_after(15):
            await consumer.next_batch()

        assert text == consumer.connection_problem()
        consumer.assign([TopicPartition("t", 1)])
        assert "" == consumer.connection_problem()
    assert [f"{text}; waiting for it"] == [each for each in caplog.messages if text in each]


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


async def test_group_whose_brokers_have_gone_is_left_soon(
    network: MemoryNetwork, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Its program says why the last commit is missing, instead of seeming to hang."""
    address = "10.0.0.5:9092"
    async with open_consumer(
        address, network=network, group_id="g", topics="t", auto_offset_reset="earliest"
    ) as consumer:
        async with open_broker({"listeners": f"PLAINTEXT://{address}"}, network=network):
            async with open_producer(address, network=network) as producer:
                await producer.send("t", b"one")
            await anext(aiter(consumer))
        left_at = trio.current_time()

    assert 5 == pytest.approx(trio.current_time() - left_at, abs=0.1)
    assert (
        "group g: the offsets of the last records were not committed, so they will be read again:"
        " no bootstrap broker could be reached (10.0.0.5:9092: connection refused)"
    ) in caplog.messages
