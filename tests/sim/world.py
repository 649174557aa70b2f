"""One simulated world: a host with a broker that dies and comes back, and clients around it."""

from __future__ import annotations

import hashlib
import logging
import random
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from sim.disk import SimDisk
from sim.group_model import GroupModel
from sim.model import End, Partition
from support.client import Client
from support.ledger import Violation
from trionet import Broker, open_broker
from trionet.net.wire._close_reason import CloseReason
from trionet.testing import MemoryNetwork, NetworkEvent, control
from trionet.testing.faults._faults import Faults

BROKER_HOST = "10.0.0.1"
ADDRESS = f"{BROKER_HOST}:9092"
SETTINGS = {
    "listeners": f"PLAINTEXT://{ADDRESS}",
    "log.dirs": "/data",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "500",
    "group.min.session.timeout.ms": "1000",
    "log.flush.offset.checkpoint.interval.ms": "5000",
    "log.retention.check.interval.ms": "10000",
    "num.network.threads": "2",
    "num.io.threads": "3",
    "queued.max.requests": "4",
    "connections.max.idle.ms": "120000",
}
# Topics that are there from the beginning to the end: their settings, and whether what is
# acknowledged there survives a power cut.
TOPICS: dict[str, tuple[dict[str, object], bool]] = {
    "synced": ({"flush_messages": 1, "internal_segment_bytes": 2000}, True),
    "cached": ({"internal_segment_bytes": 3000}, False),
    "trimmed": ({"flush_messages": 1, "internal_segment_bytes": 1500}, True),
}
PARTITIONS = 2
# What nobody waits for longer than this, in virtual seconds.
PATIENCE_SECONDS = 45.0
TAIL_LINES = 4000
# Reasons that only a bug of ours can have.
OUR_FAULT = (CloseReason.ERROR, CloseReason.SECOND_SEND, CloseReason.HANDLER_FAILED)

LOST = (OSError, EOFError, trio.BrokenResourceError, trio.ClosedResourceError)
"""What says that a connection, or the broker, is gone."""


