"""Short lives of producers whose first batches at a partition meet every fault of a Produce.

A seed draws a few producers, idempotent or not, with several batches in flight, and for each of
them and each partition what becomes of its first requests there. It takes some ten milliseconds.
"""

from __future__ import annotations

import math
import random
import time

import attrs
import trio

from sim.outcome import Outcome, violation_in
from support import produce_faults
from support.complaints import no_faults_logged
from support.ledger import Ledger, Violation
from support.virtual import Digest
from trionet import Producer, TrionetError, UndeliveredError, open_broker, open_producer
from trionet.testing import BrokerControl, MemoryNetwork, NetworkFaults, control, run_virtual

ADDRESS = "10.0.0.1:9092"
SETTINGS = {
    "listeners": f"PLAINTEXT://{ADDRESS}",
    "auto.create.topics.enable": "false",
    "log.retention.check.interval.ms": "3600000",
    "num.network.threads": "1",
    "num.io.threads": "2",
}
PARTITIONS_MAX = 2
RECORDS_MAX = 6
# What some topics take: a few records, and not one with the other.
MESSAGE_BYTES_MAX = 200
TOO_LARGE = random.Random("too large").randbytes(300)
# How long bytes are on their way, in seconds.
DELAYS = ((0.0, 0.0), (0.0, 0.003), (0.001, 0.05))
# No seed takes longer, in virtual seconds.
SEED_SECONDS_MAX = 500.0
# Longer than all faults of a producer, and their timeouts.
LONG_MS = 100_000
RETRIES_MAX = 2**31 - 1


class Stop(Exception):
    """An error of the user's own in the block of a producer."""


@attrs.define
class Trace:
    """What happened, for the outcome.

    Attributes:
        records: how many were sent.
        ended_at: when it was over, in virtual seconds.
        lines: what there is to read of it.
        digest: of all that was on the network.
    """

    records: int = 0
    ended_at: float = 0.0
    lines: list[str] = attrs.field(factory=list)
    digest: Digest = attrs.field(factory=Digest)


def run(seed: int) -> Outcome:
    """Run one seed to its end, or to the first violation."""
    trace = Trace()
    violation = ""
    began, cpu_began = time.perf_counter(), time.process_time()
    try:
        with no_faults_logged():
            run_virtual(live, seed, trace, seed=seed, trace=trace.digest.add)
    except BaseException as error:  # boundary: one seed, however it ended
        violation = violation_in(error)
        if not violation:
            raise
    return Outcome(
        seed,
        trace.records,
        0,
        trace.ended_at,
        time.perf_counter() - began,
        time.process_time() - cpu_began,
        trace.digest.hexdigest(),
        violation,
        tuple(trace.lines) if violation else (),
    )


async def live(network: MemoryNetwork, seed: int, trace: Trace) -> None:
    """One broker, and one topic after the other with one producer or two."""
    rng = random.Random(f"first batches {seed}")
    network.faults = NetworkFaults(
        delay_seconds=rng.choice(DELAYS),
        short_share=rng.choice((0.0, 0.0, 0.2)),
        reset_share=rng.choice((0.0, 0.0, 0.0, 0.01)),
    )
    async with open_broker(SETTINGS, network=network) as broker:
        kit = control(broker)
        try:
            with trio.fail_after(SEED_SECONDS_MAX):
                for number in range(rng.choice((1, 1, 2))):
                    await use_topic(kit, network, rng, f"t{number}", trace)
        except BaseException:
            trace.lines += kit.log().splitlines()
            raise
        finally:
            trace.ended_at = trio.current_time()


async def use_topic(
    kit: BrokerControl, network: MemoryNetwork, rng: random.Random, topic: str, trace: Trace
) -> None:
    """Let producers write to a new topic, and compare what they say with what is there."""
    partitions = rng.randint(1, PARTITIONS_MAX)
    is_narrow = rng.random() < 0.4
    configs = {"max_message_bytes": MESSAGE_BYTES_MAX} if is_narrow else {}
    await kit.create_topic(topic, partitions, **configs)
    lives = [
        Life(network, rng, f"{topic}-{name}", topic, partitions, trace, is_narrow=is_narrow)
        for name in rng.choice(("a", "a", "ab"))
    ]
    at_once = rng.random() < 0.5
    async with trio.open_nursery() as nursery:
        for life in lives:
            life.plant(kit)
            if at_once:
                nursery.start_soon(life.run)
            else:
                await life.run()
    records = kit.records(topic)
    ledgers = [ledger for life in lives for ledger in life.ledgers]
    for ledger in ledgers:
        ledger.check_log(records)
    names = tuple(ledger.name for ledger in ledgers)
    for record in records:
        if record.value is None or not record.value.startswith(names):
            raise Violation(f"{record} was never sent")


