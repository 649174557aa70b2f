"""The time for peers who are not known yet: one share for all selectors of a loop."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.net._preparing import PASSES_OWED_MAX, PreparingTime

SECONDS_MAX = 2.0


class Loop:
    """Workers over a clock that only their steps move."""

    def __init__(self) -> None:
        self.now = 0.0
        self.time = PreparingTime(SECONDS_MAX, lambda: self.now)
        self.turns: Counter[str] = Counter()

    def turn(self, worker: str, *steps: float) -> int:
        """One poll of a worker that would make these steps; how many it made."""
        self.turns[worker] += 1
        return sum(self._step(worker, seconds) for seconds in steps)

    def _step(self, worker: str, seconds: float) -> bool:
        if not self.time.may_work(worker, self.turns[worker]):
            return False
        with self.time.spending():
            self.now += seconds
        return True


@pytest.fixture
def loop() -> Loop:
    return Loop()


def test_a_pass_makes_steps_until_its_time_is_spent(loop: Loop) -> None:
    assert 4 == loop.turn("a", *[0.6] * 9)


def test_a_step_that_takes_longer_than_a_pass_may_is_made_up_for_in_the_next(loop: Loop) -> None:
    assert [1, 0, 1, 0, 1] == [loop.turn("a", 5) for _ in range(5)]


def test_however_long_steps_are_they_go_on(loop: Loop) -> None:
    made = [loop.turn("a", 1000, 1000) for _ in range(1 + 2 * PASSES_OWED_MAX)]

    assert [1, 0, 0, 0, 1, 0, 0, 0, 1] == made


def test_time_counts_also_for_a_step_that_fails(loop: Loop) -> None:
    def fail() -> None:
        with loop.time.spending():
            loop.now += SECONDS_MAX + 1
            raise EOFError

    assert loop.time.may_work("a", 1)
    with pytest.raises(EOFError):
        fail()

    assert not loop.time.may_work("a", 1)


def test_all_share_the_time_of_a_pass(loop: Loop) -> None:
    made = [loop.turn(worker, 1.1, 1.1) for worker in "abc"]

    assert [2, 0, 0] == made


def test_who_waited_is_before_the_others_in_the_next_pass(loop: Loop) -> None:
    made = [[loop.turn(worker, 2.1, 2.1) for worker in "abc"] for _ in range(4)]

    assert [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]] == made


def test_who_waits_for_no_step_any_more_keeps_the_others_for_one_pass_at_most(loop: Loop) -> None:
    for worker in "ab":
        loop.turn(worker, 3)

    assert [0, 1, 1] == [loop.turn("a", 3) for _ in range(3)]


@given(st.lists(st.permutations("abc"), min_size=10, max_size=30))
def test_in_whatever_order_they_come_each_makes_steps(passes: list[list[str]]) -> None:
    """Trio lets tasks run in the one order or the other, by chance."""
    loop, made = Loop(), Counter[str]()
    for workers in passes:
        for worker in workers:
            made[worker] += loop.turn(worker, 10, 10)

    assert set("abc") == {worker for worker, count in made.items() if count}
