"""`python -m bank.copying_confluent`: confluent-kafka copies each record exactly once."""

from __future__ import annotations

import random
from contextlib import closing, suppress

from bank.copying import LOOK_SECONDS, SESSION_MS, copy_of
from bank.transferring_confluent import (
    CALL_SECONDS,
    Aborted,
    Fenced,
    GivenUp,
    Transactor,
    end,
    kafka,
)
from bank.work import (
    ABORTED_PERCENT,
    BANK,
    COPIES,
    GROUP,
    PARTITIONS,
    READY,
    Work,
)


def be_member(work: Work, transactor: Transactor, rng: random.Random) -> None:
    """Copy until all is over; after an aborted transaction its records must be read again."""
    consumer = kafka.Consumer(
        {
            "bootstrap.servers": work.servers,
            "group.id": GROUP,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 300,
            "reconnect.backoff.max.ms": 500,
        }
    )
    producer = transactor.producer
    with closing(consumer):
        consumer.subscribe([BANK])
        while not work.is_over():
            messages = consumer.consume(rng.choice((1, 20, 100)), LOOK_SECONDS)
            # A lost connection is told as a message, and repaired.
            messages = [each for each in messages if each.error() is None]
            if not messages:
                continue
            transactor.call(producer.begin_transaction)
            for each in messages:
                copied = copy_of(each.partition(), each.offset(), each.value())
                transactor.send(COPIES, copied, rng.randrange(PARTITIONS))
            offsets = consumer.position(consumer.assignment())
            offsets = [each for each in offsets if each.offset >= 0]
            metadata = consumer.consumer_group_metadata()
            transactor.call(producer.send_offsets_to_transaction, offsets, metadata, CALL_SECONDS)
            if rng.randrange(100) < ABORTED_PERCENT / 10:
                transactor.call(producer.abort_transaction, CALL_SECONDS)
                return
            transactor.call(producer.commit_transaction, CALL_SECONDS)


def live(work: Work) -> None:
    rng = work.rng()
    transactor = Transactor(work, {})
    print(READY, flush=True)
    while not work.is_over():
        with suppress(Aborted):
            be_member(work, transactor, rng)


if __name__ == "__main__":
    try:
        live(Work.from_arguments())
    except (Fenced, GivenUp) as error:
        end(error)
