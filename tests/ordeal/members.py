"""Members of a group that work, leave and come again, until they are cancelled."""

from __future__ import annotations

import random
from typing import Final

import trio

import trionet
from ordeal.ledger import Ledger
from trionet import Consumer, TopicPartition
from trionet.errors import CommitFailedError, RebalanceInProgressError

MEMBERS: Final = 2
_STAY_SECONDS: Final = (1.0, 8.0)
#: Of the whole group, in one run: both of Kafka's protocols, and its default.
_ASSIGNORS: Final = ("range", "cooperative-sticky", "range,cooperative-sticky")
#: A run lasts for seconds: rebalances are noticed at once, and who vanished is not awaited long.
_KEYS: Final = {"heartbeat.interval.ms": "300", "session.timeout.ms": "6000"}


class Group:
    """The group of one run; its name is that of its topic.

    Args:
        bootstrap_servers: of the cluster.
        topic: what it reads.
        ledger: is told of everything.
    """

    def __init__(self, bootstrap_servers: str, topic: str, ledger: Ledger) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._ledger = ledger

    async def run(self, seed: int) -> None:
        """Never returns."""
        drawn = random.Random(f"{seed} group")
        assignors = drawn.choice(_ASSIGNORS)
        self._ledger.reads_committed = drawn.random() < 0.5
        isolation = "read_committed" if self._ledger.reads_committed else "read_uncommitted"
        async with trio.open_nursery() as nursery:
            for number in range(MEMBERS):
                rng = random.Random(f"{seed} member {number}")
                is_static = rng.random() < 0.5
                keys = {
                    **_KEYS,
                    "partition.assignment.strategy": assignors,
                    "isolation.level": isolation,
                }
                if is_static:
                    keys["group.instance.id"] = f"member-{number}"
                nursery.start_soon(self._be_member, rng, keys)

    async def _be_member(self, rng: random.Random, keys: dict[str, str]) -> None:
        while True:
            stays = trio.move_on_after(rng.uniform(*_STAY_SECONDS))
            commits = rng.random() < 0.5
            async with trionet.open_consumer(
                self._bootstrap_servers,
                {
                    **keys,
                    "group.id": self._topic,
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": not commits,
                    "auto.commit.interval.ms": rng.choice((100, 1000)),
                },
                topics=[self._topic],
                on_assigned=self._assigned,
                on_lost=self._lost,
            ) as consumer:
                self._ledger.counts["members"] += 1
                count = 0
                with stays:
                    async for record in consumer:
                        self._ledger.process((record.partition, record.offset), record.value or b"")
                        count += 1
                        if commits and count % 100 == 0:
                            await self._commit(consumer)

    async def _commit(self, consumer: Consumer) -> None:
        try:
            await consumer.commit()
        except (RebalanceInProgressError, CommitFailedError):
            # Its partitions are divided anew: what is not committed comes again, to whomever.
            self._ledger.counts["commits refused"] += 1

    def _assigned(self, _: list[TopicPartition]) -> None:
        self._ledger.counts["rebalances"] += 1

    def _lost(self, _: list[TopicPartition]) -> None:
        self._ledger.counts["times lost"] += 1
