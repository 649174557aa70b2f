"""Percentiles of a longer time come from the buckets of all its minutes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.spark.pipeline.aggregation._partials import PHASES
from trionet.spark.pipeline.histogram import BUCKETS_MAX, ERROR_MAX, bucket
from trionet.spark.pipeline.report.data._figures import SHARES
from trionet.spark.pipeline.report.data._histograms import Buckets, by_phase, grouped, heat

MINUTES = st.lists(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=40), max_size=8)


def merged(minutes: list[list[int]]) -> Buckets:
    """As the minutes of a folder are: each has counted its buckets by itself."""
    each = [np.unique(bucket(np.array(times)), return_counts=True) for times in minutes]
    nothing = np.empty(0, np.int64)
    numbers = np.concatenate([nothing, *(buckets for buckets, _ in each)])
    return Buckets.of(numbers, np.concatenate([nothing, *(counts for _, counts in each)]))


@given(MINUTES)
def test_a_percentile_of_many_minutes_is_that_of_all_their_requests_within_its_error(
    minutes: list[list[int]],
) -> None:
    times = sorted(time for each in minutes for time in each)

    percentiles = merged(minutes).percentiles()

    for name, per_mille in SHARES.items():
        if not times:
            assert percentiles[name] is None
        else:
            exact = times[math.ceil(len(times) * per_mille / 1000) - 1]
            assert percentiles[name] == pytest.approx(exact, rel=ERROR_MAX, abs=0)


def test_a_busy_minute_weighs_more_than_a_quiet_one() -> None:
    """The average of the minutes' percentiles would be 5,050."""
    assert 100.0 == merged([[100] * 999, [10_000]]).percentiles()["p50"]


def test_no_percentile_is_beyond_the_largest() -> None:
    assert 1_000.0 == merged([[1_000]]).percentiles(1_000)["p99.9"]


def test_cells_are_the_buckets_of_all_phases() -> None:
    cells = np.array([3, 6 * BUCKETS_MAX + 7, 6 * BUCKETS_MAX + 7, BUCKETS_MAX + 1])

    found = by_phase(cells, np.array([1, 2, 3, 4]))

    told = {phase: (each.numbers.tolist(), each.counts.tolist()) for phase, each in found.items()}
    assert list(PHASES) == list(told)
    assert ([3], [1]) == told["request_queue"]
    assert ([1], [4]) == told["local"]
    assert ([7], [5]) == told["total"]
    assert ([], []) == told["remote"]


def test_rows_are_found_by_their_key() -> None:
    found = [(key, rows.tolist()) for key, rows in grouped(np.array([5, 2, 5]))]

    assert [(2, [1]), (5, [0, 2])] == found
    assert [] == list(grouped(np.empty(0, np.int64)))


@given(MINUTES)
def test_a_heatmap_has_each_request_once_between_the_right_bounds(
    minutes: list[list[int]],
) -> None:
    times = [time for each in minutes for time in each]

    cells = list(heat(4, merged(minutes)))

    assert len(times) == sum(cell.requests for cell in cells)
    assert {4} >= {cell.bin for cell in cells}
    for cell in cells:
        low, high = cell.low * (1 - ERROR_MAX), cell.high * (1 + ERROR_MAX)
        assert cell.requests <= sum(low <= max(1, time) <= high for time in times)
