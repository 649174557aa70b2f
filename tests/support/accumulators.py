"""Accumulators for tests, and clusters that they send to."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from trionet.client._backoff import ExponentialBackoff
from trionet.client._topic_partition import TopicPartition
from trionet.client.network._cluster import Cluster, Node, PartitionMetadata, TopicMetadata
from trionet.client.producer._settings import ProducerSettings
from trionet.client.producer.batching._accumulator import RecordAccumulator
from trionet.client.producer.batching._batch import ProducerBatch
from trionet.client.producer.batching._batch_queues import Sequencing
from trionet.protocol.records._records import decode_batch

TOPIC = "t"
T0, T1, T2, T3 = (TopicPartition(TOPIC, number) for number in range(4))

#: Of retries in these tests: no growth, no blur.
RETRY = ExponentialBackoff(0.1, 0.1)

REQUEST_BYTES_MAX = 1024 * 1024


def cluster(*leaders: int, epoch: int = 0, topic: str = TOPIC) -> Cluster:
    """A cluster whose only topic has a partition for each of these leaders; -1 for none."""
    partitions = {
        number: PartitionMetadata(index=number, leader=leader, leader_epoch=epoch)
        for number, leader in enumerate(leaders)
    }
    return Cluster(
        nodes={
            node_id: Node(node_id, "127.0.0.1", 9092 + node_id) for node_id in {*leaders} - {-1}
        },
        topics={topic: TopicMetadata(name=topic, partitions=partitions)},
    )


def accumulator(
    known: Cluster, sequencing: Sequencing | None = None, *, seed: int = 0, **settings: Any
) -> RecordAccumulator:
    """One that knows a cluster; batches of 1,000 bytes, linger of 10 ms, without more said."""
    defaults: dict[str, Any] = {"batch_bytes": 1000, "linger_seconds": 0.01, "retry": RETRY}
    made = RecordAccumulator(
        ProducerSettings(**{**defaults, **settings}), random.Random(seed), sequencing
    )
    made.queues.topics.update(known)
    return made


def drained(
    records: RecordAccumulator, known: Cluster, now: float, bytes_max: int = REQUEST_BYTES_MAX
) -> list[ProducerBatch]:
    """All batches that go at a time, one of each partition at most."""
    taken = records.queues.drain(known, known.nodes, bytes_max, now)
    return [batch for batches in taken.values() for batch in batches]


def values(batches: Iterable[ProducerBatch]) -> list[bytes | None]:
    """The values of the records in some batches, as a broker reads them."""
    return [
        value for batch in batches for _, _, _, value, _ in decode_batch(b"".join(batch.chunks()))
    ]


def done(records: RecordAccumulator, batch: ProducerBatch, base_offset: int = 0) -> None:
    """A batch is acknowledged."""
    batch.outcome.complete(base_offset)
    records.queues.deallocate(batch)
