"""Rates over windows, and the delays that hold them: Kafka's arithmetic, without a clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.server.quotas._creation_rate import CreationRate


def rate_of(*times: float, windows: int = 11, window_seconds: float = 1) -> CreationRate:
    rate = CreationRate(windows, window_seconds)
    for now in times:
        rate.record(now)
    return rate


def test_nothing_recorded_is_a_rate_of_0() -> None:
    rate = rate_of()

    assert (0, 0) == (rate.per_second(5), rate.delay(1, 5))


def test_missing_windows_count_as_empty_ones() -> None:
    """Ten connections in the first instant are one a second, not infinitely many."""
    rate = rate_of(*[100.0] * 10)

    assert 10 == rate.measured_seconds(100)
    assert 1 == rate.per_second(100)


def test_the_window_in_progress_counts_as_far_as_it_has_passed() -> None:
    rate = rate_of(100.0, 100.75)

    assert 10.75 == pytest.approx(rate.measured_seconds(100.75))
    assert 2 / 10.75 == pytest.approx(rate.per_second(100.75))


def test_a_single_window_that_begins_now_is_not_divided_by_0() -> None:
    rate = rate_of(100.0, windows=1)

    assert 1000 == pytest.approx(rate.per_second(100))


def test_a_window_is_forgotten_when_all_of_them_have_passed() -> None:
    rate = rate_of(*[0.0] * 22)

    assert 22 / 10.5 == pytest.approx(rate.per_second(10.5))
    assert 0 == rate.per_second(11)


def test_a_window_begins_with_the_first_after_the_one_before() -> None:
    """Those of 1.5 and 2.4 are in one window, and are forgotten together."""
    rate = rate_of(0.0, 1.5, 2.4)

    assert 2 / 10.5 == pytest.approx(rate.per_second(11.0))
    assert 2 / 10.9 == pytest.approx(rate.per_second(12.4))
    assert 0 == rate.per_second(12.5)


def test_there_are_never_more_windows_than_asked_for() -> None:
    rate = rate_of(*range(100), windows=3)

    assert 3 == len(rate._windows)
    assert 3 / 2 == pytest.approx(rate.per_second(99))


def test_the_delay_is_what_brings_the_rate_down_to_the_limit() -> None:
    """(rate - limit) / limit of the seconds measured: 15.1 a second in 10 s, 15 in 0.067 s more."""
    rate = rate_of(*[100.0] * 151)

    assert 0.067 == rate.delay(15, 100)
    assert 0 == rate.delay(15.1, 100)


def test_the_delay_is_one_window_at_most() -> None:
    rate = rate_of(*[0.0] * 1000, windows=4, window_seconds=2)

    assert 2 == rate.delay(1, 0)


def test_a_limit_of_0_delays_by_a_whole_window() -> None:
    assert 1 == rate_of(0.0).delay(0, 0)


def test_a_delay_of_less_than_half_a_millisecond_is_none() -> None:
    rate = rate_of(*[0.0] * 100_001)

    assert 10_000.1 == rate.per_second(0)
    assert 0 == rate.delay(10_000, 0)


def test_what_was_taken_back_does_not_count() -> None:
    rate = rate_of(*[0.0] * 20)

    for _ in range(10):
        rate.unrecord(0.5)

    assert 10 / 10.5 == pytest.approx(rate.per_second(0.5))


@pytest.mark.slow
@given(st.integers(1, 500), st.floats(0, 0.99))
def test_a_steady_stream_within_the_limit_is_never_delayed(per_second: int, begin: float) -> None:
    """One above what the windows hold is within what Kafka measures as the same rate."""
    rate = CreationRate()
    limit = per_second + 0.1

    delays = []
    for number in range(13 * per_second):
        now = begin + number / per_second
        rate.record(now)
        delays.append(rate.delay(limit, now))

    assert {0} == set(delays)


@pytest.mark.slow
@given(st.integers(1, 50), st.integers(1, 20))
def test_who_waits_out_every_delay_comes_down_to_the_limit(limit: int, too_fast: int) -> None:
    rate = CreationRate()
    now = 0.0
    times = []
    for _ in range(30 * limit):
        now += 1 / (limit * (1 + too_fast))
        rate.record(now)
        now += rate.delay(limit, now)
        times.append(now)

    last_ten = sum(time > now - 10 for time in times)
    assert last_ten <= 10 * limit * 1.2 + 1
