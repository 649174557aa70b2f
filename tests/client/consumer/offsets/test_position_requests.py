"""What a consumer asks for before it can read a partition."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from trionet import TopicPartition, open_broker, open_consumer
from trionet.testing import MemoryNetwork, control


async def test_topics_that_are_already_read_are_not_asked_for_again_with_one_more(
    autojump_clock: MockClock,
) -> None:
    network = MemoryNetwork()
    async with open_broker(network=network) as broker:
        kit = control(broker)
        partitions = [TopicPartition(f"t{number}", 0) for number in range(20)]
        for each in partitions:
            await kit.seed(each.topic, [b"a"])
        async with open_consumer(
            broker.bootstrap_servers, auto_offset_reset="earliest", network=network
        ) as consumer:
            consumer.assign(partitions[:18])
            await anext(consumer)
            await trio.sleep(2)
            kit.forget_requests()
            for count in (19, 20):
                consumer.assign(partitions[:count])
                await trio.sleep(2)

            requests = kit.requests("Metadata")
            assert [{"t18"}, {"t19"}] == [{name for name, _ in each.topics} for each in requests]
