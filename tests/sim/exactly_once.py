"""Consume, transform, produce: workers that are killed, cancelled and stalled, in virtual time.

Three workers of a group copy records from one topic to another by transactions, with the loops of
the documentation (:mod:`support.exactly_once`). A seed draws their settings, the network, and what
befalls them; a reader of committed records counts what is there in the end.
"""

from __future__ import annotations

import itertools
import random
import time

import attrs
import trio

from sim.outcome import Outcome, violation_in
from support.complaints import no_faults_logged
from support.exactly_once import Copies, Job, Worker
from support.ledger import Violation
from support.protocol_level import finalize
from support.virtual import Digest, MemoryHost
from trionet import ProducerFencedError, TopicPartition, open_admin, open_broker, open_consumer
from trionet.testing import BrokerControl, MemoryNetwork, NetworkFaults, control, run_virtual

BROKER_HOST = "10.0.0.1"
ADDRESS = f"{BROKER_HOST}:9092"
SETTINGS = {
    "listeners": f"PLAINTEXT://{ADDRESS}",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "log.retention.check.interval.ms": "3600000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "num.network.threads": "1",
    "num.io.threads": "2",
}
SOURCE, TARGET, GROUP = "orders", "bills", "till"
WORKERS = 3
PARTITIONS = 3
STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")
# How long bytes are on their way, in seconds.
DELAYS = ((0.0, 0.0), (0.0, 0.003), (0.001, 0.05))
POLL_SECONDS = 2.0
SESSION_SECONDS = 3.0
# Some transactions are aborted by their coordinator while their worker stalls.
TRANSACTION_SECONDS = (4.0, 60.0)
TV1_SHARE = 0.3
# For so long records are written, and workers are disturbed.
DISTURBED_SECONDS = 15.0
RECORDS_MAX = 4
# How long a worker lives until it is killed or cancelled.
LIFE_SECONDS = (0.5, 15.0)
KILLED_SHARE = 0.6
DOWN_SECONDS = (0.0, 1.0)
# How often a stall loses its session, too: nothing passes between it and the broker.
SEPARATED_SHARE = 0.3
LOOK_SECONDS, LOOK_AGAIN_SECONDS = 0.1, 1.0
# Everything is copied within this when nothing goes wrong any more.
SETTLE_SECONDS = 120.0


@attrs.define
class Trace:
    """What happened, for the outcome.

    Attributes:
        records: how many there were to copy.
        deaths: how many workers were killed.
        ended_at: when it was over, in virtual seconds.
        lines: what there is to read of it.
        digest: of all that was on the network.
    """

    records: int = 0
    deaths: int = 0
    ended_at: float = 0.0
    lines: list[str] = attrs.field(factory=list)
    digest: Digest = attrs.field(factory=Digest)

    def note(self, text: str) -> None:
        self.lines.append(f"{trio.current_time():.3f} {text}")


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
        trace.deaths,
        trace.ended_at,
        time.perf_counter() - began,
        time.process_time() - cpu_began,
        trace.digest.hexdigest(),
        violation,
        tuple(trace.lines) if violation else (),
    )


async def live(network: MemoryNetwork, seed: int, trace: Trace) -> None:
    """One broker, three workers, and a count."""
    rng = random.Random(f"exactly once {seed}")
    network.faults = NetworkFaults(
        delay_seconds=rng.choice(DELAYS),
        short_share=rng.choice((0.0, 0.0, 0.2)),
        reset_share=rng.choice((0.0, 0.0, 0.0, 0.005)),
    )
    async with open_broker(SETTINGS, network=network) as broker:
        if rng.random() < TV1_SHARE:
            async with open_admin(ADDRESS, network=network) as admin:
                await finalize(admin, 1)
        till = Till(network, control(broker), rng, trace)
        try:
            await till.live()
        finally:
            trace.ended_at = trio.current_time()


