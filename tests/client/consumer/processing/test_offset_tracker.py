"""A partition is committed up to its first unfinished record, in whatever order they finish."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from trionet.client.consumer.processing._offset_tracker import OffsetTracker


def test_the_first_unfinished_record_is_committed_up_to() -> None:
    tracker = OffsetTracker(10)
    tracker.take(range(10, 14), 14)
    seen = []
    for offset in (12, 10, 13, 11):
        tracker.finish(offset)
        seen.append((tracker.committable, len(tracker)))

    assert [(10, 4), (11, 3), (11, 3), (14, 0)] == seen


def test_offsets_without_records_are_passed_when_all_have_finished() -> None:
    tracker = OffsetTracker(0)
    tracker.take([0, 7], 12)
    tracker.finish(0)
    assert 7 == tracker.committable
    tracker.finish(7)
    assert 12 == tracker.committable


def test_what_is_committed_has_the_leader_epoch_of_the_record_before() -> None:
    tracker = OffsetTracker(0)
    tracker.take([0, 1], 2, leader_epoch=3)
    tracker.take([2, 3], 4, leader_epoch=5)
    found = [tracker.leader_epoch()]
    for offset in range(4):
        tracker.finish(offset)
        found.append(tracker.leader_epoch())

    assert [None, 3, 3, 5, 5] == found


def test_an_unknown_leader_epoch_is_not_committed() -> None:
    tracker = OffsetTracker(0)
    tracker.take([0], 1)
    tracker.finish(0)

    assert tracker.leader_epoch() is None


@given(st.permutations(range(12)))
def test_any_order_leads_to_the_end_without_going_back(order: list[int]) -> None:
    tracker = OffsetTracker(0)
    tracker.take(range(12), 12)
    committable = []
    for offset in order:
        tracker.finish(offset)
        committable.append(tracker.committable)

    assert sorted(committable) == committable
    assert 12 == committable[-1]


class Partition(RuleBasedStateMachine):
    """A log with gaps, handled in any order, against a plain model of what has finished."""

    def __init__(self) -> None:
        super().__init__()
        self.tracker = OffsetTracker(5)
        self.end = 5
        self.unfinished: list[int] = []
        self.finished: set[int] = set()
        self.last = 5

    @rule(gaps=st.lists(st.integers(0, 3), max_size=5), tail=st.integers(0, 3))
    def take(self, gaps: list[int], tail: int) -> None:
        offsets = []
        for gap in gaps:
            offsets.append(self.end + gap)
            self.end += gap + 1
        self.end += tail
        self.unfinished += offsets
        self.tracker.take(offsets, self.end)

    @precondition(lambda self: self.unfinished)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        offset = data.draw(st.sampled_from(self.unfinished))
        self.unfinished.remove(offset)
        self.finished.add(offset)
        self.tracker.finish(offset)

    @invariant()
    def nothing_unfinished_is_committed(self) -> None:
        assert min(self.unfinished, default=self.end) == self.tracker.committable

    @invariant()
    def it_never_goes_back(self) -> None:
        assert self.last <= self.tracker.committable
        self.last = self.tracker.committable

    @invariant()
    def only_what_follows_an_unfinished_record_is_remembered(self) -> None:
        first = self.tracker.committable
        kept = [each for each in {*self.unfinished, *self.finished} if each >= first]
        assert len(kept) == len(self.tracker)


TestPartition = Partition.TestCase
