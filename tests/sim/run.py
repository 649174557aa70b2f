"""One run: build the world, let it live, bring it to rest, and look at what is left."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import trio

from sim import bank
from sim.admins import Scratch, delete_records, make_topics
from sim.chaos import break_rules, disturb, end_faults
from sim.consumers import fetch_in_session, fetch_singly, read_whole
from sim.members import SHARED, Member
from sim.model import End
from sim.outcome import Outcome, violation_in
from sim.own_consumers import read
from sim.own_members import OwnGroup
from sim.own_producers import produce
from sim.producers import send_again, send_once
from sim.world import Complaints, World
from support.bank import Books
from support.ledger import Violation
from trionet.testing import MemoryNetwork, NetworkEvent, run_virtual

MEMBERS = 3
# How long a group may take until it is whole again when nothing goes wrong any more.
SETTLE_SECONDS = 120.0
# Longer than this, in virtual time, no run takes: what goes on then would go on for ever.
RUN_SECONDS_MAX = 100_000.0


def run(seed: int, steps: int, *, own: bool = False) -> Outcome:
    """Run one world to its end, or to the first violation.

    Args:
        seed: what it is made of.
        steps: what the clients do in it.
        own: its producers and consumers are those of :mod:`trionet.client`.
    """
    return run_world(seed, steps, live_with_own_clients if own else live, has_faults=own)


def run_bank(seed: int, steps: int) -> Outcome:
    """Run one world with a bank; see :mod:`sim.bank`."""
    return run_world(seed, steps, live_with_bank)


def run_world(
    seed: int,
    steps: int,
    live_in: Callable[[World], Awaitable[None]],
    *,
    has_faults: bool = False,
) -> Outcome:
    """Run one world to its end, or to the first violation.

    Args:
        seed: what it is made of.
        steps: what the clients do in it.
        live_in: all that happens in it.
        has_faults: its brokers have faults on demand.
    """
    worlds: list[World] = []
    ended_at = 0.0
    violation = ""

    def watch(event: NetworkEvent) -> None:
        if worlds:
            worlds[0].watch(event)

    async def main(network: MemoryNetwork) -> None:
        nonlocal ended_at
        world = World(seed, steps, network, has_faults=has_faults)
        worlds.append(world)
        try:
            with complaints_to(world), trio.fail_after(RUN_SECONDS_MAX):
                await live_in(world)
        finally:
            ended_at = trio.current_time()

    began, cpu_began = time.perf_counter(), time.process_time()
    try:
        run_virtual(main, seed=seed, trace=watch)
    except BaseException as error:  # boundary: one run, whatever ended it
        violation = violation_in(error)
        if not violation:
            raise
    [world] = worlds
    world.disk.close()
    return Outcome(
        seed,
        world.steps,
        world.crashes,
        ended_at,
        time.perf_counter() - began,
        time.process_time() - cpu_began,
        world.digest,
        violation,
        tuple(world.tail) if violation else (),
    )


@contextmanager
def complaints_to(world: World) -> Iterator[None]:
    """Hear what the broker logs of its own faults, and let nobody else."""
    logger = logging.getLogger("trionet")
    handler = Complaints(world)
    before = logger.propagate, logger.level
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate, logger.level = before


async def live(world: World) -> None:
    """From the first topic to the last look."""
    async with trio.open_nursery() as brokers:
        brokers.start_soon(world.guard, world.run_broker)
        await make_topics(world)
        members = [Member(world, f"member-{number}") for number in range(MEMBERS)]
        async with trio.open_nursery() as lasting:
            for member in members:
                lasting.start_soon(world.guard, member.run)
            async with trio.open_nursery() as clients:
                for number in range(2):
                    clients.start_soon(world.guard, send_once, world, f"once{number}")
                    clients.start_soon(world.guard, send_again, world, f"again{number}")
                    clients.start_soon(world.guard, Scratch(world, f"scratch{number}").run)
                clients.start_soon(world.guard, fetch_singly, world, "reader")
                clients.start_soon(world.guard, fetch_in_session, world, "follower")
                clients.start_soon(world.guard, delete_records, world)
                clients.start_soon(world.guard, break_rules, world)
                clients.start_soon(world.guard, disturb, world)
                await world.over.wait()
                end_faults(world)
            end_faults(world)  # the last of them may have come in between
            await world.guard(settle, world, members)
            lasting.cancel_scope.cancel()
        await world.guard(look_at_everything, world)
        await world.guard(end, world)


async def live_with_own_clients(world: World) -> None:
    """As :func:`live`, with producers and consumers of our own client."""
    async with trio.open_nursery() as brokers:
        brokers.start_soon(world.guard, world.run_broker)
        await make_topics(world)
        group = OwnGroup(world)
        async with trio.open_nursery() as lasting:
            for number in range(MEMBERS):
                lasting.start_soon(world.guard, group.take_part, f"member-{number}")
            async with trio.open_nursery() as clients:
                for number in range(2):
                    clients.start_soon(world.guard, produce, world, f"own{number}")
                    clients.start_soon(world.guard, read, world, f"reader{number}")
                clients.start_soon(world.guard, group.audit)
                clients.start_soon(world.guard, delete_records, world)
                clients.start_soon(world.guard, disturb, world)
                await world.over.wait()
                end_faults(world)
            end_faults(world)  # the last of them may have come in between
            await world.guard(group.settle)
            lasting.cancel_scope.cancel()
        await world.guard(look_at_everything, world)
        await world.guard(end, world)


async def live_with_bank(world: World) -> None:
    """As :func:`live`, with producers and readers of transactions."""
    async with trio.open_nursery() as brokers:
        brokers.start_soon(world.guard, world.run_broker)
        await bank.open_bank(world)
        books = Books()
        async with trio.open_nursery() as nursery:
            for each in bank.people(world, books):
                nursery.start_soon(world.guard, each)
            nursery.start_soon(world.guard, disturb, world)
            await world.over.wait()
            end_faults(world)
        end_faults(world)
        await world.guard(bank.settle, world, books)
        for how in (End.STOP, End.KILL):
            world.is_ending = how is End.KILL
            world.crash(how)
            if not world.is_ending:
                await world.has_ended.wait()
                await world.up.wait()
                await world.guard(bank.settle, world, books)
        await world.has_ended.wait()
        world.check()


async def settle(world: World, members: list[Member]) -> None:
    """Without faults the group converges: one generation, and each partition has its owner."""
    began = trio.current_time()
    while True:
        await trio.sleep(1.0)
        world.check()
        generations = {member.generation for member in members}
        assigned = [place for member in members for place in member.assigned]
        if generations == {world.group.generation} and sorted(assigned) == sorted(SHARED):
            return
        if trio.current_time() - began > SETTLE_SECONDS:
            raise Violation(f"the group does not converge: {generations}, {assigned}")


async def look_at_everything(world: World) -> None:
    async with world.connect("auditor") as client:
        for place, partition in world.partitions.items():
            await read_whole(client, place, partition)


async def end(world: World) -> None:
    """Stop the broker, open its folder once more, and see that nothing is left."""
    for how in (End.STOP, End.KILL):
        world.is_ending = how is End.KILL
        world.crash(how)
        if not world.is_ending:
            await world.has_ended.wait()
            await world.up.wait()
            await look_at_everything(world)
    await world.has_ended.wait()
    left = world.network.open_sockets, world.network.listening
    if any(left):
        raise Violation(f"sockets are left: {left}")
    world.check()
