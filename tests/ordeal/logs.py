"""What is in a topic when all is over."""

from __future__ import annotations

from collections.abc import Iterable

import trio

import trionet
from trionet import TopicPartition

_IDLE_SECONDS = 0.5

Found = list[tuple[int, int, bytes]]
"""Partitions, offsets and values, in the order of offsets."""


async def read_log(
    bootstrap_servers: str, topic: str, partitions: Iterable[int]
) -> tuple[Found, dict[int, int]]:
    """Read all of some partitions; and by partition, how long it is."""
    found: Found = []
    places = [TopicPartition(topic, each) for each in partitions]
    async with trionet.open_consumer(bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign(places)
        while any(consumer.lag(each) != 0 for each in places):
            with trio.move_on_after(_IDLE_SECONDS):
                batch = await consumer.next_batch()
                pairs = zip(batch.offsets, batch.values, strict=True)
                found += [(batch.partition, offset, value or b"") for offset, value in pairs]
        ends = {each.partition: consumer.position(each) or 0 for each in places}
    return found, ends