class Till:
    """The workers, what they copy, and what befalls them.

    Args:
        network: where.
        kit: looks into the broker.
        rng: draws all of it.
        trace: takes what happens.
    """

    def __init__(
        self, network: MemoryNetwork, kit: BrokerControl, rng: random.Random, trace: Trace
    ) -> None:
        self._network = network
        self._kit = kit
        self._rng = rng
        self._trace = trace
        self._copies = Copies()
        self._ends = dict.fromkeys(range(PARTITIONS), 0)
        self._is_calm = False
        self._separated = 0
        self._alive: dict[int, trio.CancelScope] = {}
        keys = {
            "partition.assignment.strategy": rng.choice(STRATEGIES),
            "session.timeout.ms": round(SESSION_SECONDS * 1000),
            "heartbeat.interval.ms": 500,
        }
        transaction = rng.choice(TRANSACTION_SECONDS)
        self._job = Job(ADDRESS, SOURCE, TARGET, GROUP, keys, POLL_SECONDS, transaction)

    async def live(self) -> None:
        """Disturb the workers for a while, let them come to their end, and count."""
        await self._kit.create_topic(SOURCE, PARTITIONS)
        await self._kit.create_topic(TARGET, PARTITIONS)
        async with trio.open_nursery() as nursery:
            for number in range(WORKERS):
                nursery.start_soon(self._keep, number)
            nursery.start_soon(self._audit)
            await self._write()
            self._calm_down()
            await self._until_all_is_copied()
            nursery.cancel_scope.cancel()
        await self._count()

    async def _write(self) -> None:
        until = trio.current_time() + DISTURBED_SECONDS
        while trio.current_time() < until:
            partition = self._rng.randrange(PARTITIONS)
            count = self._rng.randint(1, RECORDS_MAX)
            await self._kit.seed(SOURCE, [{"partition": partition, "value": "order"}] * count)
            self._ends[partition] += count
            self._trace.records += count
            await trio.sleep(self._rng.choice((0.05, 0.3, 1.0)))

    def _calm_down(self) -> None:
        """From here on, nothing goes wrong, and no transaction waits for its next batch."""
        self._trace.note("nothing goes wrong any more")
        self._is_calm = True
        self._network.faults = NetworkFaults()
        for scope in self._alive.values():
            scope.cancel()

    # The workers.

    async def _keep(self, number: int) -> None:
        """Run one worker after the other, each on a host of its own."""
        async with trio.open_nursery() as remains:
            for instance in itertools.count(1):
                host = MemoryHost(self._network, f"10.0.{number + 1}.{instance}")
                scope, ended = trio.CancelScope(), trio.Event()
                self._alive[number] = scope
                remains.start_soon(self._run_worker, number, host, scope, ended)
                with trio.move_on_after(self._rng.uniform(*LIFE_SECONDS)):
                    await ended.wait()
                if self._is_calm:
                    await ended.wait()
                elif not ended.is_set() and self._rng.random() < KILLED_SHARE:
                    self._trace.note(f"{host.address} is killed")
                    self._trace.deaths += 1
                    host.kill(is_silent=self._rng.random() < 0.5)
                    scope.cancel()
                elif not ended.is_set():
                    self._trace.note(f"{host.address} is cancelled")
                    scope.cancel()
                    await ended.wait()
                await trio.sleep(self._rng.uniform(*DOWN_SECONDS))

    async def _run_worker(
        self, number: int, host: MemoryHost, scope: trio.CancelScope, ended: trio.Event
    ) -> None:
        async def stall(seconds: float) -> None:
            if self._rng.random() < SEPARATED_SHARE:
                await self._separate(host, seconds)
            else:
                await trio.sleep(seconds)

        worker = Worker(
            self._job,
            f"till-{number}",
            self._rng,
            is_calm=lambda: self._is_calm,
            note=lambda text: self._trace.note(f"{host.address} {text}"),
            network=host,
            stall=stall,
        )
        try:
            with scope:
                await worker.run()
        except ProducerFencedError as error:
            self._trace.note(f"{host.address} is fenced: {error}")
        except Exception:  # boundary: a process that was killed raises nothing
            if not host.is_dead:
                raise
        finally:
            ended.set()

    async def _separate(self, host: MemoryHost, seconds: float) -> None:
        """Let the session of a worker end while it stalls."""
        self._trace.note(f"{host.address} is separated")
        self._network.separate([BROKER_HOST], [host.address])
        self._separated += 1
        try:
            await trio.sleep(SESSION_SECONDS + seconds)
        finally:
            self._separated -= 1
            if not self._separated:
                self._network.heal()

    # What must hold.

    def _offsets(self) -> dict[int, int]:
        found = self._kit.group(GROUP).offsets
        return {partition: offset for (_, partition), offset in found.items()}

    async def _audit(self) -> None:
        while True:
            self._copies.commits(self._offsets())
            await trio.sleep(LOOK_SECONDS)

    async def _until_all_is_copied(self) -> None:
        deadline = trio.current_time() + SETTLE_SECONDS
        while {**dict.fromkeys(self._ends, 0), **self._offsets()} != self._ends:
            if trio.current_time() > deadline:
                raise Violation(f"the workers do not come to {self._ends}: {self._offsets()}")
            await trio.sleep(LOOK_AGAIN_SECONDS)

    async def _count(self) -> None:
        """Read all that is committed, when no transaction is open any more."""
        settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        places = [TopicPartition(TARGET, each) for each in range(PARTITIONS)]
        async with (
            open_consumer(ADDRESS, settings, network=self._network) as consumer,
            open_consumer(ADDRESS, network=self._network) as uncommitted,
        ):
            deadline = trio.current_time() + SETTLE_SECONDS
            while await consumer.end_offsets(places) != await uncommitted.end_offsets(places):
                if trio.current_time() > deadline:
                    raise Violation(f"a transaction hangs: {self._kit.transactions()}")
                await trio.sleep(LOOK_AGAIN_SECONDS)
            consumer.assign(places)
            consumer.stop_at(await consumer.end_offsets(places))
            async for record in consumer:
                self._copies.saw(record.partition, record.offset, record.value or b"")
        self._copies.check_whole(self._ends)
