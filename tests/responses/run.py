"""One program whose responses are changed, and what must hold: see the job's own text."""

from __future__ import annotations

import gc
import logging
import random
import time
import traceback
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import attrs
import trio

from fuzz.blind import at_most
from responses.programs import (
    ADDRESS,
    ALL,
    OTHER,
    PARTITIONS,
    RECORDS,
    SOON,
    TOPIC,
    Program,
    Scene,
    tried,
)
from responses.proxy import open_proxy
from responses.spark import spark
from support.complaints import Complaints
from trionet import open_broker
from trionet.testing import MemoryNetwork, NetworkFaults, control, run_virtual

PROGRAMS: dict[str, Program] = {each.__name__: each for each in (*ALL, spark)}
BROKER = "10.0.0.1:9092"
SETTINGS = {
    "listeners": f"PLAINTEXT://{BROKER}",
    "advertised.listeners": f"PLAINTEXT://{ADDRESS}",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "3600000",
}
#: Of the network: without any, time would stand still for a client whose requests all get a
#: response at once, and which asks again.
DELAYS = (0.001, 0.002)
#: One program in five has to authenticate, also again and again.
SECURED_SHARE = 0.2
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
AUTHENTICATING = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{JAAS} username="me" password="secret";',
}
#: These have settings of another kind.
UNSECURED = {"requesting", "spark"}
#: For how long, of the processor's time, one step of a task may hold the loop.
STEP_SECONDS_MAX = 0.05
#: By how much a program's memory may grow beyond what it needs with good responses.
GROWTH_BYTES_MAX = 24 << 20
#: A program with its broker takes a tenth of a second; virtual time stands still in a busy loop.
RUN_SECONDS_MAX = 10.0
#: In virtual seconds; no program takes half of it.
LIFE_SECONDS_MAX = 300.0
#: So many steps of tasks are made in a program that waits between its attempts.
STEPS_MAX = 100_000


@attrs.define
class Outcome:
    """What became of one program.

    Attributes:
        seed: that everything about it was drawn from.
        program: its name.
        changes: what was changed in its responses.
        finds: which rules it broke.
        steps: how many steps its tasks made.
    """

    seed: int
    program: str
    changes: list[str] = attrs.field(factory=list)
    finds: list[str] = attrs.field(factory=list)
    steps: int = 0

    @property
    def apis(self) -> Counter[str]:
        """How many responses of each API were changed."""
        return Counter(each.partition(" ")[0] for each in self.changes)


class Watch(trio.abc.Instrument):
    """Measures the steps of all tasks, by the processor's time."""

    def __init__(self) -> None:
        self.steps = 0
        self.longest = 0.0
        self.longest_task = ""
        self._began = 0.0

    def begin(self) -> None:
        """Leave out what this step has done so far."""
        self._began = time.thread_time()

    def before_task_step(self, _: trio.lowlevel.Task) -> None:
        self._began = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        took = time.thread_time() - self._began
        self.steps += 1
        if took > self.longest and "responses.proxy" not in task.name:
            self.longest, self.longest_task = took, task.name


def run(seed: int, kept: Collection[str] = ()) -> Outcome:
    """Run one program; what is measured and too much has to be so twice.

    Args:
        seed: decides about everything.
        kept: the names of fields that are not changed.
    """
    outcome = run_once(seed, kept)
    if outcome.finds:
        again = run_once(seed, kept)
        outcome.finds = again.finds
    return outcome


def run_once(seed: int, kept: Collection[str]) -> Outcome:
    name = list(PROGRAMS)[seed % len(PROGRAMS)]
    outcome, watch = Outcome(seed, name), Watch()
    grown = [0]
    try:
        with complaints(outcome), growth(grown), at_most(RUN_SECONDS_MAX):
            run_virtual(live, name, outcome, watch, kept, seed=seed)
    except Exception:  # boundary: whatever ends a program is what is searched for
        outcome.finds.append(traceback.format_exc())
    outcome.steps = watch.steps
    if watch.longest > STEP_SECONDS_MAX:
        outcome.finds.append(
            f"{watch.longest_task} held the loop for {watch.longest * 1000:.0f} ms"
        )
    if watch.steps > STEPS_MAX:
        outcome.finds.append(f"{watch.steps:,} steps")
    if grown[0] > GROWTH_BYTES_MAX:
        outcome.finds.append(f"the memory grew by {grown[0]:,} bytes")
    return outcome


async def live(
    network: MemoryNetwork, name: str, outcome: Outcome, watch: Watch, kept: Collection[str]
) -> None:
    """A broker, the host before it, and the program."""
    rng = random.Random(f"{name} {outcome.seed}")
    network.faults = NetworkFaults(delay_seconds=DELAYS)
    is_secured = name not in UNSECURED and rng.random() < SECURED_SHARE
    settings = {**SOON, **AUTHENTICATING} if is_secured else SOON
    async with open_broker(SETTINGS, network=network) as broker:
        kit = control(broker)
        for topic in (TOPIC, OTHER):
            await kit.create_topic(topic, PARTITIONS)
            for partition in range(PARTITIONS):
                for _ in range(2):
                    records = [{"partition": partition, "value": b"v"}] * (RECORDS // 2)
                    await kit.seed(topic, records)
        async with open_proxy(network, ADDRESS, BROKER, rng, kept, is_secured=is_secured) as proxy:
            outcome.changes = proxy.changes
            watch.begin()
            trio.lowlevel.add_instrument(watch)
            try:
                scene = Scene(network, rng, settings)
                with trio.fail_after(LIFE_SECONDS_MAX):
                    await tried(partial(PROGRAMS[name], scene), LIFE_SECONDS_MAX)
            finally:
                trio.lowlevel.remove_instrument(watch)


class Faults(Complaints):
    """Errors without a traceback are what a user is told, such as a wrong password."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            super().emit(record)


@contextmanager
def complaints(outcome: Outcome) -> Iterator[None]:
    """What is logged as a fault of our own is a find."""
    logger, handler = logging.getLogger("trionet"), Faults()
    before, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = before
        outcome.finds += [f"logged: {each}" for each in handler.found]


@contextmanager
def growth(grown: list[int]) -> Iterator[None]:
    """Gives by how many bytes the process grew in the block at most."""
    gc.disable()  # a collection is no step of a program's
    gc.freeze()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _resident("VmRSS")
    try:
        yield
    finally:
        grown[0] = _resident("VmHWM") - before
        gc.collect()
        gc.unfreeze()
        gc.enable()


def _resident(key: str) -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key))
