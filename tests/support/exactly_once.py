"""Workers that consume, transform and produce as the documentation shows, and what befalls them.

The loops are those of docs/howto/exactly-once.md. A worker is slow, or cancelled at one of its
awaits, by itself; what else can happen to it (SIGKILL, a lost session) comes from outside.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import attrs
import trio

from cancellations.cut import Cut, Lag
from support.ledger import Violation
from trionet import Consumer, Producer, TopicPartition, open_consumer, open_producer
from trionet.client.producer._transactions import Transaction
from trionet.errors import (
    CallTimedOutError,
    TransactionAbortableError,
    TransactionOutcomeUnknownError,
)
from trionet.net._network import SYSTEM, Network

#: How many batches are one transaction where that takes several reads.
BATCHES_PER_TRANSACTION: Final = 2
#: After an error, the program begins again within this.
_AGAIN_SECONDS: Final = (0.0, 1.0)
_SLOW_SHARE: Final = 0.25
_STALL_SHARE: Final = 0.06
#: How long a stall is, in multiples of ``max.poll.interval.ms``.
_STALL: Final = (1.05, 3.0)
_CUT_SHARE: Final = 0.1
#: At which await a transaction is cancelled, at the latest; it has fewer if nothing is slow.
_AWAITS_MAX: Final = 25
_CUT_OFFSETS_SHARE: Final = 0.03

Offset = tuple[int, int]
"""A partition of the source, and an offset."""


def copy_of(partition: int, offset: int) -> bytes:
    """The value of the copy of a record."""
    return b"%d %d" % (partition, offset)


class Copies:
    """What readers of committed records have seen, and where the group says that it is.

    Attributes:
        at: where the copy of each record is.
        committed: the group's offsets, by partition of the source.
    """

    def __init__(self) -> None:
        self.at: dict[Offset, Offset] = {}
        self.committed: dict[int, int] = {}

    def saw(self, partition: int, offset: int, value: bytes) -> None:
        """A reader has been given a record of the target.

        Raises:
            Violation: it is the second copy of its original.
        """
        original, copied = value.split(b" ")
        of, place = (int(original), int(copied)), (partition, offset)
        before = self.at.setdefault(of, place)
        if before != place:
            raise Violation(f"{of} is doubled: its copies are at {before} and {place}")

    def commits(self, offsets: Mapping[int, int]) -> None:
        """The group says, by partition, before which offset it is done.

        Raises:
            Violation: an offset has gone back.
        """
        for partition, offset in offsets.items():
            last = self.committed.get(partition, 0)
            if offset < last:
                raise Violation(f"partition {partition}: {offset} is committed after {last}")
            self.committed[partition] = offset

    def check_whole(self, ends: Mapping[int, int]) -> None:
        """The readers have read everything.

        Args:
            ends: how many records each partition of the source has.

        Raises:
            Violation: a record has no copy, or a copy no record.
        """
        expected = {(partition, each) for partition, end in ends.items() for each in range(end)}
        if lost := expected - self.at.keys():
            raise Violation(f"{len(lost)} records are lost, such as {min(lost)}")
        if strange := self.at.keys() - expected:
            raise Violation(f"{len(strange)} copies have no original, such as of {min(strange)}")


@attrs.frozen
class Job:
    """What all workers of a group do.

    Attributes:
        servers: the bootstrap servers.
        source: the topic that they read.
        target: the topic that they write to.
        group: the group.
        keys: settings of their consumers.
        poll_seconds: ``max.poll.interval.ms``.
        transaction_seconds: ``transaction.timeout.ms``.
    """

    servers: str
    source: str
    target: str
    group: str
    keys: Mapping[str, object]
    poll_seconds: float
    transaction_seconds: float


class Worker:
    """One worker, which begins again after an error as long as it is not fenced.

    Args:
        job: what it does.
        name: its transactional id.
        rng: draws what befalls it.
        is_calm: whether nothing does any more.
        note: is told of it.
        network: where it connects.
        stall: goes on for so many seconds, too long for its group.
    """

    def __init__(
        self,
        job: Job,
        name: str,
        rng: random.Random,
        *,
        is_calm: Callable[[], bool],
        note: Callable[[str], object],
        network: Network = SYSTEM,
        stall: Callable[[float], Awaitable[None]] = trio.sleep,
    ) -> None:
        self._job = job
        self._name = name
        self._rng = rng
        self._is_calm = is_calm
        self._note = note
        self._network = network
        self._stall = stall

    async def run(self) -> None:
        """Work until cancelled.

        Raises:
            ProducerFencedError: another one has its transactional id, or a transaction took longer
                than ``transaction.timeout.ms``.
        """
        while True:
            try:
                await self._work()
            except (
                TransactionAbortableError,
                TransactionOutcomeUnknownError,
                CallTimedOutError,
            ) as error:
                self._note(f"{self._name} begins again: {error}; {error.__cause__}")
            await trio.sleep(self._rng.uniform(*_AGAIN_SECONDS))

    async def _work(self) -> None:
        job, rng = self._job, self._rng
        is_static = rng.random() < 0.2
        settings = {
            "group.id": job.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "max.poll.interval.ms": round(job.poll_seconds * 1000),
            "max.poll.records": 500 if self._is_calm() else rng.choice((1, 2, 5, 500)),
            "isolation.level": rng.choice(("read_committed", "read_uncommitted")),
            **({"group.instance.id": self._name} if is_static else {}),
            **job.keys,
        }
        transactional = {
            "transactional.id": self._name,
            "transaction.timeout.ms": round(job.transaction_seconds * 1000),
        }
        loops = [self._batches]
        if not self._is_calm():
            loops.append(self._records)
            if "cooperative" not in str(job.keys["partition.assignment.strategy"]):
                loops.append(self._several_batches)
        loop = rng.choice(loops)
        self._note(f"{self._name} works: {loop.__name__}, {settings}")
        opening_consumer = open_consumer(job.servers, settings, network=self._network)
        opening_producer = open_producer(job.servers, transactional, network=self._network)
        if loop == self._several_batches:
            # Its consumer ends first, whose callback aborts the transaction.
            async with opening_producer as producer, opening_consumer as consumer:
                await loop(consumer, producer)
        else:
            async with opening_consumer as consumer, opening_producer as producer:
                await loop(consumer, producer)

    # The loops of the documentation. What was cut may not go on: an abort does not move the
    # consumer back.

    async def _batches(self, consumer: Consumer, producer: Producer) -> None:
        consumer.subscribe(self._job.source)
        async for batch in consumer.batches():
            await self._think()
            with self._cut() as cut:
                async with producer.transaction() as tx:
                    copies = [copy_of(batch.partition, each) for each in batch.offsets]
                    await producer.enqueue_batch(self._job.target, copies)
                    await self._think()
                    await self._send_offsets(tx, consumer)
                    await self._think()
            if cut.cancelled_caught:
                return

    async def _records(self, consumer: Consumer, producer: Producer) -> None:
        consumer.subscribe(self._job.source)
        async for record in consumer:
            with self._cut() as cut:
                async with producer.transaction() as tx:
                    await self._think()
                    copy = copy_of(record.partition, record.offset)
                    await producer.send(self._job.target, copy)
                    await self._think()
                    await self._send_offsets(tx, consumer)
            if cut.cancelled_caught:
                return

    async def _several_batches(self, consumer: Consumer, producer: Producer) -> None:
        count = 0

        async def start_over(_: list[TopicPartition]) -> None:
            nonlocal count
            count = 0
            await producer.abort_transaction()

        consumer.subscribe(self._job.source, on_revoked=start_over)
        async for batch in consumer.batches():
            with self._cut() as cut:
                if count == 0:
                    await producer.begin_transaction()
                copies = [copy_of(batch.partition, each) for each in batch.offsets]
                await producer.enqueue_batch(self._job.target, copies)
                await self._think()
                count += 1
                if count == BATCHES_PER_TRANSACTION:
                    await producer.send_offsets_to_transaction(consumer)
                    await self._think()
                    await producer.commit_transaction()
                    count = 0
            if cut.cancelled_caught:
                return

    # What befalls it.

    async def _think(self) -> None:
        """Do the user's own work: for no time, for a while, or for longer than the group waits."""
        draw = self._rng.random()
        if self._is_calm():
            return
        if draw < _STALL_SHARE:
            seconds = self._job.poll_seconds * self._rng.uniform(*_STALL)
            self._note(f"{self._name} stalls for {seconds:.1f} s")
            await self._stall(seconds)
            self._note(f"{self._name} goes on")
        elif draw < _STALL_SHARE + _SLOW_SHARE:
            await trio.sleep(self._rng.uniform(0.0, self._job.poll_seconds / 3))

    async def _send_offsets(self, tx: Transaction, consumer: Consumer) -> None:
        """Send the offsets; where that is cut, the transaction cannot commit any more."""
        if self._is_calm() or self._rng.random() > _CUT_OFFSETS_SHARE:
            await tx.send_offsets(consumer)
            return
        with trio.move_on_after(self._rng.choice((0.0, 0.002, 0.01))) as scope:
            await tx.send_offsets(consumer)
        if scope.cancelled_caught:
            self._note(f"{self._name}: its offsets were cut short")

    @contextmanager
    def _cut(self) -> Iterator[trio.CancelScope]:
        """Cancel the block at one of its awaits, or not."""
        if self._is_calm() or self._rng.random() > _CUT_SHARE:
            with trio.CancelScope() as scope:
                yield scope
            return
        cut = Cut(self._rng.randint(1, _AWAITS_MAX), Lag())
        trio.lowlevel.add_instrument(cut)
        try:
            with cut.around() as scope:
                yield scope
        finally:
            trio.lowlevel.remove_instrument(cut)
        if scope.cancelled_caught:
            self._note(f"{self._name} was cut")
