"""Writes records all the time, and knows where each partition ends."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from churn.run import Outcome

_TURN_SECONDS = 0.05
_FLUSH_SECONDS_MAX = 30.0


class Producing:
    """An idempotent producer (librdkafka's) for a topic of its own."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        kafka = importlib.import_module("confluent_kafka")
        self._bootstrap = bootstrap
        self._topic = topic
        self._partitions = partitions
        self._is_over = False
        self._ends = dict.fromkeys(range(partitions), 0)
        self._failed: list[str] = []
        self._producer = kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 20,
                "enable.metrics.push": False,
                "log_level": 0,
            }
        )

    async def create(self) -> None:
        """Make the topic."""
        admin_module = importlib.import_module("confluent_kafka.admin")
        admin = admin_module.AdminClient({"bootstrap.servers": self._bootstrap})
        topic = admin_module.NewTopic(self._topic, self._partitions, 1)
        [future] = admin.create_topics([topic]).values()
        await trio.to_thread.run_sync(future.result)

    async def run(self, records_per_second: int, outcome: Outcome) -> None:
        """Write until :meth:`finish`."""
        number = 0
        while not self._is_over:
            for _ in range(int(records_per_second * _TURN_SECONDS)):
                self._producer.produce(
                    self._topic,
                    b"%d" % number,
                    partition=number % self._partitions,
                    on_delivery=self._delivered,
                )
                number += 1
            outcome.written = number
            self._producer.poll(0)
            await trio.sleep(_TURN_SECONDS)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed.append(str(error))
        else:
            partition = message.partition()
            self._ends[partition] = max(self._ends[partition], message.offset() + 1)

    async def finish(self) -> dict[int, int]:
        """No more; where each partition with records ends. Raises if a record was not written."""
        self._is_over = True
        left = await trio.to_thread.run_sync(self._producer.flush, _FLUSH_SECONDS_MAX)
        if left or self._failed:
            raise RuntimeError(f"{left} records were not written in time; {self._failed[:3]}")
        return {partition: end for partition, end in self._ends.items() if end}
