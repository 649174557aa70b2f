"""`python -m bank.copying`: a member of a group of ours that copies each record exactly once."""

from __future__ import annotations

import random
import sys
from contextlib import suppress

import trio

from bank.work import (
    ABORTED_PERCENT,
    BANK,
    COPIES,
    FENCED,
    GROUP,
    PARTITIONS,
    READY,
    TIMEOUT_MS,
    Work,
)
from trionet import Consumer, Producer, open_consumer, open_producer
from trionet.errors import ProducerFencedError, TransactionAbortableError

#: How long to wait for records before looking whether all is over.
LOOK_SECONDS = 0.3
SESSION_MS = 6_000


def copy_of(partition: int, offset: int, value: bytes) -> bytes:
    """The value of a copy, which says where its original is."""
    return b"%d %d %s" % (partition, offset, value)


def original_of(copy: bytes) -> tuple[int, int, bytes]:
    partition, offset, value = copy.split(b" ", 2)
    return int(partition), int(offset), value


class Changed(Exception):
    """The copies are not wanted any more."""


async def copy(consumer: Consumer, producer: Producer, rng: random.Random) -> None:
    """Make one transaction of the next records, if there are any."""
    batch = None
    with trio.move_on_after(LOOK_SECONDS):
        batch = await consumer.next_batch()
    if batch is None:
        return
    async with producer.transaction() as transaction:
        for offset, value in zip(batch.offsets, batch.values, strict=True):
            copied = copy_of(batch.partition, offset, value or b"")
            _ = await producer.enqueue(COPIES, copied, partition=rng.randrange(PARTITIONS))
        await transaction.send_offsets(consumer)
        if rng.randrange(100) < ABORTED_PERCENT / 10:
            raise Changed


async def be_member(work: Work, producer: Producer, rng: random.Random) -> None:
    """Copy until all is over; after an aborted transaction its records must be read again."""
    settings = {
        "group.id": GROUP,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "max.poll.records": rng.choice((1, 50, 500)),
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": 300,
    }
    async with open_consumer(work.servers, settings, topics=[BANK]) as consumer:
        while not work.is_over():
            await copy(consumer, producer, rng)


async def live(work: Work) -> None:
    rng = work.rng()
    settings = {"transactional.id": work.id, "transaction.timeout.ms": TIMEOUT_MS}
    async with open_producer(work.servers, settings) as producer:
        # What a predecessor has left must not keep the group's offsets unstable.
        await producer.init_transactions()
        print(READY, flush=True)
        while not work.is_over():
            with suppress(Changed, TransactionAbortableError):
                await be_member(work, producer, rng)


if __name__ == "__main__":
    try:
        trio.run(live, Work.from_arguments())
    except ProducerFencedError as error:
        print(error, file=sys.stderr)
        sys.exit(FENCED)
