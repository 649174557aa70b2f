"""Topics are changed in any order, at the same time, and some changes are cancelled.

Meanwhile, nodes stop and start. Then every topic has exactly its own logs, and a restart, for which
no record may be missing, finds the same topics.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
import trio

from trionet import Broker, open_broker
from trionet.errors import ApiError

NAMES = ("a", "b", "a.b", "a_b")
NODES = (1, 2)
ROUNDS = 4
CHANGES_AT_ONCE = 12

Change = Callable[[], Awaitable[object]]


def change(broker: Broker, rng: random.Random) -> Change:
    """Draw a change of a topic, or of a node."""
    cluster, name = broker._cluster, rng.choice(NAMES)
    retention_ms = str(rng.randrange(1, 10**9))

    async def delete() -> None:
        topic = cluster.topics.get(name)
        if topic is not None:
            await pause(rng)  # as in a request that deletes others first
            await cluster.delete_topic(topic)

    changes: list[Change] = [
        partial(cluster.create_topic, name, partitions=rng.randrange(1, 6)),
        delete,
        partial(cluster.create_partitions, name, rng.randrange(1, 9)),
        partial(cluster.alter_topic, name, lambda old: {**old, "retention.ms": retention_ms}),
        partial(broker.stop, rng.choice(NODES)),
        partial(broker.start, rng.choice(NODES)),
        broker.elect_preferred_leaders,
    ]
    return rng.choices(changes, [6, 4, 3, 2, 1, 1, 1])[0]


async def pause(rng: random.Random) -> None:
    for _ in range(rng.randrange(6)):
        await trio.lowlevel.checkpoint()


async def make(change: Change, rng: random.Random) -> None:
    """Make a change, or cancel it after some time."""
    await pause(rng)
    with trio.CancelScope() as scope:
        if rng.random() < 0.4:
            scope.deadline = trio.current_time() + 0.01 * rng.random()
        try:
            await change()
        except ApiError:
            pass  # there is no such topic, or there is one already


def check(broker: Broker) -> None:
    cluster = broker._cluster
    expected = {
        (topic.name, number) for topic in cluster.topics for number in range(topic.partitions)
    }
    assert expected == set(cluster.folder.logs)
    for topic in cluster.topics:
        config = cluster.log_config(topic.configs)
        for number in range(topic.partitions):
            log = cluster.folder.logs[topic.name, number]
            leader = cluster.leadership[topic.name, number]
            assert (topic.id, config) == (log.topic_id, log.config)
            assert (leader.leader, leader.epoch) == (log.leader_id, log.leader_epoch)
            assert leader.leader in NODES


@pytest.mark.parametrize("seed", range(3))
async def test_every_topic_has_exactly_its_own_logs(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    settings = {"log.dirs": str(tmp_path), "log.missing.records.allowed": False}
    async with open_broker(settings, brokers=len(NODES)) as broker:
        for _ in range(ROUNDS):
            async with trio.open_nursery() as nursery:
                for _ in range(CHANGES_AT_ONCE):
                    nursery.start_soon(make, change(broker, rng), rng)
            for node in NODES:
                await broker.start(node)
            check(broker)
        topics = list(broker._cluster.topics)

    async with open_broker(settings, brokers=len(NODES)) as broker:
        assert topics == list(broker._cluster.topics)
        check(broker)
