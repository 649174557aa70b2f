"""Clusters that can be disturbed: our own broker with three nodes or killed, and Apache Kafka."""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import trio

import trionet
from support.kafka_cluster import NODES, kafka_cluster
from support.kafka_node import KafkaFolder, kafka_folder, memory_folder
from support.ports import free_ports
from support.processes import stop
from support.trionet_process import trionet_broker_process
from trionet import TopicPartition
from trionet.errors import ApiError, TrionetError
from trionet.protocol import error_codes

Disturbance = Callable[[random.Random, str, int], Awaitable[str | None]]
"""Does it, with what is drawn, the topic, and the number of its partitions.

Says what came of it, if that is not what its name says.
"""

_DOWN_SECONDS: Final = (0.0, 1.0)
_OUR_SETTINGS: Final = {"group.initial.rebalance.delay.ms": "0"}
_STOP_SECONDS: Final = 60.0
_JOIN_SECONDS: Final = 60.0
_LOOK_AGAIN_SECONDS: Final = 0.1


@attrs.frozen
class Rig:
    """A running cluster.

    Attributes:
        bootstrap_servers: where clients begin.
        replicas: how many copies a partition has.
        disturbances: what can be done to it, by name; each is whole again when it returns.
    """

    bootstrap_servers: str
    replicas: int
    disturbances: Mapping[str, Disturbance]


@asynccontextmanager
async def _trionet() -> AsyncIterator[Rig]:
    """Three nodes of our own in this process."""
    async with trionet.open_broker(brokers=3) as broker:

        async def move(rng: random.Random, topic: str, partitions: int) -> None:
            partition = rng.randrange(partitions)
            await broker.move_leader(topic, partition, rng.choice(broker.running_nodes))

        async def restart(rng: random.Random, _: str, __: int) -> None:
            node = rng.choice(broker.node_ids)
            await broker.stop(node)
            await trio.sleep(rng.uniform(*_DOWN_SECONDS))
            await broker.start(node)

        async def roll(rng: random.Random, topic: str, partitions: int) -> None:
            for node in broker.node_ids:
                await broker.stop(node)
                await broker.start(node)
            await broker.elect_preferred_leaders()

        async def move_coordinator(rng: random.Random, topic: str, _: int) -> None:
            await broker.move_coordinator(topic, rng.choice(broker.running_nodes))

        actions = {
            "leader moves": move,
            "coordinator moves": move_coordinator,
            "restart": restart,
            "rolling restart": roll,
        }
        yield Rig(broker.bootstrap_servers, 3, actions)


@asynccontextmanager
async def _process() -> AsyncIterator[Rig]:
    """Our own broker in a process, with its data on disk."""
    with tempfile.TemporaryDirectory(prefix="trionet-ordeal-", dir=memory_folder()) as name:
        [port] = free_ports(1)
        stack = contextlib.ExitStack()

        def start() -> None:
            data = Path(name) / "data"
            _, started = stack.enter_context(
                trionet_broker_process(data, port=port, settings=_OUR_SETTINGS)
            )
            running.append(started)

        def kill() -> None:
            running.pop().kill()
            stack.close()

        def end() -> None:
            stop(running.pop(), _STOP_SECONDS)
            stack.close()

        running: list = []  # type: ignore[type-arg]
        with stack:
            await trio.to_thread.run_sync(start)
            yield Rig(f"127.0.0.1:{port}", 1, _ends(start, end, kill))


@asynccontextmanager
async def _kafka() -> AsyncIterator[Rig]:
    """One node of Apache Kafka."""
    with kafka_folder() as folder:
        node = _KafkaNode(folder)
        with node.stack:
            await trio.to_thread.run_sync(node.start)
            yield Rig(folder.bootstrap_servers, 1, _ends(node.start, node.stop, node.kill))


