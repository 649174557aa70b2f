"""`python -m bank.transferring`: a producer of ours that moves amounts between accounts."""

from __future__ import annotations

import random
import sys

import trio

from bank.work import (
    ABORTED,
    ABORTED_PERCENT,
    BANK,
    COMMITTED,
    ENDING,
    FENCED,
    PARTITIONS,
    PAUSES_SECONDS,
    READY,
    TIMEOUT_MS,
    Journal,
    Work,
)
from support.bank import draw_transfer
from trionet import Producer, open_producer
from trionet.errors import ProducerFencedError, TransactionAbortableError


class Changed(Exception):
    """The transfer is not wanted any more."""


async def transfer(producer: Producer, journal: Journal, rng: random.Random) -> None:
    """Make one transaction."""
    name = journal.begin()
    entries = draw_transfer(rng, name)
    try:
        async with producer.transaction():
            for entry in entries:
                partition = entry.account % PARTITIONS
                if rng.random() < 0.3:
                    await producer.send(BANK, entry.encode(), partition=partition)
                else:
                    _ = await producer.enqueue(BANK, entry.encode(), partition=partition)
                if rng.random() < 0.1:
                    await trio.sleep(rng.choice(PAUSES_SECONDS))
            if rng.randrange(100) < ABORTED_PERCENT:
                raise Changed
            journal.write(ENDING, name)
    except (Changed, TransactionAbortableError):
        journal.write(ABORTED, name)
    else:
        journal.write(COMMITTED, name)


async def live(work: Work) -> None:
    journal, rng = Journal(work), work.rng()
    settings = {
        "transactional.id": work.id,
        "transaction.timeout.ms": TIMEOUT_MS,
        "linger.ms": rng.choice((0, 5)),
    }
    async with open_producer(work.servers, settings) as producer:
        await producer.init_transactions()
        print(READY, flush=True)
        while True:  # once at least, also after everything else is over
            await transfer(producer, journal, rng)
            if work.is_over():
                return
            await trio.sleep(rng.choice(PAUSES_SECONDS))


if __name__ == "__main__":
    try:
        trio.run(live, Work.from_arguments())
    except ProducerFencedError as error:
        print(error, file=sys.stderr)
        sys.exit(FENCED)
