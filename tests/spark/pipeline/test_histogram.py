from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark.pipeline.logged import nearest_rank
from trionet.spark.pipeline.histogram import (
    BUCKETS_MAX,
    ERROR_MAX,
    EXACT_BELOW,
    bucket,
    middle,
    percentile,
    percentiles,
)

UINT32_MAX = (1 << 32) - 1
TIMES = st.integers(0, UINT32_MAX) | st.integers(0, 1000)


def test_small_numbers_are_reported_as_they_are() -> None:
    numbers = np.arange(EXACT_BELOW)

    assert numbers.tolist() == middle(bucket(numbers)).tolist()


@given(TIMES)
def test_a_number_is_reported_within_the_error(number: int) -> None:
    told = int(middle(bucket(np.array([number])))[0])

    assert abs(told - number) <= ERROR_MAX * number


def test_buckets_ascend_without_a_gap_and_fit() -> None:
    edges = [n + d for shift in range(7, 33) for n in (1 << shift,) for d in (-1, 0)]
    found = bucket(np.array([min(each, UINT32_MAX) for each in edges]))

    steps = np.diff(found)
    assert {0, 1} >= set(steps[0::2].tolist())
    assert int(found[-1]) < BUCKETS_MAX


@given(st.lists(TIMES, min_size=1, max_size=300), st.sampled_from([1, 500, 950, 990, 999, 1000]))
def test_a_percentile_is_the_nearest_rank_within_one_percent(times: list[int], q: int) -> None:
    buckets, counts = np.unique(bucket(np.array(times)), return_counts=True)

    exact = nearest_rank(times, q)

    assert abs(percentile(buckets, counts, q) - exact) <= 0.01 * exact


@pytest.mark.parametrize("per_mille", [500, 999])
def test_the_percentile_of_nothing_is_0(per_mille: int) -> None:
    nothing = np.zeros(0, np.int64)

    assert 0 == percentile(nothing, nothing, per_mille)


def test_histograms_one_after_the_other_do_not_mix() -> None:
    buckets, counts = np.array([3, 9, 1, 100]), np.array([9, 1, 1, 1])
    bounds = np.array([0, 2, 2, 4])

    assert [3, 0, 1] == percentiles(buckets, counts, bounds, 500).tolist()
    assert [9, 0, 100] == percentiles(buckets, counts, bounds, 999).tolist()
