"""What is acknowledged is there, nothing is there twice, and every delivery is decided."""

from __future__ import annotations

from typing import Any

import trio

import support.ledger
from cancellations.scene import ADDRESS, PARTITIONS, Scene, UserError
from support import produce_faults
from trionet import Producer, open_producer

CALLS = 4
# Less than the buffers of two batches: who sends more waits for room.
SMALL_BUFFER = 4_000
# A request whose response never comes is soon given up, and no wait between attempts is long.
UNDER_FAULTS = {
    "request.timeout.ms": 1_000,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.max.ms": 100,
}


def settings_of(scene: Scene) -> dict[str, object]:
    rng = scene.rng
    return {
        "linger.ms": rng.choice((0, 5, 50)),
        "batch.size": rng.choice((1, 200, 16_384)),
        "max.in.flight.requests.per.connection": rng.choice((1, 5)),
        "compression.type": rng.choice(("none", "none", "gzip")),
    }


class Ledger(support.ledger.Ledger):
    """The records of one producer.

    Args:
        scene: where.
        topic: of all records.
        is_idempotent: see :class:`support.ledger.Ledger`.
    """

    def __init__(self, scene: Scene, topic: str, *, is_idempotent: bool = True) -> None:
        super().__init__(is_idempotent=is_idempotent)
        self._scene = scene
        self._topic = topic

    def check(self) -> None:
        """After the end of the block."""
        self.check_log(self._scene.kit.records(self._topic))


async def send(scene: Scene) -> None:
    """One awaited send after the other."""
    ledger = Ledger(scene, topic := await scene.make_topic())
    async with open_producer(ADDRESS, settings_of(scene), network=scene.network) as producer:
        for _ in range(CALLS):
            value = ledger.next()
            with scene.cut.around():
                ledger.acknowledged(value, await producer.send(topic, value))
        await send_last(producer, topic, ledger)
    ledger.check()


async def send_last(producer: Producer, topic: str, ledger: Ledger) -> None:
    """The producer still works."""
    for partition in range(PARTITIONS):
        value = ledger.next()
        ledger.acknowledged(value, await producer.send(topic, value, partition=partition))


async def enqueue(scene: Scene) -> None:
    """Some records are taken, then all of them awaited; who stops waiting withdraws nothing."""
    ledger = Ledger(scene, topic := await scene.make_topic())
    async with open_producer(ADDRESS, settings_of(scene), network=scene.network) as producer:
        for _ in range(2):
            deliveries = []
            for _ in range(CALLS):
                value = ledger.next()
                with scene.cut.around():
                    delivery = await producer.enqueue(topic, value)
                    ledger.taken(value, delivery)
                    deliveries.append(delivery)
            for delivery in deliveries:
                with scene.cut.around():
                    await delivery
        await send_last(producer, topic, ledger)
        await producer.flush()
        ledger.check_taken()
    ledger.check()


async def flush(scene: Scene) -> None:
    """Records are buffered without waiting, then flushed."""
    ledger = Ledger(scene, topic := await scene.make_topic())
    async with open_producer(ADDRESS, settings_of(scene), network=scene.network) as producer:
        await send_last(producer, topic, ledger)
        for _ in range(3):
            for _ in range(CALLS):
                value = ledger.next()
                ledger.taken(value, producer.send_nowait(topic, value))
            with scene.cut.around() as scope:
                await producer.flush()
            if not scope.cancelled_caught:
                ledger.check_taken()
        await producer.flush()
        ledger.check_taken()
    ledger.check()


async def send_batch(scene: Scene) -> None:
    """Columns; those of a call that was cancelled may be there in part."""
    ledger = Ledger(scene, topic := await scene.make_topic())
    async with open_producer(ADDRESS, settings_of(scene), network=scene.network) as producer:
        for partition in (None, 0, None, 1):
            values = [ledger.next() for _ in range(CALLS)]
            with scene.cut.around():
                told = await producer.send_batch(topic, values, partition=partition)
                for value, delivery in zip(values, told, strict=True):
                    ledger.acknowledged(value, delivery.result())
        await send_last(producer, topic, ledger)
    ledger.check()


