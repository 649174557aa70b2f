"""Consumers of our own client: what they are handed is what is there, in order and without gaps."""

from __future__ import annotations

import math

import trio

from sim.model import Partition
from sim.world import ADDRESS, World
from support.ledger import Violation
from trionet import PartitionError, TopicPartition, open_consumer
from trionet.client.consumer._consumer import Consumer
from trionet.client.consumer._settings import ConsumerSettings
from trionet.client.consumer.fetch._settings import FetchSettings
from trionet.client.consumer.records._record import ConsumerRecord
from trionet.client.consumer.state._reset_strategy import EARLIEST


async def read(world: World, name: str) -> None:
    """Read all partitions with one consumer after the other, record by record or in batches."""
    reader = Reader(world, name)
    while not world.is_over:
        rng = world.rng
        fetch = FetchSettings(
            bytes_max=rng.choice((500, 52_428_800)),
            partition_bytes_max=rng.choice((100, 1_048_576)),
            wait_seconds=rng.choice((0.1, 0.5, 5.0)),
        )
        settings = ConsumerSettings(reset=EARLIEST, fetch=fetch)
        world.step(name, f"open a consumer, {fetch}")
        async with open_consumer(ADDRESS, settings, network=world.network) as consumer:
            await reader.live(consumer)


class Reader:
    """What one reader has seen.

    Args:
        world: where it lives.
        name: what it is called.
    """

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name
        self._positions: dict[TopicPartition, int] = {}
        self._cuts: dict[TopicPartition, int] = {}

    async def live(self, consumer: Consumer) -> None:
        """Read for a while."""
        world, rng = self._world, self._world.rng
        consumer.assign([TopicPartition(*place) for place in world.partitions])
        for place, partition in world.partitions.items():
            self._cuts[TopicPartition(*place)] = partition.cuts
        for name, offset in self._positions.items():
            consumer.seek(name, offset)
        in_batches = rng.random() < 0.5
        for _ in range(rng.randint(5, 80)):
            if world.is_over:
                return
            with trio.move_on_after(rng.choice((0.0, 0.1, 2.0, 30.0))):
                try:
                    if in_batches:
                        batch = await consumer.next_batch()
                        for offset, value in zip(batch.offsets, batch.values, strict=True):
                            self._saw(batch.topic_partition, offset, value)
                    else:
                        record: ConsumerRecord = await anext(consumer)
                        place = record.topic_partition
                        self._saw(place, record.offset, record.value)
                except PartitionError as error:
                    self._failed(error)
            world.step(self._name, "read")
            if rng.random() < 0.05:
                await world.pause()

    def _saw(self, place: TopicPartition, offset: int, value: bytes | None) -> None:
        partition = self._world.partitions[place]
        position = self._positions.get(place, 0)
        # What a power cut took may have been fetched before it by this consumer.
        if self._cuts[place] == partition.cuts:
            if offset != position and not self._may_skip(partition, position, offset):
                raise Violation(f"{self._name}: {place} has {offset} where {position} is next")
            partition.saw(offset, [(offset, value or b"")], math.inf, partition.cuts)
        self._positions[place] = offset + 1

    @staticmethod
    def _may_skip(partition: Partition, position: int, offset: int) -> bool:
        """Whether the records between were deleted, or taken by a power cut before this life."""
        return position < offset <= partition.may_start_at or partition.cuts > 0

    def _failed(self, error: PartitionError) -> None:
        self._world.note(f"{self._name}: {type(error).__name__}: {error}")
        if not any(partition.cuts for partition in self._world.partitions.values()):
            raise Violation(f"{self._name}: {error}") from error
