"""Which record may start: any, or only after those of its key or partition."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.processing._backlog import Backlog, Job, Order
from trionet.client.consumer.processing._offset_tracker import OffsetTracker
from trionet.client.consumer.records._record import ConsumerRecord

KEYS = [b"a", b"b", None]


def job(partition: int, offset: int, key: bytes | None) -> Job:
    record = ConsumerRecord("t", partition, offset, 0, key, b"", (), 0, 0)
    return Job(record, TopicPartition("t", partition), OffsetTracker(0))


def startable(backlog: Backlog) -> list[int]:
    found = []
    while (each := backlog.start()) is not None:
        found.append(each.record.offset)
    return found


JOBS = [job(0, 0, b"a"), job(0, 1, b"a"), job(0, 2, b"b"), job(0, 3, None), job(0, 4, None)]


@pytest.mark.parametrize(
    ("order", "expected"), [(None, [0, 1, 2, 3, 4]), ("key", [0, 2, 3, 4]), ("partition", [0])]
)
def test_a_record_waits_for_those_that_it_has_to_follow(
    order: Order | None, expected: list[int]
) -> None:
    backlog = Backlog(order)
    backlog.add(JOBS)

    assert expected == startable(backlog)
    assert len(JOBS) - len(expected) == len(backlog)


def test_a_record_starts_when_the_one_before_has_finished() -> None:
    backlog = Backlog("key")
    backlog.add(JOBS[:3])
    startable(backlog)

    backlog.finish(JOBS[2])
    assert [] == startable(backlog)
    backlog.finish(JOBS[0])
    assert [1] == startable(backlog)
    backlog.finish(JOBS[1])
    assert 0 == len(backlog)


class Handling(RuleBasedStateMachine):
    """Records of three partitions, some of which are revoked meanwhile, against a plain model."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets: dict[int, int] = defaultdict(int)
        self.unstarted: list[Job] = []
        self.running: list[Job] = []

    @initialize(order=st.sampled_from([None, "key", "partition"]))
    def begin(self, order: Order | None) -> None:
        self.order = order
        self.backlog = Backlog(order)

    def must_follow(self, later: Job, earlier: Job) -> bool:
        if self.order is None or later.partition != earlier.partition:
            return False
        if self.order == "partition":
            return True
        return later.record.key is not None and later.record.key == earlier.record.key

    @rule(partition=st.integers(0, 2), keys=st.lists(st.sampled_from(KEYS), max_size=4))
    def add(self, partition: int, keys: list[bytes | None]) -> None:
        jobs = []
        for key in keys:
            jobs.append(job(partition, self.offsets[partition], key))
            self.offsets[partition] += 1
        self.unstarted += jobs
        self.backlog.add(jobs)

    @rule()
    def start(self) -> None:
        started = self.backlog.start()
        free = [
            each
            for place, each in enumerate(self.unstarted)
            if not any(self.must_follow(each, other) for other in self.unstarted[:place])
            and not any(self.must_follow(each, other) for other in self.running)
        ]
        if started is None:
            assert [] == free
        else:
            assert started in free
            self.unstarted.remove(started)
            self.running.append(started)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        finished = data.draw(st.sampled_from(self.running))
        self.running.remove(finished)
        self.backlog.finish(finished)

    @rule(partition=st.integers(0, 2))
    def revoke(self, partition: int) -> None:
        """The handlers of the partition have ended before it is assigned again."""
        revoked = TopicPartition("t", partition)
        self.backlog.drop([revoked])
        self.unstarted = [each for each in self.unstarted if each.partition != revoked]
        for each in [each for each in self.running if each.partition == revoked]:
            self.running.remove(each)
            self.backlog.finish(each)

    @invariant()
    def all_that_wait_are_counted(self) -> None:
        assert len(self.unstarted) == len(self.backlog)


TestHandling = Handling.TestCase
