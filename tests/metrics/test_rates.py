"""What became of growing numbers of late; time is handed in."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.metrics._rates import MINUTES, ByKey, Histogram, MovingRate, RollingMaximum, Window

# Moving averages.


def test_a_steady_rate_is_its_own_average() -> None:
    rate = MovingRate(0, now=100)

    for tick in range(1, 101):
        rate.update(10 * 5 * tick, now=100 + 5 * tick)

    assert rate.rates == pytest.approx((10, 10, 10))


def test_before_anything_was_seen_there_is_no_average() -> None:
    assert () == MovingRate(5, now=100).rates


def test_an_average_decays_in_its_own_time() -> None:
    """As Yammer's EWMA with its ticks of 5 s: 1 - exp(-5/60) of the way to the new rate."""
    rate = MovingRate(0, now=0)
    rate.update(500, now=5)

    rate.update(500, now=10)

    assert rate.rates == pytest.approx([100 * math.exp(-5 / minutes) for minutes in MINUTES])


@given(st.lists(st.tuples(st.floats(1, 100), st.integers(0, 1000)), min_size=1))
def test_averages_stay_between_the_lowest_and_the_highest_rate(
    steps: list[tuple[float, int]],
) -> None:
    rate, now, count = MovingRate(0, now=0), 0.0, 0
    rates = []
    for seconds, events in steps:
        now, count = now + seconds, count + events
        rates.append(events / seconds)
        rate.update(count, now)

    assert all(
        min(rates) - 1e-6 <= average <= max(rates) * (1 + 1e-6) + 1e-6 for average in rate.rates
    )


def test_two_looks_at_the_same_moment_are_one() -> None:
    rate = MovingRate(0, now=0)
    rate.update(100, now=10)
    before = rate.rates

    rate.update(200, now=10.5)

    assert before == rate.rates


# Windows.


def test_a_window_reports_what_came_since_it_began() -> None:
    window = Window([10, 100], now=0)

    assert (20, [5, 50]) == window.since([15, 150], now=20)


def test_only_the_last_windows_count() -> None:
    window = Window([0], now=0)
    window.since([10], now=30)  # the second window begins
    window.since([20], now=60)  # the third, and the first is forgotten

    assert (35, [15]) == window.since([25], now=65)


def test_a_rate_is_over_whole_windows_but_for_the_last() -> None:
    """Kafka: Rate.windowSize, so that the first event is no infinite rate."""
    window = Window([0], now=0)

    assert [30, 30, 45] == [window.rate_seconds(elapsed) for elapsed in (0, 10, 45)]


def test_a_single_window_that_begins_now_is_not_divided_by_zero() -> None:
    assert 0 < Window([0], now=0, samples=1).rate_seconds(0)


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 100)), min_size=1))
def test_what_grows_in_the_windows_is_never_more_than_everything(
    steps: list[tuple[float, int]],
) -> None:
    window, now, count = Window([0], now=0), 0.0, 0
    for seconds, events in steps:
        now, count = now + seconds, count + events

        elapsed, [grown] = window.since([count], now)

        assert 0 <= grown <= count
        assert 0 <= elapsed <= now
        # Two windows at most, and the time that nobody looked.
        assert elapsed <= 60 + 2 * max(seconds for seconds, _ in steps) + 1e-9


# By key.


def windows() -> ByKey[Window]:
    return ByKey(Window)


def grown(by_key: ByKey[Window], key: str, value: float, now: float) -> float:
    [growth] = by_key.get(key, [value], now).since([value], now)[1]
    return growth


def test_what_was_counted_before_the_first_look_is_left_out() -> None:
    by_key = windows()
    by_key.begin(now=0)

    assert 0 == grown(by_key, "a", 1000, now=0)


def test_what_was_0_when_it_began_has_counted_since() -> None:
    rates: ByKey[Window] = ByKey(Window, began_at=10)

    rates.begin(now=40)

    assert (30, [100]) == rates.get("a", [100], now=40).since([100], now=40)


def test_a_key_that_comes_later_has_counted_from_nothing() -> None:
    by_key = windows()
    by_key.begin(now=0)
    by_key.begin(now=5)

    assert 7 == grown(by_key, "b", 7, now=5)


def test_a_key_that_is_no_longer_asked_for_is_forgotten() -> None:
    by_key = windows()
    by_key.begin(now=0)
    first = by_key.get("a", [1], now=0)
    by_key.begin(now=5)
    assert first is by_key.get("a", [1], now=5)
    by_key.begin(now=10)
    by_key.begin(now=15)

    assert first is not by_key.get("a", [1], now=15)


# Maxima.


def test_a_maximum_is_that_of_the_last_two_windows() -> None:
    largest = RollingMaximum()
    assert 0 == largest.roll(now=0)
    largest.current = 9
    assert 9 == largest.roll(now=10)
    assert 9 == largest.roll(now=31)  # a new window begins
    largest.current = 4
    assert 9 == largest.roll(now=60)
    assert 9 == largest.roll(now=62)  # and another
    assert 4 == largest.roll(now=63)


VALUES = st.lists(st.integers(0, 2**63 - 1), min_size=1)


def of(*values: int) -> Histogram:
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    return histogram


def test_an_empty_one_says_0_to_everything() -> None:
    histogram = Histogram()

    assert (0, 0, 0, 0) == (
        histogram.count,
        histogram.maximum,
        histogram.quantile(0),
        histogram.quantile(1),
    )


@pytest.mark.parametrize("value", [0, 1, 7, 8, 15, 16, 17, 1000, 2**40, 2**64 - 1])
def test_a_single_value_is_every_quantile(value: int) -> None:
    histogram = of(value)

    assert (value, value, value) == (
        histogram.quantile(0.01),
        histogram.quantile(0.99),
        histogram.maximum,
    )


def test_small_values_are_exact() -> None:
    histogram = of(*range(16))

    assert [0, 3, 7, 15] == [histogram.quantile(part / 16) for part in (1, 4, 8, 16)]


def test_clearing_forgets_everything() -> None:
    histogram = of(5, 50, 500)

    histogram.clear()

    assert (0, 0, 0) == (histogram.count, histogram.maximum, histogram.quantile(0.5))
    histogram.record(3)
    assert 3 == histogram.quantile(1)


@given(VALUES, st.floats(0.001, 1))
def test_a_quantile_is_right_to_within_an_eighth(values: list[int], fraction: float) -> None:
    histogram = of(*values)

    exact = next(
        value for index, value in enumerate(sorted(values), 1) if index >= fraction * len(values)
    )
    assert exact <= histogram.quantile(fraction) <= exact + exact // 8


@given(VALUES)
def test_quantiles_rise_up_to_the_maximum(values: list[int]) -> None:
    histogram = of(*values)

    quantiles = [histogram.quantile(percent / 100) for percent in range(1, 101)]

    assert sorted(quantiles) == quantiles
    assert max(values) == quantiles[-1] == histogram.maximum
    assert len(values) == histogram.count


@given(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 9))))
def test_a_value_that_is_added_so_many_times_is_recorded_so_many_times(
    values: list[tuple[int, int]],
) -> None:
    added = Histogram()
    for value, count in values:
        added.add(value, count)

    recorded = of(*(value for value, count in values for _ in range(count)))
    assert recorded.counts() == added.counts()
    assert (recorded.count, recorded.maximum) == (added.count, added.maximum)


def test_counts_do_not_change_with_the_histogram() -> None:
    histogram = of(3)

    counts = histogram.counts()
    histogram.record(3)

    assert 1 == counts[3]
