"""A stream while topics come and go, in Spark (the connector: KafkaDontFailOnDataLossSuite)."""

from __future__ import annotations

import time
from random import Random

import pytest
from pyspark.sql import SparkSession

from spark.brokers import add_partitions
from spark.streams import Run, stream
from trionet.testing._threaded import ThreadedBroker

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(300)]

CHURN_SECONDS = 20.0
NAMES = 5


class Topics:
    """Topics of a few names that come, grow and go, and what was written to which."""

    def __init__(self, broker: ThreadedBroker, prefix: str) -> None:
        self._broker = broker
        self._names = [f"{prefix}-{number}" for number in range(NAMES)]
        self._partitions: dict[str, int] = {}
        self._chance = Random(11)
        self.count = 0
        self.changes = 0

    def come_or_go(self) -> None:
        name = self._chance.choice(self._names)
        self.changes += 1
        if self._partitions.pop(name, 0):
            self._broker.delete_topic(name)
        else:
            self._partitions[name] = self._chance.randint(1, 2)
            self._broker.create_topic(name, self._partitions[name])

    def grow(self) -> None:
        if self._partitions:
            name = self._chance.choice(sorted(self._partitions))
            if self._partitions[name] < 6:
                self._partitions[name] += 1
                add_partitions(self._broker, name, self._partitions[name])

    def write(self) -> None:
        if self._partitions:
            name = self._chance.choice(sorted(self._partitions))
            partition = self._chance.randrange(self._partitions[name])
            self.write_to(name, partition, self._chance.randint(1, 20))

    def write_to(self, topic: str, partition: int, count: int) -> list[str]:
        values = [str(number) for number in range(self.count, self.count + count)]
        self._broker.seed(topic, [{"partition": partition, "value": each} for each in values])
        self.count += count
        return values

    def change(self) -> None:
        actions = [self.come_or_go, self.grow, *[self.write] * 6]
        self._chance.choice(actions)()


def test_twenty_seconds_of_topics_that_come_and_go_do_not_fail_a_query(
    spark: SparkSession, kafka: ThreadedBroker, topic: str, checkpoint: str
) -> None:
    """DL4: stress: topics come and go without failOnDataLoss."""
    topics = Topics(kafka, topic)
    kept = f"{topic}-kept"
    kafka.create_topic(kept, 1)
    table = stream(
        spark,
        kafka,
        subscribePattern=f"{topic}-.*",
        startingOffsets="earliest",
        failOnDataLoss=False,
        kafkaConsumer_pollTimeoutMs=1000,
        fetchOffset_retryIntervalMs=10,
    )
    done = Run()
    writer = table.writeStream.option("checkpointLocation", checkpoint).foreachBatch(done.add)
    query = writer.start()
    in_kept: list[str] = []
    try:
        until = time.monotonic() + CHURN_SECONDS
        while time.monotonic() < until:
            topics.change()
            in_kept += topics.write_to(kept, 0, 1)
        query.processAllAvailable()
        assert query.exception() is None
    finally:
        query.stop()

    assert 10 < topics.changes
    assert len(done.values) == len(set(done.values))
    assert set(done.values) <= {str(number) for number in range(topics.count)}
    assert set(in_kept) <= set(done.values)
