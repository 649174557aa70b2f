"""Records whose handling is cut short, in virtual time: none is committed unless it is finished.

Members of a group with auto-commit read in every way there is; a time limit, the end of a child
task, an error or a ``break`` ends a loop in the middle of a record, and the block goes on, reads on
or ends. A record is finished when the next one is asked for, when the program commits it, or when
the loop ends by itself.
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import attrs
import trio

from sim.outcome import Outcome, violation_in
from support.complaints import no_faults_logged
from support.ledger import Violation
from support.virtual import Digest
from trionet import (
    CommitFailedError,
    Consumer,
    ConsumerBatch,
    ConsumerRecord,
    RebalanceInProgressError,
    open_broker,
    open_consumer,
)
from trionet.testing import BrokerControl, MemoryNetwork, NetworkFaults, control, run_virtual

ADDRESS: Final = "10.0.0.1:9092"
SETTINGS: Final = {
    "listeners": f"PLAINTEXT://{ADDRESS}",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "log.retention.check.interval.ms": "3600000",
    "num.network.threads": "1",
    "num.io.threads": "2",
}
TOPIC: Final = "orders"
GROUP: Final = "till"
PARTITIONS: Final = 2
RECORDS: Final = 40
# How long bytes are on their way, in seconds.
DELAYS: Final = ((0.0, 0.0), (0.0, 0.003), (0.001, 0.05))
# How many members there are; with a single one it is known what the next block begins with.
MEMBERS: Final = (1, 1, 3)
STRATEGIES: Final = ("range", "sticky", "cooperative-sticky")
POLL_SECONDS: Final = 2.0
# How long a record takes: some hang, until they are cut short or their member has left.
WORK_SECONDS: Final = (0.0, 0.0, 0.0, 0.01, 0.2, 6.0)
LIMITS_SECONDS: Final = (0.0, 0.01, 0.3, 1.0)
# How many lives may cut a record short.
LIVES_CUT: Final = 8
LOOK_SECONDS: Final = 0.1
# Everything is handled within this, in virtual seconds.
SEED_SECONDS_MAX: Final = 600.0


class Failed(Exception):
    """What the user's own code raises in the middle of a record."""


class Break:
    """The user's loop is left in the middle of a record."""


@attrs.define
class Trace:
    """What happened, for the outcome.

    Attributes:
        records: how many were handled, again and again.
        cuts: how often one was cut short.
        ended_at: when it was over, in virtual seconds.
        lines: what there is to read of it.
        digest: of all that was on the network.
    """

    records: int = 0
    cuts: int = 0
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
        trace.cuts,
        trace.ended_at,
        time.perf_counter() - began,
        time.process_time() - cpu_began,
        trace.digest.hexdigest(),
        violation,
        tuple(trace.lines) if violation else (),
    )


async def live(network: MemoryNetwork, seed: int, trace: Trace) -> None:
    """One broker, and members that handle all records at least once."""
    rng = random.Random(f"cut short {seed}")
    network.faults = NetworkFaults(delay_seconds=rng.choice(DELAYS))
    async with open_broker(SETTINGS, network=network) as broker:
        kit = control(broker)
        await kit.create_topic(TOPIC, PARTITIONS)
        records = [{"partition": each % PARTITIONS, "value": "order"} for each in range(RECORDS)]
        await kit.seed(TOPIC, records)
        group = Group(network, kit, rng, trace)
        try:
            with trio.fail_after(SEED_SECONDS_MAX):
                await group.live()
        finally:
            trace.ended_at = trio.current_time()


class Group:
    """The members, and which records they have finished.

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
        self._members = rng.choice(MEMBERS)
        self._strategy = rng.choice(STRATEGIES)
        self._finished: dict[int, set[int]] = {each: set() for each in range(PARTITIONS)}

    async def live(self) -> None:
        """Let the members work until everything is finished."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._audit)
            async with trio.open_nursery() as members:
                for number in range(self._members):
                    members.start_soon(self._take_part, f"member-{number}")
            nursery.cancel_scope.cancel()

    def _is_all_finished(self) -> bool:
        return sum(map(len, self._finished.values())) == RECORDS

    async def _take_part(self, name: str) -> None:
        """Open one consumer after the other."""
        rng = self._rng
        lives = 0
        while not self._is_all_finished():
            lives += 1
            settings = {
                "group.id": GROUP,
                "partition.assignment.strategy": self._strategy,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": True,
                "auto.commit.interval.ms": rng.choice((100, 1_000, 5_000)),
                "session.timeout.ms": 3_000,
                "heartbeat.interval.ms": 500,
                "max.poll.interval.ms": round(POLL_SECONDS * 1000),
                "max.poll.records": rng.choice((1, 3, 500)),
            }
            self._trace.note(f"{name} opens a consumer, {settings}")
            member = Member(name, rng, self._trace, self._finished, is_calm=lives > LIVES_CUT)
            try:
                async with open_consumer(
                    ADDRESS, settings, topics=TOPIC, network=self._network
                ) as consumer:
                    await member.live(consumer)
            except Failed:
                self._trace.note(f"{name}: its block has failed")
            self._look()
            if self._members == 1 and not member.was_late:
                self._look_at_end(member.ends)

    # What must hold.

    async def _audit(self) -> None:
        while True:
            self._look()
            await trio.sleep(LOOK_SECONDS)

    def _look(self) -> None:
        """Compare the committed offsets with what is finished."""
        for partition, committed in self._committed().items():
            missing = set(range(committed)) - self._finished[partition]
            if missing:
                raise Violation(
                    f"partition {partition}: {committed} is committed, and {min(missing)} was not"
                    " finished"
                )

    def _look_at_end(self, ends: dict[int, int]) -> None:
        """The only member has left in peace: nothing that it has finished comes again."""
        committed = self._committed()
        for partition, end in ends.items():
            if committed.get(partition, 0) < end:
                raise Violation(
                    f"partition {partition}: {committed.get(partition)} is committed after a clean"
                    f" end, and everything before {end} was finished"
                )

    def _committed(self) -> dict[int, int]:
        found = self._kit.group(GROUP).offsets
        return {partition: offset for (_, partition), offset in found.items()}


