"""What a consumer looks up for its user, beside what it reads."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from trionet import ApiError, TopicPartition, open_broker, open_consumer
from trionet.client.consumer._consumer import Consumer
from trionet.testing import MemoryNetwork, control


async def read(consumer: Consumer) -> None:
    async for _ in consumer:
        pass


async def test_look_ups_beside_a_rebalance_get_their_metadata_at_once(
    autojump_clock: MockClock,
) -> None:
    """Whichever step of the rebalance comes between the call and the Metadata request."""
    network = MemoryNetwork()
    async with open_broker({"group.initial.rebalance.delay.ms": "0"}, network=network) as broker:
        kit = control(broker)
        for name in ["t", *(f"o{number}" for number in range(60))]:
            await kit.seed(name, [b"a"])
        async with (
            open_consumer(
                broker.bootstrap_servers,
                topics="t",
                group_id="g",
                auto_offset_reset="earliest",
                network=network,
            ) as consumer,
            trio.open_nursery() as nursery,
        ):
            await anext(consumer)
            nursery.start_soon(read, consumer)
            for number in range(60):
                await trio.sleep(7)
                consumer.rejoin("a test asks for it")
                for _ in range(number % 6):
                    await trio.lowlevel.checkpoint()
                asked_at = trio.current_time()
                assert [0] == await consumer.partitions_of(f"o{number}")
                assert trio.current_time() < asked_at + 1
            nursery.cancel_scope.cancel()


async def test_error_of_a_topic_that_is_looked_up_is_not_raised_to_the_reader(
    autojump_clock: MockClock,
) -> None:
    network = MemoryNetwork()
    async with open_broker(network=network) as broker:
        await control(broker).seed("t", [b"a"])
        async with open_consumer(
            broker.bootstrap_servers, auto_offset_reset="earliest", network=network
        ) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            with pytest.raises(ApiError, match="INVALID_TOPIC_EXCEPTION"):
                await consumer.partitions_of("not a topic's name!")

            assert b"a" == (await anext(consumer)).value
            with trio.move_on_after(400):
                await anext(consumer)


async def test_error_of_a_topic_that_is_no_longer_assigned_is_not_raised_again(
    autojump_clock: MockClock,
) -> None:
    network = MemoryNetwork()
    async with open_broker(network=network) as broker:
        kit = control(broker)
        await kit.seed("t", [b"a"])
        await kit.seed("u", [b"b"])
        async with open_consumer(
            broker.bootstrap_servers, auto_offset_reset="earliest", network=network
        ) as consumer:
            t = TopicPartition("t", 0)
            consumer.assign([TopicPartition("not a topic's name!", 0), t])
            with pytest.raises(ApiError, match="INVALID_TOPIC_EXCEPTION"):
                await anext(consumer)
            consumer.assign([t])
            assert [0] == await consumer.partitions_of("u")

            assert b"a" == (await anext(consumer)).value


async def test_topic_that_was_looked_up_is_asked_for_only_when_it_is_looked_up_again(
    autojump_clock: MockClock,
) -> None:
    network = MemoryNetwork()
    async with open_broker({"auto.create.topics.enable": "false"}, network=network) as broker:
        kit = control(broker)
        await kit.seed("t", [b"a"])
        async with open_consumer(
            broker.bootstrap_servers, auto_offset_reset="earliest", network=network
        ) as consumer:
            consumer.assign([TopicPartition("t", 0)])
            await anext(consumer)
            assert [] == await consumer.partitions_of("u")
            await trio.sleep(2)  # the next request may already be on its way
            kit.forget_requests()
            await trio.sleep(60)
            assert [] == kit.requests("Metadata")

            await kit.seed("u", [b"b"])
            assert [0] == await consumer.partitions_of("u")
