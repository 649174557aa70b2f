from __future__ import annotations

import math

import pytest

from support.accumulators import (
    T0,
    T1,
    T2,
    TOPIC,
    accumulator,
    cluster,
    done,
    drained,
    values,
)
from trionet.client._backoff import ExponentialBackoff
from trionet.client._topic_partition import TopicPartition
from trionet.client.network._cluster import (
    NO_LEADER,
    Cluster,
    Node,
    PartitionMetadata,
    TopicMetadata,
)
from trionet.client.producer._delivery import Delivery
from trionet.client.producer.batching._accumulator import RecordAccumulator
from trionet.client.producer.batching._batch import SEQUENCE_MAX, ProducerBatch
from trionet.client.producer.transactions._transaction_manager import TransactionManager
from trionet.protocol import error_codes

ONE = cluster(1)
#: Two partitions on node 1, one on node 2.
THREE = cluster(1, 1, 2)


def append(
    records: RecordAccumulator, partition: int, value: bytes = b"x", now: float = 0.0
) -> Delivery:
    return records.append(TOPIC, partition, 1000, None, value, (), now)


def add(records: RecordAccumulator, partition: int, value: bytes = b"x", now: float = 0.0) -> None:
    """A record whose delivery nobody looks at."""
    _ = append(records, partition, value, now)


def where(batches: list[ProducerBatch]) -> list[TopicPartition]:
    return [batch.topic_partition for batch in batches]


# Who is ready.


def test_the_next_look_is_when_the_first_linger_ends() -> None:
    """K7: of those whose node is not ready already."""
    records = accumulator(THREE, linger_seconds=0.01)
    add(records, 0, now=1.0)
    add(records, 2, now=1.004)

    check = records.queues.ready(THREE, 1.004)

    assert set() == check.nodes
    assert pytest.approx(1.01) == check.next_check_at

    check = records.queues.ready(THREE, 1.011)

    assert {1} == check.nodes
    assert pytest.approx(1.014) == check.next_check_at

    drained(records, THREE, 1.011)

    assert math.inf == records.queues.ready(THREE, 1.011).next_check_at


def test_a_topic_without_a_leader_is_reported() -> None:
    lost = cluster(-1, 1)
    records = accumulator(lost)
    add(records, 0)
    add(records, 1)

    check = records.queues.ready(lost, 1.0)

    assert {1} == check.nodes
    assert {TOPIC} == check.unknown_leaders
    assert [T1] == where(drained(records, lost, 1.0))

    found = cluster(1, 1)

    assert {1} == records.queues.ready(found, 1.0).nodes
    assert [T0] == where(drained(records, found, 1.0))


# Draining.


def test_a_drain_keeps_to_the_size_of_a_request() -> None:
    """K4: what does not fit goes the next time."""
    both = cluster(1, 1)
    records = accumulator(both)
    for partition in (0, 1):
        add(records, partition, b"x" * 800)

    [first] = drained(records, both, 0.0, bytes_max=1024)
    [second] = drained(records, both, 0.0, bytes_max=1024)

    assert {T0, T1} == {first.topic_partition, second.topic_partition}


def test_one_batch_goes_though_it_is_larger_than_a_request() -> None:
    records = accumulator(ONE)
    add(records, 0, b"x" * 3000)

    assert [T0] == where(drained(records, ONE, 0.0, bytes_max=1024))


def test_partitions_take_turns() -> None:
    """K5: each node has turns of its own, and the muted ones are passed over."""
    known = cluster(1, 1, 1, 2)
    records = accumulator(known)

    def fill() -> None:
        for partition in range(4):
            add(records, partition, b"x" * 900)
            add(records, partition, b"x" * 900)

    fill()
    turns = [where(records.queues.drain(known, [1], 1000, 0.0)[1]) for _ in range(6)]

    assert [[T0], [T1], [T2]] * 2 == turns
    assert 1 == len(where(records.queues.drain(known, [2], 1000, 0.0)[2]))

    fill()
    records.queues.topics.mute(T1)

    assert [T0, T2] == where(records.queues.drain(known, [1], 10**6, 0.0)[1])

    records.queues.topics.unmute(T1)

    assert [T1] == where(records.queues.drain(known, [1], 1000, 0.0)[1])
    assert {T0, T1, T2} == set(where(records.queues.drain(known, [1], 10**6, 0.0)[1]))


