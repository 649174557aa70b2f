"""What a number was of late, and how fast it grows."""

from __future__ import annotations

import pytest

from trionet.dashboard.model._history import History, Rate


def test_values_are_kept_for_as_long_as_was_asked_for() -> None:
    history = History(seconds_max=10)
    for second in range(30):
        history.add(second, second * 2)

    assert [(second, second * 2) for second in range(19, 30)] == list(history)
    assert 58 == history.last
    assert [56, 58] == history.values(2)


def test_there_are_never_more_than_so_many() -> None:
    history = History(seconds_max=1e9, values_max=5)
    for second in range(100):
        history.add(second, second)

    assert [95, 96, 97, 98, 99] == history.values()


def test_a_value_of_the_same_moment_takes_the_place_of_the_first() -> None:
    history = History()
    history.add(1, 10)
    history.add(1, 11)

    assert [(1, 11)] == list(history)


def test_a_clock_that_begins_anew_begins_a_history_anew() -> None:
    history = History()
    history.add(500, 10)
    history.add(2, 11)

    assert [(2, 11)] == list(history)


def test_what_is_not_known_any_more_is_a_gap() -> None:
    history = History()
    history.mark_unknown()
    assert 0 == len(history)
    history.add(1, 10)
    history.mark_unknown()
    history.mark_unknown()

    assert None is history.last
    history.add(3, 12)
    assert [10, None, None, 12] == history.values()


def test_an_empty_history_has_no_last_value() -> None:
    assert (None, [], 0) == (History().last, History().values(), len(History()))


def test_a_rate_is_the_growth_since_the_last_look() -> None:
    rate = Rate()

    assert None is rate.update(10, 1000)
    assert 50 == rate.update(12, 1100)
    assert 0 == rate.update(13, 1100)


@pytest.mark.parametrize(("at", "count"), [(11, 5), (10, 2000), (9, 2000)])
def test_a_count_or_a_clock_that_began_anew_has_no_rate_until_the_next_look(
    at: float, count: float
) -> None:
    rate = Rate()
    rate.update(10, 1000)

    assert None is rate.update(at, count)
    assert 7 == rate.update(at + 1, count + 7)
