"""Who makes, grows and deletes topics, and who deletes records."""

from __future__ import annotations

from enum import Enum, auto

import trio

from sim.world import LOST, PARTITIONS, TOPICS, World
from support.calls import batch, create_topic, describe_topics, fetch, produce, values_of
from support.client import Client
from support.ledger import Violation
from trionet.protocol import error_codes
from trionet.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from trionet.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from trionet.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from trionet.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

PASSING = (error_codes.KAFKA_STORAGE_ERROR,)
# Longer than any request is held by the network, the broker and the disk together.
ON_WAY_SECONDS = 60.0


async def make_topics(world: World) -> None:
    """The topics that are there from the beginning on."""
    async with world.connect("maker") as client:
        for name, (configs, _) in TOPICS.items():
            await create_topic(client, name, PARTITIONS, **configs)


class Known(Enum):
    """What is known of a topic."""

    THERE = auto()
    GONE = auto()
    UNSURE = auto()


class Scratch:
    """One who makes a topic, uses it, and deletes it; nobody else does.

    Args:
        world: where it lives.
        name: of the topic.
    """

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name
        self._known = Known.GONE
        self._partitions = 0
        self._written = 0
        self._life = 0

    async def run(self) -> None:
        while not self._world.is_over:
            try:
                async with self._world.connect(self._name) as client:
                    while not self._world.is_over:
                        await self._act(client)
                        await self._world.pause()
            except LOST:
                # What is on its way may still be done: after it was looked whether it is.
                await trio.sleep(ON_WAY_SECONDS if self._known is Known.UNSURE else 1.0)

    async def _act(self, client: Client) -> None:
        await self._look(client)
        if self._known is Known.GONE:
            await self._create(client)
        elif self._world.rng.random() < 0.3:
            await self._delete(client)
        elif self._world.rng.random() < 0.3:
            await self._grow(client)
        else:
            await self._use(client)

    async def _look(self, client: Client) -> None:
        """What the broker says has to be what is known."""
        [topic] = await describe_topics(client, self._name)
        is_there = topic.error_code == error_codes.NONE
        if self._known is Known.UNSURE:
            self._known = Known.THERE if is_there else Known.GONE
            self._partitions = len(topic.partitions)
        elif is_there is not (self._known is Known.THERE):
            raise Violation(f"{self._name}: {self._known.name}, but answered {topic.error_code}")
        elif is_there and len(topic.partitions) != self._partitions:
            raise Violation(
                f"{self._name}: {len(topic.partitions)} of {self._partitions} partitions"
            )

    async def _create(self, client: Client) -> None:
        self._world.step(self._name, "create")
        self._known = Known.UNSURE
        self._life += 1
        self._written = 0
        wanted = CreatableTopic(name=self._name, num_partitions=1, replication_factor=-1)
        [result] = (await client.call(CreateTopicsRequest(topics=[wanted]), 7)).topics
        if result.error_code == error_codes.NONE:
            self._known, self._partitions = Known.THERE, 1
        elif result.error_code not in PASSING:
            raise Violation(f"{self._name}: create was answered {result.error_code}")

    async def _grow(self, client: Client) -> None:
        self._world.step(self._name, f"grow to {self._partitions + 1}")
        self._known = Known.UNSURE
        wanted = CreatePartitionsTopic(
            name=self._name, count=self._partitions + 1, assignments=None
        )
        request = CreatePartitionsRequest(topics=[wanted], timeout_ms=1000)
        [result] = (await client.call(request, 3)).results
        if result.error_code == error_codes.NONE:
            self._known = Known.THERE
            self._partitions += 1
        elif result.error_code not in PASSING:
            raise Violation(f"{self._name}: growing was answered {result.error_code}")

    async def _delete(self, client: Client) -> None:
        self._world.step(self._name, "delete")
        self._known = Known.UNSURE
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=self._name)])
        [result] = (await client.call(request, 6)).responses
        if result.error_code == error_codes.NONE:
            self._known = Known.GONE
        elif result.error_code not in PASSING:
            raise Violation(f"{self._name}: delete was answered {result.error_code}")

    async def _use(self, client: Client) -> None:
        """What is read is of this life of the topic, and as much as was written at most."""
        self._world.step(self._name, "write and read")
        life = b"%d " % self._life
        self._written += 1
        answer = await produce(client, self._name, batch(life + b"%d" % self._written))
        if answer.error_code:
            return
        data = await fetch(client, self._name)
        if data.error_code:
            return
        values = [value or b"" for value in values_of(data)]
        if not all(value.startswith(life) for value in values) or len(values) > self._written:
            raise Violation(f"{self._name}: in its life {self._life} it holds {values}")


async def delete_records(world: World) -> None:
    """Trim one topic now and then."""
    name = "trimmer"
    while not world.is_over:
        try:
            async with world.connect(name) as client:
                while not world.is_over:
                    await world.pause()
                    await _trim(world, name, client)
        except LOST:
            await world.pause()


async def _trim(world: World, name: str, client: Client) -> None:
    index = world.rng.randrange(PARTITIONS)
    partition = world.partitions["trimmed", index]
    if partition.end <= partition.start:
        return
    offset = world.rng.randint(partition.start, partition.end)
    world.step(name, f"delete records of {partition.name} below {offset}")
    partition.may_start_at = max(partition.may_start_at, offset)
    wanted = DeleteRecordsPartition(partition_index=index, offset=offset)
    topic = DeleteRecordsTopic(name="trimmed", partitions=[wanted])
    request = DeleteRecordsRequest(topics=[topic], timeout_ms=1000)
    response = await client.call(request, 2)
    [[answer]] = [each.partitions for each in response.topics]
    if answer.error_code == error_codes.NONE:
        partition.start = max(partition.start, offset)
    elif answer.error_code not in (*PASSING, error_codes.OFFSET_OUT_OF_RANGE):
        raise Violation(f"{partition.name}: deleting records was answered {answer.error_code}")