def test_a_small_batch_does_not_overtake_those_whose_turn_it_is() -> None:
    both = cluster(1, 1, 1)
    records = accumulator(both)
    add(records, 0, b"x" * 500)
    add(records, 1, b"x" * 900)
    add(records, 2, b"x" * 10)

    assert [T0] == where(drained(records, both, 0.0, bytes_max=1000))
    assert [T1] == where(drained(records, both, 0.0, bytes_max=1000))


def test_all_partitions_of_a_node_go_when_one_is_ready() -> None:
    """Half-full batches would go later in requests of their own (KAFKA-1445)."""
    records = accumulator(cluster(1, 1), linger_seconds=10.0)
    add(records, 0)
    add(records, 1, b"x" * 2000)

    assert {1} == records.queues.ready(cluster(1, 1), 0.0).nodes
    assert {T0, T1} == set(where(drained(records, cluster(1, 1), 0.0)))


def test_a_node_that_leads_nothing_gets_nothing() -> None:
    """K19: and that is no error."""
    records = accumulator(THREE)
    add(records, 0)

    assert {7: []} == records.queues.drain(THREE, [7], 10**6, 0.0)
    assert {2: []} == records.queues.drain(THREE, [2], 10**6, 0.0)


def test_a_muted_partition_waits() -> None:
    """K15: neither ready nor drained, until it is unmuted."""
    records = accumulator(ONE, linger_seconds=0.0)
    add(records, 0)
    records.queues.topics.mute(T0)

    assert set() == records.queues.ready(ONE, 1.0).nodes
    assert [] == drained(records, ONE, 1.0)

    records.queues.topics.unmute(T0)

    assert {1} == records.queues.ready(ONE, 1.0).nodes
    assert [T0] == where(drained(records, ONE, 1.0))


# Sending again.


def test_a_batch_that_failed_waits_while_others_go() -> None:
    """K8: for ``retry.backoff.ms``."""
    both = cluster(1, 1)
    records = accumulator(both, linger_seconds=0.0)
    add(records, 0, b"first")
    [batch] = drained(records, both, 1.0)
    records.queues.reenqueue(batch, 1.0)
    add(records, 0, b"second", 1.0)
    add(records, 1, b"other", 1.0)

    assert {1} == records.queues.ready(both, 1.05).nodes
    assert [b"other"] == values(drained(records, both, 1.05))

    check = records.queues.ready(both, 1.05)

    assert set() == check.nodes
    assert pytest.approx(1.1) == check.next_check_at
    assert {1} == records.queues.ready(both, 1.1).nodes
    assert [batch] == drained(records, both, 1.1)
    assert [b"second"] == values(drained(records, both, 1.1))


@pytest.mark.parametrize("leaders_move", [False, True])
def test_the_wait_grows_with_each_attempt(*, leaders_move: bool) -> None:
    """K9: twofold, blurred by a fifth, up to its limit; a move without an epoch changes nothing."""
    retry = ExponentialBackoff(0.1, 1.0)
    records = accumulator(cluster(1, epoch=-1), retry=retry, linger_seconds=0.0)
    add(records, 0)
    now = 0.0
    for attempt in range(8):
        known = cluster(1 + leaders_move * attempt, epoch=-1)
        [batch] = drained(records, known, now)
        records.queues.reenqueue(batch, now)
        expected = min(0.1 * 2**attempt, 1.0)
        wait = records.queues.ready(known, now).next_check_at - now

        assert attempt + 1 == batch.attempts
        assert expected * 0.8 <= wait <= min(expected * 1.2, 1.0) + 1e-9
        assert [] == drained(records, known, now + wait - 0.001)

        now += wait + 1e-9


