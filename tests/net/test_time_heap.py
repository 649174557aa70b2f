from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from trionet.errors import LocalProtocolError
from trionet.net._idle_expiry import TimeHeap


def test_an_empty_heap_has_no_first() -> None:
    heap: TimeHeap[str] = TimeHeap()

    assert heap.first() is None
    with pytest.raises(IndexError):
        heap.pop()
    with pytest.raises(IndexError):
        heap.move_first(1)


def test_of_equal_times_the_first_added_comes_first() -> None:
    heap: TimeHeap[str] = TimeHeap()
    for item in "cab":
        heap.add(item, 1)

    assert ["c", "a", "b"] == [heap.pop() for _ in range(3)]


def test_an_item_is_added_once() -> None:
    heap: TimeHeap[str] = TimeHeap()
    heap.add("a", 1)

    with pytest.raises(LocalProtocolError, match="'a' is already in the heap"):
        heap.add("a", 2)

    assert (1, "a") == heap.first()


def test_what_was_removed_takes_no_memory_for_long() -> None:
    """A storm of short connections below one that stays must not fill the heap."""
    heap: TimeHeap[int] = TimeHeap()
    heap.add(-1, 0)
    entries_max = 0

    for number in range(100_000):
        heap.add(number, 600 + number)
        heap.discard(number)
        entries_max = max(entries_max, len(heap._entries))

    assert 1 == len(heap)
    assert entries_max < 100


class Model(RuleBasedStateMachine):
    """A heap behaves as a list that is sorted each time."""

    items = Bundle("items")

    def __init__(self) -> None:
        super().__init__()
        self.heap: TimeHeap[int] = TimeHeap()
        self.expected: dict[int, tuple[float, int]] = {}  # item: time, order of being added
        self.added = 0

    @rule(target=items, time=st.integers(0, 20))
    def add(self, time: int) -> int:
        item = self.added = self.added + 1
        self.heap.add(item, time)
        self.expected[item] = time, item
        return item

    @rule(item=items)
    def discard_what_may_have_gone(self, item: int) -> None:
        self.heap.discard(item)
        self.expected.pop(item, None)

    @rule(item=consumes(items), time=st.integers(0, 20))
    def add_again(self, item: int, time: int) -> None:
        if item not in self.expected:
            self.added += 1
            self.heap.add(item, time)
            self.expected[item] = time, self.added

    @rule()
    def pop(self) -> None:
        if self.expected:
            first = min(self.expected, key=self.expected.__getitem__)
            assert first == self.heap.pop()
            del self.expected[first]

    @rule(time=st.integers(0, 20))
    def move_first(self, time: int) -> None:
        if self.expected:
            first = min(self.expected, key=self.expected.__getitem__)
            self.heap.move_first(time)
            self.expected[first] = time, self.expected[first][1]

    @invariant()
    def first_is_the_smallest(self) -> None:
        smallest = min(((time, n, item) for item, (time, n) in self.expected.items()), default=None)
        expected = None if smallest is None else (smallest[0], smallest[2])
        assert expected == self.heap.first()

    @invariant()
    def nothing_else_is_held(self) -> None:
        assert len(self.expected) == len(self.heap) == len(self.heap._items)
        assert set(self.expected) == set(self.heap._numbers)
        assert len(self.heap._entries) <= max(64, 2 * len(self.heap))


TestModel = Model.TestCase
