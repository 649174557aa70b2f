"""What a consumer looks up for its user, beside what it reads."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from trionet import open_broker, open_consumer
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
