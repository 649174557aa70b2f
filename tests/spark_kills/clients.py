"""Topics of a run, written and read by clients of its own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final, NamedTuple

import trio

import trionet
from trionet import TopicPartition
from trionet.client.admin._partitions import OffsetSpec
from trionet.client.admin._topics import NewTopic

_IDLE_SECONDS: Final = 0.5
_KEYS: Final = 20
#: Numbers at once, and how long after them the next ones are sent.
_CHUNK: Final = 20
_PAUSE_SECONDS: Final = 0.1
#: A broker that is killed is there again within seconds, on a busy machine as well.
_PATIENCE_MS: Final = 120_000
#: A batch's transactions are committed within some hundredths of a second.
_COMMIT_LOOK_SECONDS: Final = 0.003
_UNFINISHED: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")


class Found(NamedTuple):
    """A record as it is in a topic."""

    offset: int
    key: bytes
    value: bytes


async def create_topics(bootstrap_servers: str, topics: dict[str, int]) -> None:
    """Topics with so many partitions."""
    async with trionet.open_admin(bootstrap_servers) as admin:
        new = [NewTopic(name, partitions) for name, partitions in topics.items()]
        (await admin.create_topics(new)).checked()


async def feed(
    bootstrap_servers: str, topic: str, is_over: Callable[[], bool]
) -> dict[str, tuple[int, int]]:
    """Send numbers, each with one of a few keys; where each is, as the broker has told."""
    acknowledged: dict[str, tuple[int, int]] = {}
    async with trionet.open_producer(
        bootstrap_servers, {"delivery.timeout.ms": _PATIENCE_MS}
    ) as producer:
        for first in count(0, _CHUNK):
            if is_over():
                return acknowledged
            numbers = range(first, first + _CHUNK)
            deliveries = await producer.send_batch(
                topic,
                [b"%d" % number for number in numbers],
                keys=[b"k%d" % (number * 7 % _KEYS) for number in numbers],
            )
            for number, delivery in zip(numbers, deliveries, strict=True):
                found = delivery.result()
                acknowledged[str(number)] = found.partition, found.offset
            await trio.sleep(_PAUSE_SECONDS)
    raise AssertionError  # numbers do not end


async def write(bootstrap_servers: str, topic: str, partitions: int, values: list[bytes]) -> None:
    """Values, by turns into the partitions."""
    async with trionet.open_producer(bootstrap_servers) as producer:
        for partition in range(partitions):
            await producer.send_batch(topic, values[partition::partitions], partition=partition)


async def read(
    bootstrap_servers: str, topic: str, partitions: int, *, read_committed: bool = False
) -> dict[int, list[Found]]:
    """All that there is, by partition; of what was written in transactions, what is committed."""
    isolation = "read_committed" if read_committed else "read_uncommitted"
    found: dict[int, list[Found]] = {each: [] for each in range(partitions)}
    places = [TopicPartition(topic, each) for each in range(partitions)]
    async with trionet.open_consumer(
        bootstrap_servers, {"isolation.level": isolation}, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign(places)
        while any(consumer.lag(each) != 0 for each in places):
            with trio.move_on_after(_IDLE_SECONDS):
                batch = await consumer.next_batch()
                columns = zip(batch.offsets, batch.keys, batch.values, strict=True)
                found[batch.partition] += [
                    Found(offset, bytes(key or b""), bytes(value or b""))
                    for offset, key, value in columns
                ]
    return found


async def until_committed(bootstrap_servers: str, topic: str, partitions: int) -> None:
    """Return as soon as a transaction ends: when records of it, or its marker, can be read.

    Raises:
        TrionetError: the broker cannot be reached.
    """
    places = {TopicPartition(topic, each): OffsetSpec.LATEST for each in range(partitions)}
    async with trionet.open_admin(bootstrap_servers) as admin:
        before = None
        while True:
            found = (await admin.partitions.list_offsets(places, read_committed=True)).checked()
            ends = [each.offset for each in found.values()]
            if before not in (None, ends):
                return
            before = ends
            await trio.sleep(_COMMIT_LOOK_SECONDS)


async def open_transactions(bootstrap_servers: str) -> list[str]:
    """The transactions that are neither committed nor aborted, as the coordinators have them."""
    async with trionet.open_admin(bootstrap_servers) as admin:
        found = await admin.transactions.list(states=_UNFINISHED)
    return sorted(f"{each.transactional_id}: {each.state}" for each in found.values())
