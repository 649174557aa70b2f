"""Producers that begin at new partitions, send a few batches and end."""

from __future__ import annotations

import random
from typing import Final

import attrs
import trio

import trionet
from ordeal.ledger import Ledger
from ordeal.logs import Found
from trionet import Delivery, Producer
from trionet.errors import TrionetError

_RECORD_BYTES: Final = 50
_BATCH_BYTES: Final = (1, 200, 300)  # one record, and some
_RECORDS: Final = (2, 20)
_BEGINS_SECONDS: Final = 0.2
#: A run lasts for a second: what is tried again is tried soon.
_BACKOFFS: Final = {
    "linger.ms": 0,
    "retry.backoff.ms": 5,
    "retry.backoff.max.ms": 20,
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 20,
}
#: Some give up; the others come to their end, whatever the proxy does.
_IMPATIENT: Final = {"request.timeout.ms": 100, "delivery.timeout.ms": 200}
_PATIENT: Final = {"request.timeout.ms": 5_000, "delivery.timeout.ms": 10_000}


@attrs.frozen
class Beginner:
    """One producer, and another one after it at the same partitions.

    Attributes:
        number: of all of the seed.
        partitions: where it sends; nothing else does.
        settings: of its producers.
        is_patient: no delivery may fail.
        ledger: of both.
        rng: what it draws from.
    """

    number: int
    partitions: tuple[int, ...]
    settings: dict[str, object]
    is_patient: bool
    ledger: Ledger
    rng: random.Random

    def __str__(self) -> str:
        settings = ("enable.idempotence", "max.in.flight.requests.per.connection", "batch.size")
        shown = ", ".join(f"{name}={self.settings[name]}" for name in settings)
        return f"producer {self.number} ({shown}{'' if self.is_patient else ', impatient'})"

    async def run(self, bootstrap_servers: str, topic: str) -> None:
        """Send, and note what was acknowledged; never fails."""
        await trio.sleep(self.rng.uniform(0, _BEGINS_SECONDS))
        for life in range(self.rng.choice((1, 1, 1, 2))):
            try:
                async with trionet.open_producer(bootstrap_servers, self.settings) as producer:
                    await self._send(producer, topic, b"%d.%d" % (self.number, life))
            except* Exception as errors:  # boundary: one producer
                self.ledger.wrong.append(f"the producer failed: {errors.exceptions}")

    def check(self, found: Found) -> None:
        """Compare with the log of its partitions."""
        self.ledger.check(found)
        if self.ledger.counts["pending"]:
            self.ledger.wrong.append("deliveries did not come to their end")

    async def _send(self, producer: Producer, topic: str, name: bytes) -> None:
        pending: list[tuple[bytes, Delivery]] = []
        for number in range(self.rng.randint(*_RECORDS)):
            value = b"%s %d" % (name, number)
            self.ledger.send(value)
            pending.append(
                (
                    value,
                    await producer.enqueue(
                        topic,
                        value,
                        key=bytes(_RECORD_BYTES),
                        partition=self.rng.choice(self.partitions),
                    ),
                )
            )
            if self.rng.random() < 0.05:
                await trio.sleep(self.rng.uniform(0, 0.02))
        self.ledger.counts["pending"] += len(pending)
        for value, delivery in pending:
            try:
                found = await delivery
            except TrionetError as error:
                self.ledger.counts["failed"] += 1
                if self.is_patient:
                    self.ledger.wrong.append(f"{value!r} failed: {type(error).__name__}: {error}")
            else:
                self.ledger.counts["acknowledged"] += 1
                self.ledger.acknowledge((found.partition, found.offset), value)
            self.ledger.counts["pending"] -= 1


def drawn_beginners(seed: int, count: int) -> list[Beginner]:
    """All of a seed; the numbers of successive seeds follow on each other."""
    beginners: list[Beginner] = []
    partitions = 0
    for number in range(seed * count, (seed + 1) * count):
        rng = random.Random(f"producer {number}")
        width = rng.choice((1, 1, 1, 2))
        is_idempotent = rng.random() < 0.75
        is_patient = rng.random() < 0.85
        settings: dict[str, object] = {
            **_BACKOFFS,
            **(_PATIENT if is_patient else _IMPATIENT),
            "enable.idempotence": is_idempotent,
            "acks": "all" if is_idempotent else rng.choice(("1", "all")),
            "max.in.flight.requests.per.connection": rng.randint(1, 5),
            "batch.size": rng.choice(_BATCH_BYTES),
        }
        places = tuple(range(partitions, partitions + width))
        partitions += width
        ledger = Ledger(is_idempotent=is_idempotent)
        beginners.append(Beginner(number, places, settings, is_patient, ledger, rng))
    return beginners
