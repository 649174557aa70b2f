"""Whatever producers, a sender and brokers do, in whatever order: nothing is lost or mixed up."""

from __future__ import annotations

import pytest
import trio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from support.accumulators import TOPIC, accumulator, cluster, drained, values
from trionet.client.producer._deliveries import Deliveries
from trionet.client.producer._delivery import Delivery
from trionet.client.producer.batching._batch import ProducerBatch
from trionet.client.producer.batching._records import RecordColumns
from trionet.errors import RecordWithdrawnError, TrionetError

CLUSTERS = [cluster(1, 2, epoch=1), cluster(2, 2, epoch=2), cluster(-1, 1, epoch=3)]
PARTITIONS = 2
DELIVERY_SECONDS = 5.0
BUFFER_BYTES = 20_000


class Failed(TrionetError):
    """What the brokers of this test answer."""


class AccumulatorMachine(RuleBasedStateMachine):
    """An accumulator, and beside it what each record should have become.

    Without idempotence, and with one batch of a partition on its way at a time, so that the log of
    a partition has its records in the order in which they were appended.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.cluster = CLUSTERS[0]
        self.records = accumulator(
            self.cluster, batch_bytes=400, buffer_bytes=BUFFER_BYTES, delivery_timeout_seconds=5.0
        )
        self.deliveries: dict[bytes, Delivery] = {}
        self.withdrawn: set[bytes] = set()
        self.in_flight: list[ProducerBatch] = []
        self.log: dict[int, list[bytes]] = {number: [] for number in range(PARTITIONS)}
        self.failed: set[bytes] = set()
        self.flushes = 0

    def name(self, size: int) -> bytes:
        return b"%06d" % len(self.deliveries) + b"x" * size

    @rule(
        size=st.integers(0, 500),
        partition=st.sampled_from([None, 0, 1]),
        key=st.sampled_from([None, b"a", b"b"]),
    )
    def append(self, size: int, partition: int | None, key: bytes | None) -> None:
        value = self.name(size)
        try:
            delivery = self.records.append(TOPIC, partition, 1, key, value, (), self.now)
        except trio.WouldBlock:
            assert self.records.pool.available < 600
        else:
            self.deliveries[value] = delivery

    @rule(sizes=st.lists(st.integers(0, 300), min_size=1, max_size=20), has_keys=st.booleans())
    def append_columns(self, sizes: list[int], *, has_keys: bool) -> None:
        given = [b"%06d" % (len(self.deliveries) + n) + b"x" * sizes[n] for n in range(len(sizes))]
        keys = [b"%d" % (n % 3) for n in range(len(sizes))] if has_keys else None
        deliveries = Deliveries(1)
        columns = RecordColumns(given, keys, 1, None)
        end = self.records.append_columns(TOPIC, None, columns, 0, len(given), deliveries, self.now)

        assert end == len(deliveries)
        assert end == len(given) or self.records.pool.available < 600

        self.deliveries.update(zip(given[:end], deliveries, strict=True))

    @precondition(lambda self: self.deliveries)
    @rule(choice=st.integers(0, 10**6))
    def withdraw(self, choice: int) -> None:
        value = list(self.deliveries)[choice % len(self.deliveries)]
        if self.records.withdraw(self.deliveries[value]):
            self.withdrawn.add(value)

    @rule(seconds=st.floats(0.0, 0.2))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(number=st.integers(0, len(CLUSTERS) - 1))
    def learn(self, number: int) -> None:
        self.cluster = CLUSTERS[number]
        self.records.queues.topics.update(self.cluster)

    @rule()
    def flush(self) -> None:
        self.records.queues.begin_flush()
        self.flushes += 1

    @precondition(lambda self: self.flushes)
    @rule()
    def end_flush(self) -> None:
        self.records.queues.end_flush()
        self.flushes -= 1

    @rule(bytes_max=st.sampled_from([500, 10_000]))
    def drain(self, bytes_max: int) -> None:
        check = self.records.queues.ready(self.cluster, self.now)

        assert check.next_check_at > self.now

        batches = drained(self.records, self.cluster, self.now, bytes_max)

        # Who is ready gets something.
        leaders = {
            self.cluster.topics[TOPIC].partitions[each.topic_partition.partition].leader
            for each in batches
        }
        assert check.nodes <= leaders
        for batch in batches:
            self.records.queues.topics.mute(batch.topic_partition)
            self.in_flight.append(batch)

    @precondition(lambda self: self.in_flight)
    @rule(choice=st.integers(0, 10), fate=st.sampled_from(["written", "written", "again", "split"]))
    def answer(self, choice: int, fate: str) -> None:
        batch = self.in_flight.pop(choice % len(self.in_flight))
        self.records.queues.topics.unmute(batch.topic_partition)
        if fate == "again":
            self.records.queues.reenqueue(batch, self.now)
        elif fate == "split" and batch.record_count > 1:
            self.records.queues.split_and_reenqueue(batch, self.now)
            self.records.queues.deallocate(batch)
        else:
            log = self.log[batch.topic_partition.partition]
            base_offset = len(log)
            log += [value for value in values([batch]) if value is not None]

            assert batch.outcome.complete(base_offset)

            self.records.queues.deallocate(batch)

    @precondition(lambda self: self.in_flight)
    @rule(choice=st.integers(0, 10))
    def refuse(self, choice: int) -> None:
        batch = self.in_flight.pop(choice % len(self.in_flight))
        self.records.queues.topics.unmute(batch.topic_partition)
        self.fail([batch])

    @rule(seconds=st.sampled_from([0.0, DELIVERY_SECONDS]))
    def expire(self, seconds: float) -> None:
        self.now += seconds
        due = self.records.queues.next_expiry
        batches = self.records.queues.expired(self.now)

        assert bool(batches) == (due <= self.now)
        assert self.records.queues.next_expiry > self.now

        self.fail(batches)

    def fail(self, batches: list[ProducerBatch]) -> None:
        for batch in batches:
            inside = {value for value in values([batch]) if value is not None}
            self.failed |= inside - self.withdrawn  # what was not drained still has these

            assert batch.outcome.fail(Failed("no"))

            self.records.queues.deallocate(batch)

    @invariant()
    def memory_is_within_its_bounds(self) -> None:
        assert 0 <= self.records.pool.available <= BUFFER_BYTES

    def teardown(self) -> None:
        for batch in self.in_flight:
            self.records.queues.reenqueue(batch, self.now)
        for partition in {each.topic_partition for each in self.in_flight}:
            self.records.queues.topics.unmute(partition)
        self.in_flight.clear()
        self.records.close()
        self.learn(0)
        while self.records.queues.has_undrained:
            self.now += 0.11
            self.drain(10_000)
            while self.in_flight:
                self.answer(0, "written")

        assert BUFFER_BYTES == self.records.pool.available
        assert not self.records.queues.begin_flush()
        stored = [value for log in self.log.values() for value in log]
        assert sorted(self.deliveries) == sorted([*stored, *self.withdrawn, *self.failed])
        for value, delivery in self.deliveries.items():
            if value in self.withdrawn:
                with pytest.raises(RecordWithdrawnError):
                    delivery.result()
            elif value in self.failed:
                with pytest.raises(Failed):
                    delivery.result()
            else:
                metadata = delivery.result()

                assert value == self.log[metadata.partition][metadata.offset]
        for log in self.log.values():
            assert sorted(log, key=lambda value: value[:6]) == log


@pytest.mark.slow
def test_every_record_is_drained_once_and_has_one_fate() -> None:
    """K6: and those of a partition keep their order."""
    course = settings(
        max_examples=25,
        stateful_step_count=40,
        suppress_health_check=[HealthCheck.too_slow],  # a busy machine is no fault of the input
    )
    run_state_machine_as_test(AccumulatorMachine, settings=course)
