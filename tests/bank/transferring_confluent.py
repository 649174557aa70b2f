"""`python -m bank.transferring_confluent`: confluent-kafka moves amounts between accounts."""

from __future__ import annotations

import importlib
import os
import random
import sys
from typing import Any, NoReturn

from bank.work import (
    ABORTED,
    ABORTED_PERCENT,
    BANK,
    COMMITTED,
    ENDING,
    FENCED,
    GIVEN_UP,
    PARTITIONS,
    PAUSES_SECONDS,
    READY,
    TIMEOUT_MS,
    Journal,
    Work,
)
from support.bank import draw_transfer

kafka: Any = importlib.import_module("confluent_kafka")

CALL_SECONDS = 60.0


class Aborted(Exception):
    """The transaction had to be aborted, and was."""


class Fenced(Exception):
    """There is a newer producer with this transactional id."""


class GivenUp(Exception):
    """The broker knows nothing of the transaction, and librdkafka ends its producer over that.

    It aborts a transaction after the request that was to begin it was lost with a broker (TV1).
    """


class Transactor:
    """Calls of a producer that are repeated, or end the transaction, as its errors demand.

    Args:
        work: the process.
        settings: more of the producer's.
    """

    def __init__(self, work: Work, settings: dict[str, object]) -> None:
        self.producer = kafka.Producer(
            {
                "bootstrap.servers": work.servers,
                "transactional.id": work.id,
                "transaction.timeout.ms": TIMEOUT_MS,
                "reconnect.backoff.max.ms": 500,
                **settings,
            }
        )
        self.call(self.producer.init_transactions, CALL_SECONDS)

    def call(self, method: Any, *arguments: object) -> None:
        while True:
            try:
                method(*arguments)
                return
            except kafka.KafkaException as error:
                self._judge(error, is_abort=method == self.producer.abort_transaction)

    def _judge(self, error: Any, *, is_abort: bool) -> None:
        """Return if the call is to be repeated."""
        [reason] = error.args
        if reason.txn_requires_abort():
            self.call(self.producer.abort_transaction, CALL_SECONDS)
            raise Aborted from error
        if reason.code() == kafka.KafkaError._FATAL:
            # It says that there was a fatal error; transactional calls say which.
            self.call(self.producer.abort_transaction, CALL_SECONDS)
        if is_abort and reason.code() == kafka.KafkaError.INVALID_TXN_STATE:
            raise GivenUp from error
        if reason.code() in (
            kafka.KafkaError._FENCED,
            kafka.KafkaError.PRODUCER_FENCED,
            kafka.KafkaError.INVALID_PRODUCER_EPOCH,
        ):
            raise Fenced from error
        if not reason.retriable():
            raise error

    def pause(self, seconds: float) -> None:
        self.call(self.producer.poll, seconds)

    def send(self, topic: str, value: bytes, partition: int) -> None:
        self.call(self._produce, topic, value, partition)

    def _produce(self, topic: str, value: bytes, partition: int) -> None:
        self.producer.produce(topic, value, partition=partition)
        self.producer.poll(0)


def transfer(transactor: Transactor, journal: Journal, rng: random.Random) -> None:
    """Make one transaction."""
    name = journal.begin()
    producer = transactor.producer
    try:
        transactor.call(producer.begin_transaction)
        for entry in draw_transfer(rng, name):
            transactor.send(BANK, entry.encode(), entry.account % PARTITIONS)
            if rng.random() < 0.1:
                transactor.pause(rng.choice(PAUSES_SECONDS))
        if rng.randrange(100) < ABORTED_PERCENT:
            transactor.call(producer.abort_transaction, CALL_SECONDS)
            raise Aborted
        journal.write(ENDING, name)
        transactor.call(producer.commit_transaction, CALL_SECONDS)
    except Aborted:
        journal.write(ABORTED, name)
    else:
        journal.write(COMMITTED, name)


def live(work: Work) -> None:
    journal, rng = Journal(work), work.rng()
    transactor = Transactor(work, {"linger.ms": rng.choice((0, 5))})
    print(READY, flush=True)
    while True:  # once at least, also after everything else is over
        transfer(transactor, journal, rng)
        if work.is_over():
            return
        transactor.pause(rng.choice(PAUSES_SECONDS))


def end(error: Fenced | GivenUp) -> NoReturn:
    """End this process without the destructor of the producer.

    librdkafka 2.16 has corrupted the heap there now and then if a fenced producer had records left.
    """
    print(error.__cause__, file=sys.stderr, flush=True)
    os._exit(FENCED if isinstance(error, Fenced) else GIVEN_UP)


if __name__ == "__main__":
    try:
        live(Work.from_arguments())
    except (Fenced, GivenUp) as error:
        end(error)
