from __future__ import annotations

import random
from collections import Counter

from support.accumulators import TOPIC, accumulator, cluster, done, drained
from trionet.client.network._cluster import Cluster
from trionet.client.producer.batching._accumulator import RecordAccumulator
from trionet.client.producer.batching._batch import ProducerBatch
from trionet.client.producer.batching._topic_queues import TopicQueues, next_queue

FOUR = cluster(1, 1, 2, 2)


def add(records: RecordAccumulator, count: int = 1, size: int = 90) -> list[int]:
    """The partitions that records without a key go to."""
    return [
        records.append(TOPIC, None, 1000, None, b"x" * size, (), 0.0).outcome.topic_partition[1]
        for _ in range(count)
    ]


def runs(partitions: list[int]) -> list[tuple[int, int]]:
    """A list by its stretches of one partition: which, and how long."""
    found: list[tuple[int, int]] = []
    for each in partitions:
        if found and found[-1][0] == each:
            found[-1] = each, found[-1][1] + 1
        else:
            found.append((each, 1))
    return found


def emptied(records: RecordAccumulator, known: Cluster) -> None:
    while records.queues.has_undrained:
        for batch in drained(records, known, 0.0):
            done(records, batch)


def test_a_partition_gets_full_batches_and_then_another_does() -> None:
    """K17: no batch is sent half empty because of a change."""
    records = accumulator(FOUR, linger_seconds=10.0)
    partitions = add(records, 200)
    a_batch = runs(partitions)[0][1]

    assert {0, 1, 2, 3} == set(partitions)
    assert all(length % a_batch == 0 for _, length in runs(partitions)[:-1])


def test_a_partition_is_kept_when_its_batch_is_sent_early() -> None:
    """K17: until it has got ``batch.size`` bytes."""
    records = accumulator(FOUR, linger_seconds=0.0)
    partitions = []
    for _ in range(300):
        partitions += add(records, 1, 200)
        emptied(records, FOUR)

    # Three batches with one record have less than 1,000 bytes, four have more.
    assert all(length % 4 == 0 for _, length in runs(partitions)[:-1])
    assert {0, 1, 2, 3} == set(partitions)


def test_no_batch_is_kept_whose_memory_is_free() -> None:
    """Or each topic would keep one, beside ``buffer.memory``."""
    records = accumulator(FOUR, linger_seconds=0.0)
    add(records, 1, 200)
    topic = records.queues.topics.get(TOPIC)
    assert topic is not None
    assert topic.sticky_batch is not None
    emptied(records, FOUR)

    assert topic.sticky_batch is None


def test_without_adaptation_all_partitions_get_the_same() -> None:
    """K17: whatever their queues."""
    records = accumulator(FOUR, adaptive_partitioning=False)
    for partition in (0, 1):
        for _ in range(50):
            _ = records.append(TOPIC, partition, 1000, None, b"x" * 900, (), 0.0)

    shares = Counter(add(records, 1000, 900))

    assert all(190 <= shares[partition] <= 310 for partition in range(4))


def test_with_adaptation_partitions_with_short_queues_get_more() -> None:
    """K17: in proportion to how much shorter they are: here 1, 2, 3 and 4 of ten."""
    topic = TopicQueues(TOPIC)
    topic.update(FOUR.topics[TOPIC], frozenset(FOUR.nodes))
    for queue, batches in zip(topic.queues, (3, 2, 1, 0), strict=True):
        for _ in range(batches):
            queue.add(ProducerBatch(queue.topic_partition, 1000, 0, 0.0))
    rng = random.Random(0)

    shares = Counter(
        next_queue(topic, rng, frozenset(), is_adaptive=True).topic_partition.partition
        for _ in range(10_000)
    )

    assert all(abs(shares[each] - 1000 * (each + 1)) <= 150 for each in range(4))


def test_a_partition_without_a_leader_is_left_out() -> None:
    """K17: as long as there is another."""
    half = cluster(-1, 1, -1, -1)
    records = accumulator(half)

    assert {1} == set(add(records, 50))

    lost = cluster(-1, -1)
    records = accumulator(lost)

    assert {0, 1} == set(add(records, 50))


def test_a_partition_whose_node_takes_nothing_is_left_out() -> None:
    """K17, D8: for longer than ``partitioner.availability.timeout.ms``, until it takes some."""
    records = accumulator(FOUR, partitioner_availability_timeout_seconds=1.0)
    records.queues.topics.update_node_latency(1, 0.0, can_drain=True)
    records.queues.topics.update_node_latency(2, 0.0, can_drain=True)
    records.queues.topics.update_node_latency(1, 1.0, can_drain=False)

    assert {0, 1, 2, 3} == set(add(records, 200))

    records.queues.topics.update_node_latency(1, 1.1, can_drain=False)
    add(records, 12)

    assert {2, 3} == set(add(records, 200))

    records.queues.topics.update_node_latency(1, 1.2, can_drain=True)

    assert {0, 1} < set(add(records, 400))


def test_without_that_setting_no_node_is_left_out() -> None:
    records = accumulator(FOUR)
    records.queues.topics.update_node_latency(1, 0.0, can_drain=True)
    records.queues.topics.update_node_latency(1, 100.0, can_drain=False)

    assert {0, 1, 2, 3} == set(add(records, 200))


def test_records_with_a_key_go_where_it_says_or_not() -> None:
    def of(records: RecordAccumulator) -> set[int]:
        return {
            records.append(TOPIC, None, 1000, b"k", b"x" * 400, (), 0.0).outcome.topic_partition[1]
            for _ in range(50)
        }

    assert 1 == len(of(accumulator(FOUR)))
    assert 4 == len(of(accumulator(FOUR, partitioner_ignores_keys=True)))


def test_records_with_and_without_a_key_share_batches() -> None:
    records = accumulator(cluster(1))
    keyed = records.append(TOPIC, None, 1000, b"k", b"x", (), 0.0)
    other = records.append(TOPIC, None, 1000, None, b"x", (), 0.0)
    given = records.append(TOPIC, 0, 1000, None, b"x", (), 0.0)

    assert 1 == len({each.outcome for each in (keyed, other, given)})
    assert [0, 1, 2] == [each.index for each in (keyed, other, given)]


def test_others_that_fill_the_batches_do_not_keep_a_partition() -> None:
    """Records with keys may fill the batch that those without began."""
    both = cluster(1, 1)
    records = accumulator(both)
    partitions = set()
    for _ in range(200):
        partitions.update(add(records))
        for partition in (0, 1):
            _ = records.append(TOPIC, partition, 1000, None, b"x" * 300, (), 0.0)

    assert {0, 1} == partitions


def test_a_topic_that_lost_partitions_gets_nothing_there() -> None:
    records = accumulator(FOUR)
    add(records, 100)
    fewer = cluster(1)
    records.queues.topics.update(fewer)

    assert {0} == set(add(records, 100))