async def wait_for_room(scene: Scene) -> None:
    """Two tasks share a buffer that is too small for both; one is cancelled, the other goes on."""
    ledger = Ledger(scene, topic := await scene.make_topic())
    settings = {**settings_of(scene), "buffer.memory": SMALL_BUFFER, "batch.size": 1_000}
    big = b"." * 700

    async def other(producer: Producer) -> None:
        for _ in range(2 * CALLS):
            value = neighbour.next()
            told = await producer.send(own_topic, value, headers=[("fill", big)])
            neighbour.acknowledged(value, told)

    own_topic = f"{topic}-other"
    await scene.kit.create_topic(own_topic, PARTITIONS)
    neighbour = Ledger(scene, own_topic)
    async with (
        open_producer(ADDRESS, settings, network=scene.network) as producer,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(other, producer)
        for _ in range(2 * CALLS):
            value = ledger.next()
            with scene.cut.around():
                taken = await producer.enqueue(topic, value, headers=[("fill", big)])
                ledger.taken(value, taken)
        await producer.flush()
        ledger.check_taken()
        await send_last(producer, topic, ledger)
    ledger.check()
    neighbour.check()


async def live(scene: Scene) -> None:
    """The whole life of a producer, from opening it to the end of its block."""
    ledger = Ledger(scene, topic := await scene.make_topic())
    with scene.cut.around():
        async with open_producer(ADDRESS, settings_of(scene), network=scene.network) as producer:
            await use(producer, topic, ledger)
    ledger.check()


async def use(producer: Producer, topic: str, ledger: Ledger) -> None:
    for _ in range(2):
        value = ledger.next()
        ledger.acknowledged(value, await producer.send(topic, value))
    for _ in range(CALLS):
        value = ledger.next()
        ledger.taken(value, await producer.enqueue(topic, value))


async def fail(scene: Scene) -> None:
    """The same with an error of the user's own in the block, which leaves it as it is."""
    ledger = Ledger(scene, topic := await scene.make_topic())
    settings: Any = settings_of(scene)
    try:
        with scene.cut.around():
            async with open_producer(ADDRESS, settings, network=scene.network) as producer:
                await use(producer, topic, ledger)
                raise UserError
    except UserError:
        pass
    ledger.check()


async def first_batches(scene: Scene) -> None:
    """The first requests to a partition are refused or lost, several of them in flight."""
    rng = scene.rng
    is_idempotent = rng.random() < 0.75
    ledger = Ledger(scene, topic := await scene.make_topic(), is_idempotent=is_idempotent)
    settings = {
        **settings_of(scene),
        **UNDER_FAULTS,
        "enable.idempotence": is_idempotent,
        "linger.ms": 0,
        "batch.size": rng.choice((1, 1, 1, 200)),
        "max.in.flight.requests.per.connection": rng.choice((2, 5, 5)),
    }
    with scene.kit.faults.block():
        for partition in range(PARTITIONS):
            outcomes = produce_faults.draw(rng)
            produce_faults.plant(scene.kit.faults, outcomes, topic=topic, partition=partition)
        async with open_producer(ADDRESS, settings, network=scene.network) as producer:
            for _ in range(2):
                deliveries, partition = [], rng.randrange(PARTITIONS)
                for _ in range(CALLS):
                    value = ledger.next()
                    with scene.cut.around():
                        delivery = await producer.enqueue(topic, value, partition=partition)
                        ledger.taken(value, delivery)
                        deliveries.append(delivery)
                value = ledger.next()
                with scene.cut.around():
                    ledger.acknowledged(value, await producer.send(topic, value, partition=1))
                for delivery in deliveries:
                    with scene.cut.around():
                        await delivery
            await producer.flush()
            ledger.check_taken()
    ledger.check()
