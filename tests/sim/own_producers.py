"""Producers of our own client: what they acknowledge is there, once, in the order of sending."""

from __future__ import annotations

import trio

from sim.chaos import disturb_first_batches
from sim.model import short
from sim.world import ADDRESS, PARTITIONS, TOPICS, World
from support.ledger import Violation
from trionet import TrionetError, UndeliveredError, open_producer
from trionet.client.producer._delivery import Delivery
from trionet.client.producer._producer import Producer
from trionet.errors import RecordWithdrawnError

# How many records are under way at most, of which it is then looked what became of.
UNDER_WAY_MAX = 60


class Stop(Exception):
    """What a user's own code raises in the block of a producer."""


async def produce(world: World, name: str) -> None:
    """Open one producer after the other, each with settings of its own."""
    lives = 0
    while not world.is_over:
        lives += 1
        rng = world.rng
        is_idempotent = rng.random() < 0.8
        settings = {
            "client.id": f"{name}.{lives}",
            "enable.idempotence": is_idempotent,
            "linger.ms": rng.choice((0, 5, 300)),
            "batch.size": rng.choice((0, 200, 2_000, 16_384)),
            "max.in.flight.requests.per.connection": rng.choice((1, 2, 5, 5)),
            "buffer.memory": rng.choice((5_000, 33_554_432)),
            "request.timeout.ms": rng.choice((3_000, 30_000)),
            "delivery.timeout.ms": rng.choice((31_000, 120_000)),
        }
        world.step(name, f"open a producer, {settings}")
        life = Life(world, f"{name}.{lives}".encode(), is_idempotent=is_idempotent)
        if rng.random() < 0.5:
            disturb_first_batches(world, f"{name}.{lives}")
        try:
            async with open_producer(ADDRESS, settings, network=world.network) as producer:
                await life.live(producer)
                if rng.random() < 0.3:
                    raise Stop
        except Stop:
            world.note(f"{name}: stopped by its user")
        except UndeliveredError as error:
            world.note(f"{name}: {error}")
        life.look_at_the_rest()


class Life:
    """What one producer has sent.

    Args:
        world: where it lives.
        name: what its values begin with.
        is_idempotent: nothing that it sends is there twice, or after what it sent later.
    """

    def __init__(self, world: World, name: bytes, *, is_idempotent: bool) -> None:
        self._world = world
        self._name = name
        self._is_idempotent = is_idempotent
        self._number = 0
        self._under_way: list[tuple[Delivery, bytes, dict[int, int]]] = []

    async def live(self, producer: Producer) -> None:
        """Send for a while, in every way there is."""
        world, rng = self._world, self._world.rng
        for _ in range(rng.randint(1, 12)):
            if world.is_over:
                return
            how = rng.choice((self._send, self._enqueue, self._send_nowait, self._flush))
            await how(producer)
            self._take_decided()
            if rng.random() < 0.5:
                await world.pause()

    def _next(self) -> tuple[str, int | None, bytes, dict[int, int]]:
        """Where the next value goes, itself, and the power cuts of each partition so far."""
        world, rng = self._world, self._world.rng
        topic = rng.choice(list(TOPICS))
        partition = rng.choice((None, *range(PARTITIONS)))
        value = b"%s-%d %s" % (self._name, self._number, b"." * rng.choice((0, 0, 300)))
        self._number += 1
        places = range(PARTITIONS) if partition is None else [partition]
        for index in places:
            world.partitions[topic, index].sent.add(value)
            if not self._is_idempotent:
                world.partitions[topic, index].repeatable.add(value)
        return (
            topic,
            partition,
            value,
            {index: world.partitions[topic, index].cuts for index in places},
        )

    async def _send(self, producer: Producer) -> None:
        topic, partition, value, cuts = self._next()
        self._world.step(self._name.decode(), f"send {short(value)} to {topic}-{partition}")
        with trio.move_on_after(self._world.rng.choice((0.001, 1.0, 60.0, 600.0))):
            try:
                told = await producer.send(topic, value, partition=partition)
            except TrionetError as error:
                self._refused(value, error)
            else:
                self._acknowledged(topic, told.partition, told.offset, value, cuts)

    async def _enqueue(self, producer: Producer) -> None:
        for _ in range(self._world.rng.choice((1, 5, 30))):
            topic, partition, value, cuts = self._next()
            self._world.step(self._name.decode(), f"enqueue {short(value)} to {topic}-{partition}")
            with trio.move_on_after(self._world.rng.choice((0.001, 1.0, 600.0))):
                try:
                    delivery = await producer.enqueue(topic, value, partition=partition)
                except TrionetError as error:
                    self._refused(value, error)
                else:
                    self._under_way.append((delivery, value, cuts))

    async def _send_nowait(self, producer: Producer) -> None:
        for _ in range(self._world.rng.choice((1, 5, 30))):
            topic, partition, value, cuts = self._next()
            try:
                delivery = producer.send_nowait(topic, value, partition=partition)
            except trio.WouldBlock:
                break
            self._world.step(self._name.decode(), f"buffered {short(value)}")
            self._under_way.append((delivery, value, cuts))
        await trio.lowlevel.checkpoint()

    async def _flush(self, producer: Producer) -> None:
        self._world.step(self._name.decode(), "flush")
        before = list(self._under_way)
        with trio.move_on_after(self._world.rng.choice((0.5, 600.0))) as scope:
            await producer.flush()
        if not scope.cancelled_caught and any(not each.is_done for each, _, _ in before):
            raise Violation(f"{self._name.decode()}: a flush is over, and a delivery is not")

    def _take_decided(self) -> None:
        waiting, self._under_way = self._under_way, []
        for entry in waiting:
            delivery, value, cuts = entry
            if not delivery.is_done:
                self._under_way.append(entry)
                continue
            try:
                told = delivery.result()
            except TrionetError as error:
                self._refused(value, error)
            else:
                self._acknowledged(told.topic, told.partition, told.offset, value, cuts)

    def look_at_the_rest(self) -> None:
        """The producer is closed: every delivery is decided."""
        self._take_decided()
        if self._under_way:
            value = short(self._under_way[0][1])
            raise Violation(f"{value} is not decided, though its producer is closed")

    def _acknowledged(
        self, topic: str, partition: int, offset: int, value: bytes, cuts: dict[int, int]
    ) -> None:
        self._world.partitions[topic, partition].acknowledge(offset, [value], cuts[partition])

    def _refused(self, value: bytes, error: TrionetError) -> None:
        self._world.note(f"{short(value)}: {type(error).__name__}: {error}")
        if isinstance(error, RecordWithdrawnError):
            raise Violation(f"{short(value)} was withdrawn, though nobody wanted that")
        if not error.may_have_been_written:
            for partition in self._world.partitions.values():
                partition.refused(value)
