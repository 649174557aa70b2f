"""Committed offsets never run ahead of what is finished, and a group loses nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from cancellations import consuming
from cancellations.consuming import RECORDS, make_records
from cancellations.scene import ADDRESS, PARTITIONS, Scene, UserError
from support.ledger import Violation
from trionet import Consumer, TopicPartition, open_consumer
from trionet.errors import CommitFailedError, RebalanceInProgressError

# How long the next member may wait for its first record: not until a session expires.
TAKE_OVER_SECONDS = 20.0
# How long a member waits for a record before it looks whether the others have all of them.
LOOK_SECONDS = 0.25
CALLBACK_SECONDS = 0.01
# How long a record is worked on where that may be cancelled, too.
HANDLING_SECONDS = 0.005


def settings_of(scene: Scene, *, commits: bool = True) -> dict[str, object]:
    rng = scene.rng
    return {
        **consuming.settings_of(scene),
        "group.id": scene.name,
        "enable.auto.commit": commits,
        "auto.commit.interval.ms": rng.choice((20, 5_000)),
        "heartbeat.interval.ms": rng.choice((50, 3_000)),
        "partition.assignment.strategy": rng.choice(("range", "cooperative-sticky")),
    }


class Group:
    """What the members of a group have finished.

    Args:
        scene: where.
        topic: that they read.
    """

    def __init__(self, scene: Scene, topic: str) -> None:
        self._scene = scene
        self._topic = topic
        self._finished: dict[int, set[int]] = {each: set() for each in range(PARTITIONS)}

    def finish(self, partition: int, offset: int) -> None:
        self._finished[partition].add(offset)

    @property
    def is_all(self) -> bool:
        return all(len(each) == RECORDS for each in self._finished.values())

    @property
    def committed(self) -> dict[int, int]:
        """Of each partition, as the broker has it; 0 for nothing."""
        offsets = self._scene.kit.group(self._scene.name).offsets
        return {each: offsets.get((self._topic, each), 0) for each in range(PARTITIONS)}

    def check(self) -> None:
        """At any moment: what is below a committed offset is finished."""
        for partition, committed in self.committed.items():
            missing = set(range(committed)) - self._finished[partition]
            if missing:
                raise Violation(f"{partition}: {committed} is committed, {missing} not finished")

    def check_end(self) -> None:
        """When every member has closed: all that is finished is committed."""
        self.check()
        for partition, committed in self.committed.items():
            if set(range(committed)) != self._finished[partition]:
                raise Violation(
                    f"{partition}: {committed} is committed, finished {self._finished[partition]}"
                )


class Member:
    """One member's life.

    Args:
        scene: where.
        group: that it is in.
    """

    def __init__(self, scene: Scene, group: Group) -> None:
        self._scene = scene
        self._group = group
        self.may_lose = False
        self._mine: set[TopicPartition] = set()
        self._handed: set[tuple[int, int]] = set()
        self._in_hand: tuple[int, int] | None = None

    async def assigned(self, partitions: list[TopicPartition]) -> None:
        await trio.sleep(CALLBACK_SECONDS)
        self._mine |= set(partitions)

    async def revoked(self, partitions: list[TopicPartition]) -> None:
        await trio.sleep(CALLBACK_SECONDS)
        self._mine -= set(partitions)

    async def lost(self, partitions: list[TopicPartition]) -> None:
        """Told by who leaves while the group is divided anew, and has kept partitions so far."""
        if not self.may_lose:
            raise Violation(f"{partitions} are lost, though nothing went wrong")
        await self.revoked(partitions)

    async def next(self, consumer: Consumer) -> None:
        """Ask for another record; the one before is finished."""
        self.finish()
        self._group.check()
        record = await anext(consumer)
        place = record.partition, record.offset
        if place in self._handed:
            raise Violation(f"{place} was handed out twice")
        if record.topic_partition not in self._mine:
            raise Violation(f"{place} was handed out before the callback was done")
        self._handed.add(place)
        self._in_hand = place

    def finish(self) -> None:
        """The record in hand is done with."""
        if self._in_hand is not None:
            self._group.finish(*self._in_hand)
            self._in_hand = None

    async def live(
        self, settings: dict[str, object], topic: str, use: Callable[[Consumer], Awaitable[None]]
    ) -> None:
        """Be a member while a user does something."""
        self.may_lose |= settings["partition.assignment.strategy"] == "cooperative-sticky"
        async with open_consumer(
            ADDRESS,
            settings,
            topics=topic,
            network=self._scene.network,
            on_assigned=self.assigned,
            on_revoked=self.revoked,
            on_lost=self.lost,
        ) as consumer:
            await use(consumer)  # what is in hand at the end of the block is not finished

    async def read(self, consumer: Consumer) -> None:
        """Read until everything is finished by somebody; calls may be cut."""
        while not self._group.is_all:
            with trio.move_on_after(LOOK_SECONDS), self._scene.cut.around():
                await self.next(consumer)


async def read_rest(scene: Scene, group: Group, topic: str, settings: dict[str, object]) -> None:
    """The next member takes over at once, and reads what is left."""
    began = trio.current_time()
    member = Member(scene, group)

    async def use(consumer: Consumer) -> None:
        while not group.is_all:
            with trio.move_on_after(LOOK_SECONDS):
                await member.next(consumer)
            if trio.current_time() - began > TAKE_OVER_SECONDS:
                raise Violation("the next member gets no records")

    await member.live(settings, topic, use)
    group.check_end()


async def records(scene: Scene) -> None:
    """A group of one, that commits by itself."""
    topic = await make_records(scene)
    group, settings = Group(scene, topic), settings_of(scene)
    member = Member(scene, group)
    await member.live(settings, topic, member.read)
    group.check_end()


async def two(scene: Scene) -> None:
    """One of two members, of whom one comes while the other reads."""
    topic = await make_records(scene)
    group, settings = Group(scene, topic), settings_of(scene)
    member, other = Member(scene, group), Member(scene, group)

    async def read(consumer: Consumer) -> None:
        while not group.is_all:
            with trio.move_on_after(LOOK_SECONDS):
                await other.next(consumer)
                await trio.sleep(0.05)

    first = scene.rng.random() < 0.5
    async with trio.open_nursery() as nursery:
        if first:
            nursery.start_soon(other.live, settings, topic, read)
            await trio.sleep(0.2)
        else:
            nursery.start_soon(start_later, other.live, settings, topic, read)
        await member.live(settings, topic, member.read)
    # What a member commits with its end while the group is divided anew, may be refused.
    group.check()


async def start_later(
    live: Callable[..., Awaitable[None]], settings: dict[str, object], topic: str, use: object
) -> None:
    await trio.sleep(0.2)
    await live(settings, topic, use)


async def commit(scene: Scene) -> None:
    """A group of one, that commits when it likes, and asks what is committed."""
    topic = await make_records(scene)
    group, settings = Group(scene, topic), settings_of(scene, commits=False)
    member = Member(scene, group)

    async def use(consumer: Consumer) -> None:
        names = consuming.places(topic)
        while not group.is_all:
            with trio.move_on_after(LOOK_SECONDS), scene.cut.around():
                await member.next(consumer)
            member.finish()
            with scene.cut.around():
                await consumer.commit()
                group.check_end()
            with scene.cut.around():
                found = await consumer.committed(names)
                told = {each.partition: at.offset if at else 0 for each, at in found.items()}
                if told != group.committed:
                    raise Violation(f"{told} is said to be committed, it is {group.committed}")
            group.check()
        await consumer.commit()

    await member.live(settings, topic, use)
    group.check_end()


async def unsubscribe(scene: Scene) -> None:
    """A member that leaves and comes again."""
    topic = await make_records(scene)
    group, settings = Group(scene, topic), settings_of(scene)
    member = Member(scene, group)

    async def use(consumer: Consumer) -> None:
        for _ in range(3):
            await member.next(consumer)
        member.may_lose = True  # who is cancelled while it unsubscribes has left
        # What is in hand is not finished; a member that comes again gets it again.
        with scene.cut.around():
            await consumer.unsubscribe()
        await consumer.unsubscribe()
        group.check()

    try:
        await member.live(settings, topic, use)
    finally:
        group.check()
    await read_rest(scene, group, topic, settings)


async def live(scene: Scene) -> None:
    """The whole life of a member, from opening it to the end of its block; the next goes on."""
    topic = await make_records(scene)
    group, settings = Group(scene, topic), settings_of(scene)
    member = Member(scene, group)
    count = scene.rng.choice((1, 5, 2 * RECORDS))

    async def use(consumer: Consumer) -> None:
        for _ in range(count):
            await member.next(consumer)
            await trio.sleep(HANDLING_SECONDS)

    with scene.cut.around():
        await member.live(settings, topic, use)
    group.check()
    await read_rest(scene, group, topic, settings)


async def fail(scene: Scene) -> None:
    """The same, and the user's own code fails."""
    topic = await make_records(scene)
    group, settings = Group(scene, topic), settings_of(scene)
    member = Member(scene, group)

    async def use(consumer: Consumer) -> None:
        for _ in range(3):
            await member.next(consumer)
            await trio.sleep(HANDLING_SECONDS)
        raise UserError

    try:
        with scene.cut.around():
            await member.live(settings, topic, use)
    except UserError:
        pass
    group.check()
    await read_rest(scene, group, topic, settings)


async def commit_in_rebalance(scene: Scene) -> None:
    """Both members commit what they have in hand, also while the group is divided anew."""
    topic = await make_records(scene)
    group, settings = Group(scene, topic), settings_of(scene, commits=False)
    member, other = Member(scene, group), Member(scene, group)

    async def read(consumer: Consumer) -> None:
        while not group.is_all:
            with trio.move_on_after(LOOK_SECONDS):
                await other.next(consumer)
            other.finish()
            await try_commit(consumer)
        await try_commit(consumer)

    async def use(consumer: Consumer) -> None:
        while not group.is_all:
            with trio.move_on_after(LOOK_SECONDS), scene.cut.around():
                await member.next(consumer)
            member.finish()
            with scene.cut.around():
                await try_commit(consumer)
            group.check()
        await try_commit(consumer)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(start_later, other.live, settings, topic, read)
        await member.live(settings, topic, use)
    group.check()


async def try_commit(consumer: Consumer) -> None:
    try:
        await consumer.commit()
    except (RebalanceInProgressError, CommitFailedError):
        pass  # the next record is asked for, then it is committed again
