"""One program after the other, cancelled at one await point after the other."""

from __future__ import annotations

import random
import time

import attrs
import trio

from cancellations import administering, consuming, grouping, producing, transacting
from cancellations.cut import Cut, Lag
from cancellations.scene import ADDRESS, BROKER_HOST, Program, Scene
from support.complaints import no_faults_logged
from support.ledger import Violation
from support.protocol_level import finalize
from trionet import open_admin, open_broker
from trionet.testing import MemoryNetwork, NetworkFaults, control, run_virtual

PROGRAMS: dict[str, Program] = {
    f"{module.__name__.rpartition('.')[2]}.{name}": getattr(module, name)
    for module, names in (
        (producing, "send enqueue flush send_batch wait_for_room live fail"),
        (consuming, "records batches wait_for_records ask live"),
        (grouping, "records two commit commit_in_rebalance unsubscribe live fail"),
        (administering, "ask change live request"),
        (producing, "first_batches"),
        (transacting, "block calls abort fail two_tasks live fence"),
        (transacting, "send_offsets commit_in_rebalance"),
    )
    for name in names.split()
}

SETTINGS = {
    "listeners": f"PLAINTEXT://{ADDRESS}",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "3600000",
}
# No schedule takes longer, in virtual seconds: a session of 45 s does not expire meanwhile.
SCHEDULE_SECONDS_MAX = 40.0
# How long the broker may take to notice that a client is gone.
SETTLE_SECONDS = 0.2
# So many schedules share a broker.
SCHEDULES_PER_BROKER = 100
DELAYS = ((0.0, 0.0), (0.0, 0.002), (0.001, 0.03))
# So many seeds have the older protocol of transactions, with requests of its own (KIP-98).
TV1_SHARE = 0.3
# Every other seed of a program cancels a little later, when the wait may be over already.
LAGS = (Lag(1), Lag(2), Lag(3), Lag(5), Lag(0, 0.001), Lag(0, 0.01), Lag(3, 0.1))


@attrs.frozen
class Outcome:
    """What came of one program.

    Attributes:
        seed: that its settings were drawn from.
        program: its name.
        schedules: how often it was cancelled.
        virtual_seconds: how long that took by its own clock.
        real_seconds: how long it took.
        violation: the rule that was broken; empty for none.
    """

    seed: int
    program: str
    schedules: int
    virtual_seconds: float
    real_seconds: float
    violation: str = ""


@attrs.define
class Progress:
    """How far a program is: the number of the await point, and the schedules so far."""

    at: int = 0
    made: int = 0
    virtual_seconds: float = 0.0


def program_of(seed: int) -> str:
    """The name of the program that a seed stands for."""
    return list(PROGRAMS)[seed % len(PROGRAMS)]


def run(seed: int, *, schedules_max: int | None = None, first: int = 1) -> Outcome:
    """Cancel one program at each of its await points.

    Args:
        seed: chooses the program and everything about it.
        schedules_max: stop after so many.
        first: the await point to begin with.
    """
    name = program_of(seed)
    progress = Progress(first - 1)
    began = time.perf_counter()
    violation = ""
    try:
        is_over = False
        with no_faults_logged():
            while not is_over:
                left = None if schedules_max is None else schedules_max - progress.made
                is_over = run_virtual(live, seed, name, progress, left, seed=seed)
    except Exception as error:  # boundary: one program, whatever ended it
        violation = f"{name}, await {progress.at}: {described(error)}"
    seconds = time.perf_counter() - began
    return Outcome(seed, name, progress.made, progress.virtual_seconds, seconds, violation)


def described(error: BaseException) -> str:
    """What is in a group of errors."""
    if isinstance(error, BaseExceptionGroup):
        return "a group of " + "; ".join(map(described, error.exceptions))
    return str(error) if isinstance(error, Violation) else f"{type(error).__name__}: {error}"


async def live(
    network: MemoryNetwork, seed: int, name: str, progress: Progress, left: int | None
) -> bool:
    """Some schedules on one broker; whether there are no more of the program."""
    network.faults = NetworkFaults(
        delay_seconds=random.Random(f"delays {seed}").choice(DELAYS),
        short_share=random.Random(f"short {seed}").choice((0.0, 0.0, 0.2)),
    )
    async with open_broker(SETTINGS, network=network) as broker:
        if random.Random(f"protocol {seed}").random() < TV1_SHARE:
            async with open_admin(ADDRESS, network=network) as admin:
                await finalize(admin, 1)
        kit = control(broker)
        for _ in range(SCHEDULES_PER_BROKER if left is None else min(left, SCHEDULES_PER_BROKER)):
            progress.at += 1
            began = trio.current_time()
            cut = Cut(progress.at, lag_of(seed, progress.at))
            # The same of each schedule: what it is cancelled at next must be one step later.
            rng = random.Random(f"user {seed}")
            scene = Scene(f"{name}-{progress.at}", kit, network, rng, cut)
            await run_schedule(PROGRAMS[name], scene)
            progress.virtual_seconds += trio.current_time() - began
            if not cut.is_made:
                return True
            progress.made += 1
    return left is not None and left <= SCHEDULES_PER_BROKER


def lag_of(seed: int, at: int) -> Lag:
    if seed // len(PROGRAMS) % 2 == 0:
        return Lag()
    return random.Random(f"lag {seed} {at}").choice(LAGS)


async def run_schedule(program: Program, scene: Scene) -> None:
    """One schedule, and what must hold for all."""
    await trio.testing.wait_all_tasks_blocked()
    tasks = trio.lowlevel.current_statistics().tasks_living
    began = trio.current_time()
    trio.lowlevel.add_instrument(scene.cut)
    try:
        with trio.fail_after(SCHEDULE_SECONDS_MAX):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(scene.cut.come_later)
                await program(scene)
                nursery.cancel_scope.cancel(reason="the program is over")
    except trio.TooSlowError as error:
        raise Violation("it does not come to its end") from error
    finally:
        trio.lowlevel.remove_instrument(scene.cut)
    if trio.current_time() - began > SCHEDULE_SECONDS_MAX:
        raise Violation("its end takes too long")
    left = [each for each in scene.network.open_sockets if each.host != BROKER_HOST]
    if left:
        raise Violation(f"sockets are left: {left}")
    await trio.sleep(SETTLE_SECONDS)  # the broker hears of the end of each connection
    if trio.lowlevel.current_statistics().tasks_living != tasks:
        raise Violation("tasks are left")