class _KafkaNode:
    """A broker in a folder that is started again and again."""

    def __init__(self, folder: KafkaFolder) -> None:
        self.stack = contextlib.ExitStack()
        self._folder = folder

    def start(self) -> None:
        self._process = self.stack.enter_context(self._folder.broker())

    def stop(self) -> None:
        stop(self._process, _STOP_SECONDS)
        self.stack.close()

    def kill(self) -> None:
        self._process.kill()
        self.stack.close()


def _error_name(error: TrionetError) -> str:
    """As Kafka calls it."""
    return error_codes.name_of(error.error_code) if isinstance(error, ApiError) else str(error)


def _ends(
    start: Callable[[], None], end: Callable[[], None], kill: Callable[[], None]
) -> dict[str, Disturbance]:
    """What can be done to a single broker."""

    async def restart(rng: random.Random, _: str, __: int) -> None:
        await _again(end, start, rng)

    async def die(rng: random.Random, _: str, __: int) -> None:
        await _again(kill, start, rng)

    return {"restart": restart, "SIGKILL": die}


async def _again(
    end: Callable[[], object], start: Callable[[], object], rng: random.Random
) -> None:
    """End a broker and start it, even if cancelled, as the next run needs it; both take seconds."""
    with trio.CancelScope(shield=True):
        await trio.to_thread.run_sync(end)
        await trio.sleep(rng.uniform(*_DOWN_SECONDS))
        await trio.to_thread.run_sync(start)


async def _until_there_are(nodes: int, bootstrap_servers: str) -> None:
    """A node of Apache Kafka responses a little before it may lead, and counts, again."""
    async with trionet.open_admin(bootstrap_servers) as admin:
        with trio.fail_after(_JOIN_SECONDS):
            while True:
                if len((await admin.describe_cluster()).brokers) == nodes:
                    return
                await trio.sleep(_LOOK_AGAIN_SECONDS)


@asynccontextmanager
async def _kafka3() -> AsyncIterator[Rig]:
    """Three nodes of Apache Kafka."""
    with kafka_cluster() as cluster:
        node_ids = cluster.node_ids

        async def again(rng: random.Random, node_id: int, end: Callable[[int], None]) -> None:
            await _again(partial(end, node_id), partial(cluster.start, node_id), rng)
            await _until_there_are(NODES, cluster.bootstrap_servers)

        async def restart(rng: random.Random, _: str, __: int) -> None:
            await again(rng, rng.choice(node_ids), cluster.stop)

        async def die(rng: random.Random, _: str, __: int) -> None:
            await again(rng, rng.choice(node_ids), cluster.kill)

        async def roll(rng: random.Random, _: str, __: int) -> None:
            for node_id in node_ids:
                await again(rng, node_id, cluster.stop)

        async def move(rng: random.Random, topic: str, partitions: int) -> str | None:
            place = TopicPartition(topic, rng.randrange(partitions))
            async with trionet.open_admin(cluster.bootstrap_servers) as admin:
                described = (await admin.describe_topics([topic])).checked()[topic]
                now = described.partitions[place.partition]
                first = rng.choice([each for each in now.replicas if each != now.leader])
                replicas = [first, *(each for each in now.replicas if each != first)]
                (await admin.alter_partition_reassignments({place: replicas})).checked()
                refused = (await admin.elect_leaders([place])).errors.get(place)
            # A wish: who is to lead may be behind after its return.
            return f"leader stays ({_error_name(refused)})" if refused else None

        # Leaders move often, since that takes no time; a node is missed for seconds.
        actions = {
            "leader moves": move,
            "another leader moves": move,
            "restart": restart,
            "SIGKILL": die,
            "rolling restart": roll,
        }
        yield Rig(cluster.bootstrap_servers, NODES, actions)


RIGS: Final[Mapping[str, Callable[[], AbstractAsyncContextManager[Rig]]]] = {
    "trionet": _trionet,
    "process": _process,
    "kafka": _kafka,
    "kafka3": _kafka3,
}