class Complaints(logging.Handler):
    """Collects what the broker logs of its own faults."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        if not self._world.is_dying and (record.exc_info or record.levelno >= logging.ERROR):
            self._world.found(f"the broker logged: {self.format(record)}")


class Patient(Client):
    """A client that does not wait for ever for what may have been lost."""

    async def receive(self) -> Any:
        """The response to the oldest request that has none yet."""
        try:
            with trio.fail_after(PATIENCE_SECONDS):
                return await super().receive()
        except trio.TooSlowError as error:
            raise EOFError("nobody waits for so long") from error


class World:
    """Everything of one run.

    Args:
        seed: of all that happens.
        steps: how much the clients do.
        network: where they meet.
        has_faults: its brokers have faults on demand.

    Attributes:
        faults: of the broker that is up; None while there is none, or without ``has_faults``.
        rng: for the clients' decisions.
        up: set while the broker may be connected to.
        has_ended: set when nothing of the broker runs any more.
        over: the clients do nothing new any more.
        is_ending: the broker does not come back.
        lives: how often the broker has come up.
    """

    def __init__(
        self, seed: int, steps: int, network: MemoryNetwork, *, has_faults: bool = False
    ) -> None:
        self.rng = random.Random(f"clients {seed}")
        self.network = network
        self.disk = SimDisk(seed)
        self.steps = 0
        self.up = trio.Event()
        self.over = trio.Event()
        self.is_ending = False
        self.is_dying = False
        self.crashes = 0
        self.lives = 0
        self.group = GroupModel()
        self.faults: Faults | None = None
        self.partitions = {
            (topic, number): Partition(f"{topic}-{number}", is_durable=is_durable)
            for topic, (_, is_durable) in TOPICS.items()
            for number in range(PARTITIONS)
        }
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._digest = hashlib.sha256()
        self._has_faults = has_faults
        self._steps_max = steps
        self._broker: Broker | None = None
        self._scope = trio.CancelScope()
        self._how_it_ended = End.STOP
        self.has_ended = trio.Event()
        self._stop = trio.Event()
        self._violation: str | None = None
        self._is_frozen = False

    @property
    def is_over(self) -> bool:
        return self.over.is_set()

    # What happens.

    def watch(self, event: NetworkEvent) -> None:
        """Everything on the network is part of the trace."""
        line = f"{event.at:.6f} {event.what} {event.local} {event.remote} {len(event.data)} bytes"
        if not self._is_frozen:
            self.tail.append(line)
        self._digest.update(line.encode() + event.data)

    async def guard(self, async_fn: Callable[..., Awaitable[None]], *args: object) -> None:
        """Run a part of the world; what ends it is the end of the trace, too."""
        try:
            await async_fn(*args)
        except Exception:  # boundary: the end of the trace, and raised again
            self._is_frozen = True
            raise

    def note(self, text: str) -> None:
        line = f"{trio.current_time():.6f} {text}"
        if not self._is_frozen:
            self.tail.append(line)
        self._digest.update(line.encode())

    @property
    def digest(self) -> str:
        """The same for the same course of events, down to the last byte."""
        return self._digest.hexdigest()

    def step(self, who: str, what: str) -> None:
        """A client does something."""
        self.steps += 1
        self.note(f"{who}: {what}")
        self.check()
        if self.steps >= self._steps_max:
            self.over.set()

    def found(self, complaint: str) -> None:
        """Something is wrong where nobody could raise it."""
        self._violation = self._violation or complaint

    def check(self) -> None:
        """What must hold at every moment."""
        if self._violation is not None:
            raise Violation(self._violation)
        if self._broker is None:
            return
        for processor in self._broker._server.processors:
            waiting = 0
            for channel in processor.selector.channels:
                connection = channel.attachment
                if connection is not None and connection.request is not None:
                    waiting += 1
                    if not channel.muting.is_muted:
                        raise Violation(f"{channel.id} is read while a request of it is out")
            if processor.counts.in_flight < waiting:
                out = processor.counts.in_flight
                raise Violation(f"{waiting} channels wait, {out} requests are out")
            for reason in OUR_FAULT:
                if processor.counts.closed[reason]:
                    raise Violation(f"a connection was closed: {reason.name}")

    # The broker.

    async def run_broker(self) -> None:
        """Run one broker after the other, until cancelled."""
        while True:
            self._stop, self.has_ended = trio.Event(), trio.Event()
            try:
                with trio.CancelScope() as self._scope:
                    async with open_broker(
                        SETTINGS, network=self.network, disk=self.disk
                    ) as broker:
                        self._begin(broker)
                        await self._stop.wait()
                        self.up = trio.Event()
                        self._broker = self.faults = None
            except Exception:  # boundary: a broker that was killed
                if not self.is_dying:
                    raise
            self.is_dying = False
            self.has_ended.set()
            self.note("the broker has ended")
            if self.is_ending:
                return
            await trio.sleep(self.rng.choice([0.0, 0.5, 5.0]))

    def _begin(self, broker: Broker) -> None:
        self.note("the broker is up")
        self.lives += 1
        self._broker = broker
        if self._has_faults:
            self.faults = control(broker).faults
        logs = broker._cluster.folder.logs
        for key, partition in self.partitions.items():
            log = logs.get(key)
            if log is not None:
                partition.reopened(self._how_it_ended, log.start_offset, log.end_offset)
            elif partition.acknowledged:
                raise Violation(f"{partition.name} is gone")
        self.up.set()

    def crash(self, how: End) -> None:
        """End the broker now, or begin to stop it; a crash leaves it no time for anything."""
        if not self.up.is_set():
            return
        self.note(f"crash: {how.name}")
        self._how_it_ended = how
        if how is End.STOP:
            self._stop.set()
            return
        self.crashes += 1
        self.is_dying = True
        self.up = trio.Event()
        self._broker = self.faults = None
        if how is End.KILL:
            self.disk.kill()
        else:
            self.disk.cut_power()
        self.network.kill_host(BROKER_HOST, is_silent=how is End.POWER)
        self._scope.cancel(reason="the broker is killed")

    # The clients.

    @asynccontextmanager
    async def connect(self, who: str) -> AsyncIterator[Client]:
        """A connection of a client, which has a host of its own, to the broker once it is up."""
        await self.up.wait()
        host = f"10.0.1.{int(hashlib.sha256(who.encode()).hexdigest()[:2], 16)}"
        stream = await self.network.open_stream(ADDRESS, local_host=host)
        try:
            yield Patient(stream, who)
        finally:
            stream.socket.close()

    async def pause(self) -> None:
        await trio.sleep(self.rng.choice([0.0, 0.01, 0.1, 1.0, 5.0, 30.0]))