class Life:
    """The life of one producer.

    Args:
        network: where.
        rng: draws all of it.
        name: its ``client.id``, and what its values begin with.
        topic: what it writes to.
        partitions: how many that has.
        trace: takes what it does.
        is_narrow: some of what it sends is too large for the topic.

    Attributes:
        ledgers: what it was given and what it said of that.
    """

    def __init__(
        self,
        network: MemoryNetwork,
        rng: random.Random,
        name: str,
        topic: str,
        partitions: int,
        trace: Trace,
        *,
        is_narrow: bool,
    ) -> None:
        self._network = network
        self._is_narrow = is_narrow
        self._rng = rng
        self._name = name
        self._topic = topic
        self._partitions = partitions
        self._trace = trace
        is_idempotent = rng.random() < 0.75
        # One that is not patient gives records up, and says so.
        self._is_patient = rng.random() < 0.6
        self._is_stopped = not self._is_patient and rng.random() < 0.3
        self._settings = {
            "client.id": name,
            "enable.idempotence": is_idempotent,
            "linger.ms": rng.choice((0, 0, 0, 5)),
            "batch.size": rng.choice((1, 1, 1, 90, 16_384)),
            "max.in.flight.requests.per.connection": rng.choice((1, 2, 3, 5, 5, 5)),
            "retry.backoff.ms": rng.choice((1, 10, 100)),
            "request.timeout.ms": 1_000,
            "delivery.timeout.ms": LONG_MS if self._is_patient else rng.choice((1_010, 2_500)),
            "retries": RETRIES_MAX if self._is_patient else rng.choice((1, 3, RETRIES_MAX)),
            "compression.type": rng.choice(("none", "none", "none", "gzip")),
        }
        self._is_idempotent = is_idempotent
        self.ledgers: list[Ledger] = []
        self._ledger = self._new_ledger(b"%s-r" % name.encode())

    def _new_ledger(self, name: bytes) -> Ledger:
        self.ledgers.append(ledger := Ledger(name, is_idempotent=self._is_idempotent))
        return ledger

    def plant(self, kit: BrokerControl) -> None:
        """Plant what becomes of its first requests to each partition."""
        self._trace.lines.append(f"{self._name}: {self._settings}")
        for partition in range(self._partitions):
            outcomes = produce_faults.draw(self._rng)
            self._trace.lines.append(f"{self._name}: {self._topic}-{partition}: {outcomes}")
            produce_faults.plant(
                kit.faults,
                outcomes,
                client_id=self._name,
                topic=self._topic,
                partition=partition,
            )

    async def run(self) -> None:
        """Send a few records in every way there is, and close."""
        rng = self._rng
        try:
            async with open_producer(ADDRESS, self._settings, network=self._network) as producer:
                for _ in range(rng.randint(1, 3)):
                    how = rng.choice((self._enqueue, self._enqueue, self._batch, self._send))
                    await how(producer)
                    await trio.sleep(rng.choice((0.0, 0.0, 0.02, 1.0)))
                if self._is_stopped:
                    raise Stop
                if rng.random() < 0.5:
                    await producer.flush()
        except (Stop, UndeliveredError) as error:
            self._trace.lines.append(f"{self._name}: {error}")
        if self._is_patient:
            self._ledger.check_taken()

    def _next(self) -> list[tuple[int, bytes]]:
        """Some values, each with its partition."""
        count = self._rng.randint(1, RECORDS_MAX)
        self._trace.records += count
        partition = self._rng.randrange(self._partitions)
        return [
            (self._rng.choice((partition, self._rng.randrange(self._partitions))), value)
            for value in (self._ledger.next() for _ in range(count))
        ]

    async def _enqueue(self, producer: Producer) -> None:
        for partition, value in self._next():
            is_too_large = self._is_narrow and self._rng.random() < 0.3
            headers = [("fill", TOO_LARGE)] if is_too_large else ()
            delivery = await producer.enqueue(
                self._topic, value, partition=partition, headers=headers
            )
            if is_too_large:
                self._ledger.taken_too_large(value, delivery)
            else:
                self._ledger.taken(value, delivery)

    async def _batch(self, producer: Producer) -> None:
        partition, _ = (entries := self._next())[0]
        values = [value for _, value in entries]
        deliveries = await producer.enqueue_batch(self._topic, values, partition=partition)
        for value, delivery in zip(values, deliveries, strict=True):
            self._ledger.taken(value, delivery)

    async def _send(self, producer: Producer) -> None:
        """Each in a task of its own, whose record has no order among the others."""
        async with trio.open_nursery() as nursery:
            for partition, _ in self._next():
                ledger = self._new_ledger(b"%s-s%d-" % (self._name.encode(), len(self.ledgers)))
                seconds = math.inf
                if not self._is_patient:
                    seconds = self._rng.choice((0.0, 0.01, 1.0, math.inf))
                nursery.start_soon(self._send_one, producer, partition, ledger, seconds)

    async def _send_one(
        self, producer: Producer, partition: int, ledger: Ledger, seconds: float
    ) -> None:
        value = ledger.next()
        with trio.move_on_after(seconds):
            try:
                metadata = await producer.send(self._topic, value, partition=partition)
            except TrionetError:
                if self._is_patient:
                    raise
            else:
                ledger.acknowledged(value, metadata)