class Member:
    """One life of a member.

    Args:
        name: what it is called.
        rng: draws what it does.
        trace: takes what happens.
        finished: the offsets by partition, to which it adds.
        is_calm: it cuts nothing short any more.

    Attributes:
        ends: by partition, the offset after what it has finished.
        was_late: it was out of its group for a while, and may have lost what it had finished.
    """

    def __init__(
        self,
        name: str,
        rng: random.Random,
        trace: Trace,
        finished: dict[int, set[int]],
        *,
        is_calm: bool,
    ) -> None:
        self._name = name
        self._rng = rng
        self._trace = trace
        self._finished = finished
        self._is_calm = is_calm
        self._in_hand: list[tuple[int, int]] = []
        self._asked_at = trio.current_time()
        self.ends: dict[int, int] = {}
        self.was_late = False

    async def live(self, consumer: Consumer) -> None:
        """Read in one loop, or in several after each other."""
        rng = self._rng
        loops = (self._limit, self._limit, self._child, self._error, self._break, self._bounded)
        afterwards = (self._read_on, self._go_on, self._commit, self._put_back)
        try:
            for _ in range(rng.randint(1, 4)):
                loop = self._limit if self._is_calm else rng.choice(loops)
                self._trace.note(f"{self._name}: {loop.__name__}")
                await loop(consumer)
                if self._in_hand:
                    self._trace.note(f"{self._name}: {self._in_hand} are cut short")
                    self._trace.cuts += 1
                if not self._is_calm:
                    await rng.choice(afterwards)(consumer)
            if rng.random() < 0.2:
                raise Failed
        finally:
            self._note_lateness()

    # Loops, and how they end.

    async def _limit(self, consumer: Consumer) -> None:
        with trio.move_on_after(self._rng.choice(LIMITS_SECONDS)):
            await self._read(consumer)

    async def _child(self, consumer: Consumer) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read, consumer)
            await trio.sleep(self._rng.choice(LIMITS_SECONDS))
            nursery.cancel_scope.cancel()

    async def _error(self, consumer: Consumer) -> None:
        with suppress(Failed), trio.move_on_after(max(LIMITS_SECONDS)):
            await self._read(consumer, ends_with=Failed)

    async def _break(self, consumer: Consumer) -> None:
        with trio.move_on_after(max(LIMITS_SECONDS)):
            await self._read(consumer, ends_with=Break)

    async def _bounded(self, consumer: Consumer) -> None:
        """Read a few records, up to the end that the loop finds by itself."""
        consumer.stop_at(
            {
                each: (consumer.position(each) or 0) + self._rng.randint(0, 3)
                for each in consumer.assignment
            }
        )
        with trio.move_on_after(max(LIMITS_SECONDS)):
            await self._read(consumer)
        consumer.stop_at(dict.fromkeys(consumer.assignment, RECORDS))

    async def _read(
        self, consumer: Consumer, *, ends_with: type[Failed | Break] | None = None
    ) -> None:
        """Handle records or batches until cancelled, or until the loop is left."""
        in_batches = self._rng.random() < 0.4
        records: AsyncIterator[ConsumerBatch | ConsumerRecord]
        records = consumer.batches() if in_batches else aiter(consumer)
        while True:
            self._finish()  # the loop asks for the next one
            self._note_lateness()
            try:
                item = await anext(records)
            except StopAsyncIteration:
                return
            self._asked_at = trio.current_time()
            offsets = item.offsets if isinstance(item, ConsumerBatch) else [item.offset]
            self._in_hand = [(item.partition, each) for each in offsets]
            self._trace.records += len(offsets)
            if ends_with is not None and self._rng.random() < 0.3:
                if ends_with is Failed:
                    raise Failed
                return
            await trio.sleep(0.0 if self._is_calm else self._rng.choice(WORK_SECONDS))

    # What the block does after a loop.

    async def _read_on(self, _: Consumer) -> None:
        """Do nothing: whatever comes next may be another loop, or the end of the block."""
        await trio.lowlevel.checkpoint()

    async def _go_on(self, _: Consumer) -> None:
        """Let auto-commits come by."""
        await trio.sleep(self._rng.uniform(0.0, 2 * POLL_SECONDS))

    async def _commit(self, consumer: Consumer) -> None:
        """Commit, which says that the record in hand is finished."""
        self._finish()
        try:
            await consumer.commit()
        except (CommitFailedError, RebalanceInProgressError) as error:
            self._trace.note(f"{self._name}: {error}")

    async def _put_back(self, consumer: Consumer) -> None:
        """Have what was cut short once more."""
        await trio.lowlevel.checkpoint()
        consumer.put_back()
        self._in_hand.clear()

    def _finish(self) -> None:
        for partition, offset in self._in_hand:
            self._finished[partition].add(offset)
            self.ends[partition] = offset + 1
        self._in_hand.clear()

    def _note_lateness(self) -> None:
        now = trio.current_time()
        self.was_late = self.was_late or now - self._asked_at > POLL_SECONDS / 2
        self._asked_at = now
