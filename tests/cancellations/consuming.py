"""Within a consumer's life no record is lost and none comes twice."""

from __future__ import annotations

import trio

from cancellations.scene import ADDRESS, PARTITIONS, Scene
from support.ledger import Violation
from trionet import Consumer, TopicPartition, open_consumer

# In each partition, in batches of so many.
RECORDS = 6
BATCH = 2


def settings_of(scene: Scene) -> dict[str, object]:
    rng = scene.rng
    return {
        "auto.offset.reset": "earliest",
        "max.poll.records": rng.choice((1, 3, 500)),
        "fetch.max.bytes": rng.choice((100, 52_428_800)),
        "max.partition.fetch.bytes": rng.choice((100, 1_048_576)),
        "fetch.max.wait.ms": rng.choice((50, 500)),
    }


async def make_records(scene: Scene) -> str:
    """A topic with records."""
    topic = await scene.make_topic()
    for start in range(0, RECORDS, BATCH):
        offsets = range(start, start + BATCH)
        await scene.kit.seed(
            topic,
            [{"partition": p, "value": b"%d" % o} for p in range(PARTITIONS) for o in offsets],
        )
    return topic


class Seen:
    """What one consumer has handed out in its life."""

    def __init__(self) -> None:
        self.next = dict.fromkeys(range(PARTITIONS), 0)

    def saw(self, partition: int, offset: int) -> None:
        if offset != self.next[partition]:
            raise Violation(f"{partition} has {offset} where {self.next[partition]} is next")
        self.next[partition] += 1

    @property
    def is_all(self) -> bool:
        return all(each == RECORDS for each in self.next.values())


def places(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, each) for each in range(PARTITIONS)]


async def records(scene: Scene) -> None:
    """One record after the other."""
    topic, seen = await make_records(scene), Seen()
    async with open_consumer(ADDRESS, settings_of(scene), network=scene.network) as consumer:
        consumer.assign(places(topic))
        while not seen.is_all:
            with scene.cut.around():
                record = await anext(consumer)
                seen.saw(record.partition, record.offset)
        check_positions(consumer, topic)
        await read_new(scene, consumer, topic)


def check_positions(consumer: Consumer, topic: str) -> None:
    for place in places(topic):
        if consumer.position(place) != RECORDS:
            raise Violation(f"the position of {place} is {consumer.position(place)} at the end")


async def read_new(scene: Scene, consumer: Consumer, topic: str) -> None:
    """The consumer still works."""
    await scene.kit.seed(topic, [{"partition": 1, "value": b"new"}])
    record = await anext(consumer)
    if (record.partition, record.offset, record.value) != (1, RECORDS, b"new"):
        raise Violation(f"{record} is not what is new")


async def batches(scene: Scene) -> None:
    """One batch after the other."""
    topic, seen = await make_records(scene), Seen()
    async with open_consumer(ADDRESS, settings_of(scene), network=scene.network) as consumer:
        consumer.assign(places(topic))
        reading = consumer.batches()
        while not seen.is_all:
            with scene.cut.around():
                batch = await anext(reading)
                for offset in batch.offsets:
                    seen.saw(batch.partition, offset)
        check_positions(consumer, topic)
        await read_new(scene, consumer, topic)


async def wait_for_records(scene: Scene) -> None:
    """Records that come while one waits for them."""
    topic = await scene.make_topic()
    count = 0

    async def write() -> None:
        for number in range(RECORDS):
            await trio.sleep(0.05)
            await scene.kit.seed(topic, [{"partition": number % PARTITIONS, "value": b"w"}])

    async with (
        open_consumer(ADDRESS, settings_of(scene), network=scene.network) as consumer,
        trio.open_nursery() as nursery,
    ):
        consumer.assign(places(topic))
        nursery.start_soon(write)
        seen = Seen()
        while count < RECORDS:
            with scene.cut.around():
                record = await anext(consumer)
                seen.saw(record.partition, record.offset)
                count += 1


async def ask(scene: Scene) -> None:
    """What logs say, and going elsewhere."""
    topic, names = await make_records(scene), []
    async with open_consumer(ADDRESS, settings_of(scene), network=scene.network) as consumer:
        names = places(topic)
        for _ in range(2):
            with scene.cut.around():
                if await consumer.partitions_of(topic) != list(range(PARTITIONS)):
                    raise Violation("the partitions are not those of the topic")
            with scene.cut.around():
                if await consumer.end_offsets(names) != dict.fromkeys(names, RECORDS):
                    raise Violation("the ends are not those of the logs")
            with scene.cut.around():
                found = await consumer.offsets_for_times(dict.fromkeys(names, 0))
                if any(each is None or each.offset for each in found.values()):
                    raise Violation(f"{found} are not the first records")
        consumer.assign(names)
        for place in names:
            consumer.seek(place, RECORDS - 1)
        seen = Seen()
        seen.next = dict.fromkeys(range(PARTITIONS), RECORDS - 1)
        while not seen.is_all:
            with scene.cut.around():
                record = await anext(consumer)
                seen.saw(record.partition, record.offset)
        await read_new(scene, consumer, topic)


async def live(scene: Scene) -> None:
    """The whole life of a consumer."""
    topic, seen = await make_records(scene), Seen()
    with scene.cut.around():
        async with open_consumer(ADDRESS, settings_of(scene), network=scene.network) as consumer:
            consumer.assign(places(topic))
            while not seen.is_all:
                record = await anext(consumer)
                seen.saw(record.partition, record.offset)
