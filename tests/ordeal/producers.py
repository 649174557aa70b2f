"""Producers that never stop sending, each in another way, until the ordeal is over."""

from __future__ import annotations

import random
from collections.abc import Callable

import attrs
import trio

import trionet
from ordeal.ledger import Ledger
from trionet import Delivery, Producer

_COUNTED = {"record-retry-total": "sent again", "connection-creation-total": "connections"}


@attrs.frozen
class _Pace:
    """How often is sent, and how much at once."""

    pause_seconds: tuple[float, ...]
    counts: tuple[int, ...]


_PACES = (
    _Pace((0.0, 0.0, 0.001, 0.01, 0.1), (1, 10, 500)),
    # Something is under way whenever a broker dies.
    _Pace((0.0, 0.001), (1, 10)),
)
_ABORTED_SHARE = 0.2


class _Changed(Exception):
    """The records of a transaction are not wanted any more."""


class Producers:
    """The producers of one run.

    Args:
        bootstrap_servers: of the cluster.
        topic: all of them send to it.
        partitions: of the topic.
        ledger: is told of everything.
        is_over: once it says so, they finish what they have begun, and end.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        partitions: int,
        ledger: Ledger,
        is_over: Callable[[], bool],
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._partitions = partitions
        self._ledger = ledger
        self._is_over = is_over

    async def run(self, seed: int) -> None:
        """Return when all have come to their end; no delivery may have failed."""
        async with trio.open_nursery() as nursery:
            for number in range(4):
                rng = random.Random(f"{seed} producer {number}")
                nursery.start_soon(self._produce, number, rng)

    async def _produce(self, number: int, rng: random.Random) -> None:
        works = (self._send_each, self._send_awaited, self._send_batches, self._transact)
        work = works[number]
        pace = rng.choice(_PACES)
        linger_ms = rng.choice((0, 0, 5, 50))
        codec = rng.choice(("none", "none", "lz4", "zstd"))
        settings = {"linger.ms": linger_ms, "compression.type": codec}
        if work == self._transact:
            settings["transactional.id"] = f"{self._topic}-{number}"
        async with trionet.open_producer(self._bootstrap_servers, settings) as producer:
            await work(producer, number, rng, pace)
            told = producer.statistics()
            for name, text in _COUNTED.items():
                self._ledger.counts[text] += int(told[name])

    async def _send_each(
        self, producer: Producer, name: int, rng: random.Random, pace: _Pace
    ) -> None:
        """Without waiting for one before the next."""
        pending: list[tuple[bytes, Delivery]] = []
        number = 0
        while not self._is_over():
            for _ in range(rng.choice(pace.counts)):
                value = self._value(name, number)
                pending.append((value, await producer.enqueue(self._topic, value)))
                number += 1
            if len(pending) > 2000:
                pending = await self._settle(pending)
            await trio.sleep(rng.choice(pace.pause_seconds))
        await producer.flush()
        await self._settle(pending)

    async def _settle(self, pending: list[tuple[bytes, Delivery]]) -> list[tuple[bytes, Delivery]]:
        for value, delivery in pending:
            found = await delivery
            self._ledger.acknowledge((found.partition, found.offset), value)
        return []

    async def _send_awaited(
        self, producer: Producer, name: int, rng: random.Random, pace: _Pace
    ) -> None:
        """One after the other, with keys."""
        number = 0
        while not self._is_over():
            value = self._value(name, number)
            key = b"%d" % rng.randrange(10)
            found = await producer.send(self._topic, value, key=key)
            self._ledger.acknowledge((found.partition, found.offset), value)
            number += 1
            await trio.sleep(rng.choice(pace.pause_seconds))

    async def _send_batches(
        self, producer: Producer, name: int, rng: random.Random, pace: _Pace
    ) -> None:
        """Many at once, to one partition."""
        number = 0
        while not self._is_over():
            count = rng.choice(pace.counts)
            values = [self._value(name, number + each) for each in range(count)]
            number += count
            partition = rng.randrange(self._partitions)
            deliveries = await producer.send_batch(self._topic, values, partition=partition)
            for value, delivery in zip(values, deliveries, strict=True):
                found = delivery.result()
                self._ledger.acknowledge((found.partition, found.offset), value)
            await trio.sleep(rng.choice(pace.pause_seconds))

    async def _transact(
        self, producer: Producer, name: int, rng: random.Random, pace: _Pace
    ) -> None:
        """Several records in one transaction after the other, some of which are aborted."""
        number = 0
        while not self._is_over():
            count = rng.choice(pace.counts)
            values = [self._value(name, number + each) for each in range(count)]
            number += count
            try:
                async with producer.transaction():
                    pending = [(each, await producer.enqueue(self._topic, each)) for each in values]
                    if rng.random() < _ABORTED_SHARE:
                        raise _Changed
            except _Changed:
                self._ledger.abort(values)
            else:
                self._ledger.counts["transactions committed"] += 1
                await self._settle(pending)
            await trio.sleep(rng.choice(pace.pause_seconds))

    def _value(self, producer: int, number: int) -> bytes:
        value = b"%d %d" % (producer, number)
        self._ledger.send(value)
        return value
