"""Members of a group, of our own client: each record is handled, and no commit runs ahead."""

from __future__ import annotations

import math

import trio

from sim.members import SHARED
from sim.own_producers import Stop
from sim.world import ADDRESS, World
from support.group_calls import committed
from support.ledger import Violation
from trionet import (
    CommitFailedError,
    FencedInstanceIdError,
    PartitionError,
    TrionetError,
    open_consumer,
)
from trionet.client.consumer._consumer import Consumer

GROUP = "own"
TOPICS = sorted({topic for topic, _ in SHARED})
STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")
# How long the group may take to handle everything when nothing goes wrong any more.
SETTLE_SECONDS = 300.0

Place = tuple[str, int]


class OwnGroup:
    """What its members have handled, and what they may say of it.

    Args:
        world: where it lives.

    Attributes:
        finished: the offsets that some member was done with.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.strategy = world.rng.choice(STRATEGIES)
        self.finished: dict[Place, set[int]] = {place: set() for place in SHARED}

    async def take_part(self, name: str) -> None:
        """Be one member after the other, until cancelled."""
        world = self._world
        while True:
            rng = world.rng
            settings = {
                "group.id": GROUP,
                "group.instance.id": rng.choice((None, name)),
                "partition.assignment.strategy": self.strategy,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": rng.choice((True, True, False)),
                "auto.commit.interval.ms": rng.choice((100, 5_000)),
                "session.timeout.ms": rng.choice((6_000, 45_000)),
                "heartbeat.interval.ms": 1_000,
                "max.poll.interval.ms": rng.choice((20_000, 300_000)),
                "max.poll.records": rng.choice((1, 500)),
            }
            settings = {key: value for key, value in settings.items() if value is not None}
            world.step(name, f"open a member, {settings}")
            lives = world.lives
            try:
                async with open_consumer(
                    ADDRESS, settings, topics=TOPICS, network=world.network
                ) as consumer:
                    await self._live(name, consumer)
            except Stop:
                world.note(f"{name}: stopped by its user")
            except FencedInstanceIdError as error:
                # It has no rival. But a broker that ends during a rebalance forgets the generation
                # (as Kafka's does), and with it the id that a static member was given in it.
                if world.lives == lives:
                    raise Violation(f"{name}: {error}") from error
                world.note(f"{name}: fenced by its former self")
            await world.pause()

    async def _live(self, name: str, consumer: Consumer) -> None:
        """Handle records for a while; those are finished after which another was requested."""
        world, rng = self._world, self._world.rng
        in_hand: list[tuple[Place, int]] = []
        for _ in range(rng.randint(5, 200)):
            self._finish(in_hand)
            with trio.move_on_after(rng.choice((0.0, 0.1, 2.0, 30.0))):
                try:
                    record = await anext(consumer)
                except (PartitionError, CommitFailedError) as error:
                    world.note(f"{name}: {type(error).__name__}: {error}")
                else:
                    in_hand = [((record.topic, record.partition), record.offset)]
            if not world.is_over:
                world.step(name, f"handle {in_hand}")
                await self._between_records(name, consumer, in_hand)
        if rng.random() < 0.3 and not world.is_over:
            raise Stop

    async def _between_records(
        self, name: str, consumer: Consumer, in_hand: list[tuple[Place, int]]
    ) -> None:
        """Do now and then what users do between two records: take a while, or commit."""
        rng = self._world.rng
        draw = rng.random()
        if draw < 0.05:
            await self._world.pause()
        elif draw < 0.1:
            # A commit of one's own covers the record in hand (as Kafka's commitSync does), whatever
            # becomes of the member afterwards, and even if its response never comes.
            self._finish(in_hand)
            with trio.move_on_after(rng.choice((0.01, 60.0))):
                try:
                    await consumer.commit()
                except TrionetError as error:
                    self._world.note(f"{name}: {type(error).__name__}: {error}")

    def _finish(self, in_hand: list[tuple[Place, int]]) -> None:
        for place, offset in in_hand:
            self.finished[place].add(offset)
        in_hand.clear()

    def missing(self, place: Place, below: float) -> list[int]:
        """Acknowledged records that nobody has handled; none after a power cut, that takes some."""
        partition = self._world.partitions[place]
        if partition.cuts:
            return []
        offsets = range(partition.may_start_at, partition.end)
        there = (each for each in offsets if each < below and each in partition.acknowledged)
        return [each for each in there if each not in self.finished[place]]

    async def audit(self) -> None:
        """Compare what is committed with what was handled, again and again."""
        world = self._world
        while not world.is_over:
            await world.pause()
            try:
                async with world.connect("bookkeeper") as client:
                    told = await committed(client, group=GROUP)
            except (OSError, EOFError, trio.BrokenResourceError, trio.ClosedResourceError):
                continue
            for place, offset in told.items():
                missing = self.missing(place, offset)
                if missing:
                    raise Violation(f"{place}: {offset} is committed, and {missing} not handled")

    async def settle(self) -> None:
        """Wait until everything is handled."""
        began = trio.current_time()
        while True:
            left = {place: self.missing(place, math.inf) for place in SHARED}
            if not any(left.values()):
                return
            if trio.current_time() - began > SETTLE_SECONDS:
                raise Violation(f"the group does not handle {left}")
            await trio.sleep(1.0)