def test_a_newer_leader_is_sent_to_without_a_wait() -> None:
    """K10: one of the same epoch is not."""
    before = cluster(1, epoch=5)
    records = accumulator(before, linger_seconds=0.0)
    add(records, 0)
    [batch] = drained(records, before, 0.0)
    records.queues.reenqueue(batch, 0.0)

    for known in (before, cluster(2, epoch=5), cluster(2, epoch=4), cluster(2, epoch=-1)):
        assert set() == records.queues.ready(known, 0.01).nodes
        assert [] == drained(records, known, 0.01)

    newer = cluster(2, epoch=6)

    assert {2} == records.queues.ready(newer, 0.01).nodes
    assert [batch] == drained(records, newer, 0.01)

    records.queues.reenqueue(batch, 0.01)

    assert set() == records.queues.ready(newer, 0.02).nodes


def test_batches_with_numbers_are_sent_again_in_their_order() -> None:
    """K8: whatever the order in which they failed."""
    records = accumulator(ONE, linger_seconds=0.0)
    batches = []
    for number in range(4):
        add(records, 0, b"%d" % number)
        [batch] = drained(records, ONE, 0.0)
        batch.set_producer_state(7, 0, (SEQUENCE_MAX - 1 + number) & SEQUENCE_MAX)
        batches.append(batch)
    add(records, 0, b"new")
    for number in (2, 0, 3, 1):
        records.queues.reenqueue(batches[number], 0.0)

    again = [drained(records, ONE, 1.0)[0] for _ in range(5)]

    assert batches == again[:4]
    assert [b"new"] == values(again[4:])


# Expiry.


@pytest.mark.parametrize("is_muted", [False, True])
@pytest.mark.parametrize("seconds", [1.0, 2**31 / 1000])
def test_a_batch_expires_so_long_after_its_beginning(*, is_muted: bool, seconds: float) -> None:
    """K14: muted or not, also with the longest ``delivery.timeout.ms``."""
    records = accumulator(ONE, delivery_timeout_seconds=seconds)

    assert math.inf == records.queues.next_expiry

    add(records, 0, b"old", 1.0)
    add(records, 0, b"x" * 2000, 1.5)
    if is_muted:
        records.queues.topics.mute(T0)

    assert 1.0 + seconds == records.queues.next_expiry
    assert [] == records.queues.expired(0.999 + seconds)

    [batch] = records.queues.expired(1.0 + seconds)

    assert [b"old"] == values([batch])
    assert 1.5 + seconds == records.queues.next_expiry
    assert 1 == len(records.queues.expired(1.5 + seconds))
    assert math.inf == records.queues.next_expiry
    assert not records.queues.has_undrained


def test_a_batch_expires_while_it_waits_to_be_sent_again() -> None:
    """K14: what counts is its beginning, not its last attempt."""
    records = accumulator(ONE, delivery_timeout_seconds=1.0)
    add(records, 0)
    [batch] = drained(records, ONE, 0.9)
    records.queues.reenqueue(batch, 0.95)
    add(records, 0, b"younger", 0.95)

    assert [batch] == records.queues.expired(1.0)
    assert pytest.approx(1.95) == records.queues.next_expiry


def test_records_that_come_after_an_expiry_begin_a_new_batch() -> None:
    records = accumulator(ONE, delivery_timeout_seconds=1.0)
    _ = records.append(TOPIC, None, 1000, None, b"old", (), 0.0)
    [batch] = records.queues.expired(1.0)
    _ = records.append(TOPIC, None, 1000, None, b"new", (), 1.0)

    assert [b"old"] == values([batch])
    assert [b"new"] == values(drained(records, ONE, 1.0))


def test_batches_of_several_partitions_expire_at_once() -> None:
    records = accumulator(THREE, delivery_timeout_seconds=1.0)
    for partition in range(3):
        add(records, partition)

    assert {T0, T1, T2} == set(where(records.queues.expired(1.0)))
    assert not records.queues.has_undrained


# Splitting.


