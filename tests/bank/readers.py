"""Readers of committed records: four of ours all the time, and confluent-kafka in the end."""

from __future__ import annotations

import importlib
import time
from collections import defaultdict
from contextlib import closing
from typing import Any

import trio

from bank.work import BANK, PARTITIONS, PATIENCE_SECONDS
from support.bank import Place
from support.ledger import Violation
from trionet import Consumer, TopicPartition, open_consumer

Records = dict[Place, dict[int, bytes]]
"""Values by their places and offsets."""

_LOOK_SECONDS = 0.2


class Reader:
    """A consumer with ``read_committed`` that reads everything of a topic.

    Args:
        servers: the bootstrap servers.
        topic: what it reads.

    Attributes:
        seen: the records.
    """

    def __init__(self, servers: str, topic: str = BANK) -> None:
        self.seen: Records = defaultdict(dict)
        self._servers = servers
        self._partitions = [TopicPartition(topic, each) for each in range(PARTITIONS)]
        self._ends: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        """Read until cancelled, or up to the ends that are set meanwhile."""
        settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        async with open_consumer(self._servers, settings) as consumer:
            consumer.assign(self._partitions)
            while not self._is_done(consumer):
                with trio.move_on_after(_LOOK_SECONDS):  # the end may be a marker
                    batch = await consumer.next_batch()
                    place = batch.topic, batch.partition
                    for offset, value in zip(batch.offsets, batch.values, strict=True):
                        self._see(place, offset, value or b"")

    def end(self, ends: dict[TopicPartition, int]) -> None:
        """Read up to these offsets, and no further."""
        self._ends = ends

    def lag(self) -> dict[TopicPartition, int]:
        """What is missing to the ends."""
        lags = {each: end - self._positions.get(each, 0) for each, end in self._ends.items()}
        return {each: lag for each, lag in lags.items() if lag > 0}

    def _is_done(self, consumer: Consumer) -> bool:
        for each in self._partitions:
            self._positions[each] = consumer.position(each) or 0
        return bool(self._ends) and not self.lag()

    def _see(self, place: Place, offset: int, value: bytes) -> None:
        seen = self.seen[place]
        if seen and offset <= next(reversed(seen)):
            raise Violation(f"{place}: {offset} was read after {next(reversed(seen))}")
        seen[offset] = value


def read_with_confluent(servers: str, topic: str) -> Records:
    """Everything committed of a topic; raises if it does not come to the end."""
    kafka: Any = importlib.import_module("confluent_kafka")
    seen: Records = defaultdict(dict)
    consumer = kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "auditors",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    with closing(consumer):
        consumer.assign([kafka.TopicPartition(topic, each, 0) for each in range(PARTITIONS)])
        left = set(range(PARTITIONS))
        until = time.monotonic() + PATIENCE_SECONDS
        while left:
            if time.monotonic() > until:
                raise Violation(f"confluent-kafka hangs in partitions {left} of {topic}")
            messages = consumer.consume(1000, _LOOK_SECONDS)  # it waits for all of them
            for each in messages:
                if each.error() is None:
                    seen[topic, each.partition()][each.offset()] = each.value()
                elif each.error().code() == kafka.KafkaError._PARTITION_EOF:
                    left.discard(each.partition())
    return seen
