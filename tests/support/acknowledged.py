"""Producers that remember what was acknowledged, and what a log must hold after a crash.

Every value names its producer and its number, so that a record that is found tells whose it is.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import trio

from support.calls import (
    PRODUCE_BY_NAME,
    batch,
    create_topic,
    fetch,
    produce_request,
    records_of,
)
from support.client import Client, connect, local_port
from trionet.protocol.messages.init_producer_id import InitProducerIdRequest

TOPIC = "t"
PARTITIONS = 2

# What an idempotent producer may have under way (Kafka: max.in.flight.requests.per.connection).
_IN_FLIGHT = 5


class Sent(NamedTuple):
    """One batch as it was sent."""

    partition: int
    values: list[bytes]
    data: bytes


class Producer:
    """One that keeps several requests under way; it stops when its connection ends.

    Args:
        number: names it.
        ledger: where it notes what happens.
        rng: decides sizes and partitions.
        is_idempotent: sends again what was not answered, under the same sequence numbers.
    """

    def __init__(
        self, number: int, ledger: Ledger, rng: random.Random, *, is_idempotent: bool
    ) -> None:
        self.number = number
        self.is_idempotent = is_idempotent
        self._ledger = ledger
        self._chance = rng
        self._id = -1
        self._sequences = [0] * PARTITIONS
        self._unanswered: deque[Sent] = deque()

    async def run(self, address: str) -> None:
        """Produce until the connection ends."""
        with contextlib.suppress(EOFError):
            async with connect(address) as client:
                await self._produce(client)

    async def _produce(self, client: Client) -> None:
        port = local_port(client)
        answered = 0  # which is also the correlation id of the newest response
        if self.is_idempotent and self._id < 0:
            given = await client.call(InitProducerIdRequest(transactional_id=None), 4)
            assert 0 == given.error_code
            self._id = given.producer_id
            answered = 1
        if not self.is_idempotent:
            self._unanswered.clear()
        for sent in self._unanswered:
            await self._send(client, sent)
        while True:
            while len(self._unanswered) < _IN_FLIGHT:
                self._unanswered.append(self._next())
                await self._send(client, self._unanswered[-1])
            response = await client.receive()
            sent = self._unanswered.popleft()
            [[answer]] = [topic.partition_responses for topic in response.responses]
            assert 0 == answer.error_code, answer
            answered += 1
            self._ledger.answers[port, answered] = sent, answer.base_offset
            self._ledger.acknowledge(sent, answer.base_offset)

    async def _send(self, client: Client, sent: Sent) -> None:
        await client.send(produce_request(TOPIC, {sent.partition: sent.data}), PRODUCE_BY_NAME)

    def _next(self) -> Sent:
        rng = self._chance
        partition = rng.randrange(PARTITIONS)
        count = rng.choice((1, 1, 5, 50))
        first = self._sequences[partition]
        self._sequences[partition] += count
        padding = b"." * rng.choice((0, 100, 2000))
        values = [b"%d %d %b" % (self.number, first + each, padding) for each in range(count)]
        sequence = first if self.is_idempotent else -1
        epoch = 0 if self.is_idempotent else -1
        # Producers are forgotten by the time that their records tell, so it has to be the real one.
        data = batch(
            *values,
            timestamp=time.time_ns() // 1_000_000,
            producer_id=self._id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        return Sent(partition, values, data)


class Ledger:
    """What was acknowledged.

    Attributes:
        acknowledged: by partition and offset.
        answers: the batch and its first offset, by the port and correlation id of the answer.
    """

    def __init__(self) -> None:
        self.answers: dict[tuple[int, int], tuple[Sent, int]] = {}
        self.acknowledged: list[dict[int, bytes]] = [{} for _ in range(PARTITIONS)]
        self._missing = 0
        self._reached: Callable[[], None] = lambda: None

    def after(self, batches: int, reached: Callable[[], None]) -> None:
        """Call `reached` once so many more batches are acknowledged."""
        self._missing, self._reached = batches, reached

    def acknowledge(self, sent: Sent, offset: int) -> None:
        for number, value in enumerate(sent.values):
            before = self.acknowledged[sent.partition].setdefault(offset + number, value)
            assert before == value, f"offset {offset + number} was given twice"
        self._missing -= 1
        if not self._missing:
            self._reached()

    def end_offset(self, partition: int) -> int:
        """The offset after everything that was acknowledged."""
        return max(self.acknowledged[partition], default=-1) + 1

    def check(self, partition: int, found: list[tuple[int, bytes]], idempotent: set[int]) -> None:
        """Fail unless a partition with these offsets and values is what it has to be."""
        assert list(range(len(found))) == [offset for offset, _ in found], "offsets have gaps"
        values = dict(found)
        for offset, value in self.acknowledged[partition].items():
            assert value == values.get(offset), f"{partition}: lost or changed offset {offset}"
        numbers: dict[int, list[int]] = {}
        for value in values.values():
            name, number, _ = value.split(b" ")
            numbers.setdefault(int(name), []).append(int(number))
        for producer, stored in numbers.items():
            expected = list(range(len(stored))) if producer in idempotent else sorted(set(stored))
            assert expected == stored, f"{partition}: missing, twice or moved, of {producer}"


async def make_topic(address: str, segment_bytes: int) -> None:
    """Create the topic that producers write to."""
    async with connect(address) as client:
        await create_topic(client, TOPIC, PARTITIONS, internal_segment_bytes=segment_bytes)


async def load(address: str, producers: Iterable[Producer]) -> None:
    """Let all of them produce until the broker ends."""
    async with trio.open_nursery() as nursery:
        for producer in producers:
            nursery.start_soon(producer.run, address)


async def read_all(address: str, partition: int) -> list[tuple[int, bytes]]:
    """Every offset of a partition and its value, from offset 0 to the end."""
    found: list[tuple[int, bytes]] = []
    async with connect(address) as client:
        while True:
            position = found[-1][0] + 1 if found else 0
            data = await fetch(client, TOPIC, position, partition=partition)
            assert 0 == data.error_code, data
            if position >= data.high_watermark:
                return found
            more = [*_from(position, ((each[0], each[3]) for each in records_of(data)))]
            assert more, f"no record at offset {position}, before the end {data.high_watermark}"
            found.extend(more)


def _from(
    position: int, records: Iterable[tuple[int, bytes | None]]
) -> Iterator[tuple[int, bytes]]:
    for offset, value in itertools.dropwhile(lambda each: each[0] < position, records):
        assert value is not None
        yield offset, value
