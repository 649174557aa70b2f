"""Producers: some send each batch once, some again and again until they know what became of it."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import trio

from sim.model import short
from sim.world import LOST, PARTITIONS, TOPICS, World
from support.calls import PRODUCE_BY_NAME, batch, produce_request
from support.client import Client
from support.ledger import Violation
from trionet.protocol import error_codes
from trionet.protocol.messages.init_producer_id import InitProducerIdRequest

IN_FLIGHT = 5
# What an idempotent producer hears of a partition that has forgotten it.
FORGOTTEN = (
    error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
    error_codes.UNKNOWN_PRODUCER_ID,
    error_codes.INVALID_PRODUCER_EPOCH,
)
# What the broker says while it stops, or before the topic is there.
PASSING = (error_codes.KAFKA_STORAGE_ERROR, error_codes.UNKNOWN_TOPIC_OR_PARTITION)


async def send_once(world: World, name: str) -> None:
    """Send batches without a producer id, each once, with any acks."""
    number = connections = 0
    while not world.is_over:
        try:
            async with world.connect(name) as client:
                connections += 1
                # In order is what one connection has sent: that before it may still be read.
                begin = b"%s.%d" % (name.encode(), connections)
                while not world.is_over:
                    topic, index = _any_partition(world)
                    count = world.rng.choice((1, 1, 3))
                    values = [b"%s-%d" % (begin, number + each) for each in range(count)]
                    number += count
                    await _send_one(world, name, client, (topic, index), values)
                    await world.pause()
        except LOST:
            await world.pause()


def _any_partition(world: World) -> tuple[str, int]:
    return world.rng.choice(list(TOPICS)), world.rng.randrange(PARTITIONS)


async def _send_one(
    world: World, name: str, client: Client, place: tuple[str, int], values: list[bytes]
) -> None:
    acks = world.rng.choice((-1, -1, 1, 0))
    partition = world.partitions[place]
    world.step(name, f"produce {len(values)} to {partition.name}, acks={acks}")
    partition.sent.update(values)
    data = batch(*values, timestamp=world.network.now_ms())
    since = partition.cuts
    request = produce_request(place[0], {place[1]: data}, acks=acks)
    if not acks:
        await client.send_unanswered(request, PRODUCE_BY_NAME)
        return
    response = await client.call(request, PRODUCE_BY_NAME)
    [[answer]] = [topic.partition_responses for topic in response.responses]
    if answer.error_code == error_codes.NONE:
        partition.acknowledge(answer.base_offset, values, since)
    elif answer.error_code not in PASSING:
        raise Violation(f"{partition.name}: produce was answered {answer.error_code}")


class Batch(NamedTuple):
    """One that was sent, and is sent again until it gets a response."""

    place: tuple[str, int]
    values: list[bytes]
    data: bytes


class Idempotent:
    """A producer with an id: what is not answered is sent again on the next connection.

    Args:
        world: where it lives.
        name: what its values begin with.
    """

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name
        self._number = 0
        self._id = -1
        self._sequences: dict[tuple[str, int], int] = {}
        self._waiting: deque[Batch] = deque()
        self._sent_at: deque[int] = deque()  # the cuts of their partitions, of those on their way

    async def run(self) -> None:
        while not self._world.is_over or self._waiting:
            try:
                async with self._world.connect(self._name) as client:
                    await self._produce(client)
            except LOST:
                await self._world.pause()

    async def _produce(self, client: Client) -> None:
        world = self._world
        if self._id < 0:
            await self._begin_anew(client)
        self._sent_at.clear()
        for each in self._waiting:
            await self._send(client, each)
        while True:
            while len(self._waiting) < IN_FLIGHT and not world.is_over:
                self._waiting.append(self._next())
                await self._send(client, self._waiting[-1])
                if world.rng.random() < 0.4:
                    break
            if not self._waiting:
                return
            response = await client.receive()
            if not self._take(response):
                self._waiting.clear()
                self._id = -1
                return
            if world.rng.random() < 0.3:
                await world.pause()

    async def _begin_anew(self, client: Client) -> None:
        given = await client.call(InitProducerIdRequest(transactional_id=None), 4)
        if given.error_code:
            raise EOFError("there are no producer ids now")
        self._id = given.producer_id
        self._sequences.clear()

    async def _send(self, client: Client, each: Batch) -> None:
        topic, index = each.place
        self._sent_at.append(self._world.partitions[each.place].cuts)
        await client.send(produce_request(topic, {index: each.data}), PRODUCE_BY_NAME)

    def _next(self) -> Batch:
        world = self._world
        place = _any_partition(world)
        count = world.rng.choice((1, 2, 4))
        # In order is what one id has sent: what was on its way under another may come later.
        name = b"%s.%d" % (self._name.encode(), self._id)
        padding = b"." * world.rng.choice((0, 0, 300))
        values = [b"%s-%d %s" % (name, self._number + each, padding) for each in range(count)]
        self._number += count
        sequence = self._sequences.get(place, 0)
        self._sequences[place] = sequence + count
        partition = world.partitions[place]
        world.step(self._name, f"produce {count} to {partition.name}, sequence {sequence}")
        partition.sent.update(values)
        data = batch(
            *values,
            timestamp=world.network.now_ms(),
            producer_id=self._id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        return Batch(place, values, data)

    def _take(self, response: Any) -> bool:
        """Note a response; False if this producer has to begin anew."""
        each, since = self._waiting.popleft(), self._sent_at.popleft()
        [[answer]] = [topic.partition_responses for topic in response.responses]
        partition = self._world.partitions[each.place]
        if answer.error_code == error_codes.NONE:
            partition.acknowledge(answer.base_offset, each.values, since)
            return True
        if answer.error_code in PASSING:
            return False
        if answer.error_code in FORGOTTEN and partition.was_reopened:
            return False
        first, code = short(each.values[0]), answer.error_code
        raise Violation(f"{partition.name}: the idempotent {first} was answered {code}")


async def send_again(world: World, name: str) -> None:
    """Be an idempotent producer."""
    await Idempotent(world, name).run()
    await trio.lowlevel.checkpoint()