def test_a_batch_that_is_too_large_goes_in_parts() -> None:
    """K16: in their order, outside the pool, and the deliveries follow them."""
    records = accumulator(ONE, batch_bytes=10_000, delivery_timeout_seconds=50.0)
    deliveries = [append(records, 0, b"%03d" % number + b"x" * 97) for number in range(60)]
    later = append(records, 0, b"x" * 9000)
    [batch] = drained(records, ONE, 3.0)
    batch.set_producer_state(7, 1, SEQUENCE_MAX - 9)
    batch.may_be_written = True
    free = records.pool.available

    parts = records.queues.split_and_reenqueue(batch, 3.0)

    assert free == records.pool.available
    assert 2 <= len(parts) <= 3
    assert all(part.size <= batch.size // 2 + 100 for part in parts)

    records.queues.deallocate(batch)

    assert free + 10_000 == records.pool.available

    sent = [drained(records, ONE, 3.0)[0] for _ in parts]

    assert parts == sent
    assert [b"%03d" % number + b"x" * 97 for number in range(60)] == values(parts)
    first = parts[0].record_count
    numbers = [part.base_sequence for part in parts[:2]]
    assert [SEQUENCE_MAX - 9, (SEQUENCE_MAX - 9 + first) & SEQUENCE_MAX] == numbers
    assert {(7, 1, True, batch.created_at)} == {
        (part.producer_id, part.producer_epoch, part.may_be_written, part.created_at)
        for part in parts
    }

    base = 100
    for part in parts:
        assert not deliveries[-1].is_done
        done(records, part, base)
        base += part.record_count + 10

    offsets = [each.result().offset for each in deliveries]
    assert list(range(100, 100 + first)) == offsets[:first]
    assert 100 + first + 10 == offsets[first]
    assert sorted(set(offsets)) == offsets
    assert not later.is_done
    assert free + 10_000 == records.pool.available


def test_parts_are_split_again_until_each_has_one_record() -> None:
    """K16: so that there is always an end."""
    records = accumulator(ONE, batch_bytes=10_000)
    deliveries = [append(records, 0, b"%d" % number) for number in range(9)]
    whole = drained(records, ONE, 0.0)
    single: list[ProducerBatch] = []
    while whole:
        batch = whole.pop()
        if batch.record_count == 1:
            done(records, batch, int(values([batch])[0] or b""))
            single.append(batch)
        else:
            assert 2 <= len(records.queues.split_and_reenqueue(batch, 0.0))
            records.queues.deallocate(batch)
        whole += drained(records, ONE, 0.0)

    assert 9 == len(single)
    assert list(range(9)) == [each.result().offset for each in deliveries]
    assert not records.queues.begin_flush()


def test_parts_expire_with_what_they_come_from() -> None:
    records = accumulator(ONE, batch_bytes=10_000, delivery_timeout_seconds=1.0)
    deliveries = [append(records, 0, b"%d" % number) for number in range(4)]
    [batch] = drained(records, ONE, 0.5)
    parts = records.queues.split_and_reenqueue(batch, 0.6)

    assert parts == records.queues.expired(1.0)
    assert not any(each.is_done for each in deliveries)


# Numbers.


class Numbers:
    """Gives each batch the next number, and lets nothing go while it is held up."""

    def __init__(self) -> None:
        self.next = 0
        self.is_held_up = False

    def may_drain(self, batch: ProducerBatch, leader_epoch: int, now: float) -> bool:
        return not self.is_held_up

    def passes_over(self, batch: ProducerBatch) -> bool:
        return False

    def assign(self, batch: ProducerBatch) -> None:
        batch.set_producer_state(7, 0, self.next)
        self.next += batch.record_count


def test_batches_are_numbered_when_they_are_drained() -> None:
    numbers = Numbers()
    records = accumulator(ONE, numbers)
    mistaken = append(records, 0, b"a")
    add(records, 0, b"b")
    add(records, 0, b"c")
    records.withdraw(mistaken)
    add(records, 0, b"x" * 1000)
    numbers.is_held_up = True

    assert [] == drained(records, ONE, 1.0)

    numbers.is_held_up = False
    first, second = (drained(records, ONE, 1.0)[0] for _ in range(2))

    assert (0, 2) == (first.base_sequence, second.base_sequence)


def test_one_partition_is_asked_for_without_a_look_at_the_others() -> None:
    """What :meth:`.BatchQueues.ready` says of all of them."""
    records = accumulator(THREE, linger_seconds=0.01)
    assert (NO_LEADER, math.inf) == records.queues.next_of(T2, 1.0)

    add(records, 2, now=1.0)
    assert (2, 1.01) == records.queues.next_of(T2, 1.0)
    assert (NO_LEADER, math.inf) == records.queues.next_of(T0, 1.0)

    records.queues.topics.mute(T2)
    assert (NO_LEADER, math.inf) == records.queues.next_of(T2, 1.0)

    records.queues.topics.unmute(T2)
    records.close()
    assert (2, 1.0) == records.queues.next_of(T2, 1.0)


# After one that the leader has refused.


def test_the_next_look_is_when_the_one_may_go_that_is_tried_next() -> None:
    """One out of order waits for those after it: their wait counts, not its own."""
    state = TransactionManager()
    state.take_id(7, 0)
    records = accumulator(ONE, state)
    add(records, 0)
    [known] = drained(records, ONE, 1.0)
    state.completed(known, 0, 1.0)
    batches = []
    for _ in range(2):
        add(records, 0)
        batches += drained(records, ONE, 1.0)
    for batch in batches:
        batch.may_be_written = True
        records.queues.reenqueue(batch, 1.0)
    first, second = batches
    assert [first] == drained(records, ONE, 2.0)
    assert state.can_retry(first, error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)
    records.queues.reenqueue(first, 2.0)

    assert {1} == records.queues.ready(ONE, 2.0).nodes
    assert (1, 2.0) == records.queues.next_of(T0, 2.0)
    assert [second] == drained(records, ONE, 2.0)

    records.queues.reenqueue(second, 3.0)
    check = records.queues.ready(ONE, 3.05)

    assert set() == check.nodes
    assert pytest.approx(3.1) == check.next_check_at
    assert [second] == drained(records, ONE, 3.1)


def test_leaders_of_unchanged_topics_are_not_looked_up_again() -> None:
    """A new topic costs no look at the others; a snapshot that was missed costs a look at all."""
    topics = [f"t{number}" for number in range(3)]
    first = evolved(Cluster(), topics, leader=1, changed=None)
    records = accumulator(first)
    deliveries = [records.append(topic, None, 0, None, b"x", (), 0.0) for topic in topics]
    assert len(topics) == len(deliveries)
    second = evolved(first, topics, leader=2, changed=frozenset({"t1"}))
    records.queues.topics.update(second)
    assert [1, 2, 1] == [records.queues.next_of(TopicPartition(each, 0), 0.0)[0] for each in topics]

    third = evolved(second, topics, leader=1, changed=frozenset({"t2"}))
    fourth = evolved(third, topics, leader=2, changed=frozenset({"t2"}))
    records.queues.topics.update(fourth)

    assert [2, 2, 2] == [records.queues.next_of(TopicPartition(each, 0), 0.0)[0] for each in topics]


def test_a_gap_in_the_numbers_of_partitions_costs_nothing() -> None:
    """A topic has as many partitions as a broker describes, whatever their numbers (Kafka)."""
    described = {each: PartitionMetadata(index=each, leader=1) for each in (0, 2**31 - 1)}
    gap = Cluster(
        nodes={1: Node(1, "127.0.0.1", 9092)},
        topics={TOPIC: TopicMetadata(name=TOPIC, partitions=described)},
    )
    records = accumulator(gap)

    assert records.knows(TOPIC, 1)
    assert not records.knows(TOPIC, 2**31 - 1)
    assert 2 == records.key_partitions(TOPIC)
    add(records, 0)
    add(records, 1)
    assert [T0] == where(drained(records, gap, 1.0))  # the other one has no leader


def evolved(
    before: Cluster, topics: list[str], *, leader: int, changed: frozenset[str] | None
) -> Cluster:
    partitions = {0: PartitionMetadata(index=0, leader=leader)}
    return Cluster(
        nodes={each: Node(each, "127.0.0.1", 9092) for each in (1, 2)},
        topics={each: TopicMetadata(name=each, partitions=partitions) for each in topics},
        number=before.number + 1,
        changed_topics=changed,
    )
