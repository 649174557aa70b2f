from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.metrics._histogram import Histogram

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
