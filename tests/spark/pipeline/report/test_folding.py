"""Bins of a chart, histograms of many minutes, and the report that is made of queries' results."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark.pipeline.report.samples import HOSTILE, minute, report_of, sample
from spark.pipeline.results_folder import requests
from trionet.spark.pipeline._partials import PHASES
from trionet.spark.pipeline.histogram import BUCKETS_MAX, ERROR_MAX, bucket
from trionet.spark.pipeline.report._figures import BINS_MAX, SHARES, Bins
from trionet.spark.pipeline.report._folding import Buckets, by_phase, grouped, heat

START = datetime(2026, 3, 1, 12, 7, tzinfo=UTC)


def over(minutes: int) -> Bins:
    return Bins.over(START, START + timedelta(minutes=minutes))


@pytest.mark.parametrize(
    ("minutes", "seconds", "count"),
    [(1, 60, 1), (120, 60, 120), (121, 120, 61), (1440, 900, 96), (60 * 24 * 365, 604800, 53)],
)
def test_bins_are_as_short_as_there_is_room_for(minutes: int, seconds: int, count: int) -> None:
    assert (seconds, count) == (over(minutes).seconds, over(minutes).count)


@given(st.integers(1, 60 * 24 * 365 * 300))
def test_every_minute_is_in_one_of_not_too_many_bins(minutes: int) -> None:
    bins = over(minutes)
    last = START + timedelta(minutes=minutes - 1)

    assert 1 <= bins.count <= BINS_MAX
    assert bins.count - 1 <= bins.place(last) < bins.count


def test_the_last_bin_is_covered_as_far_as_there_are_results() -> None:
    bins = over(121)

    assert [120.0] * 60 + [60.0] == bins.covered(START + timedelta(minutes=121))


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


REPORT = report_of(sample())


def test_sums_are_of_all_minutes() -> None:
    assert (minute(0), minute(10), 10, 2) == (
        REPORT.start,
        REPORT.end,
        REPORT.windows,
        REPORT.clients,
    )
    traffic = REPORT.traffic
    assert (1025, 1025, 5) == (traffic.records, traffic.requests, traffic.errors)
    assert (102_500, 51_250) == (traffic.request_bytes, traffic.response_bytes)
    assert 200_000 == traffic.max_us


def test_apis_come_by_how_often_they_are_asked() -> None:
    produce, fetch = REPORT.apis

    assert ("Produce", 1000) == (produce.name, produce.traffic.requests)
    assert ("Fetch", 25) == (fetch.name, fetch.traffic.requests)


def test_percentiles_of_an_api_are_of_all_its_requests() -> None:
    """720 took 1 ms, 180 took 9 ms, and 100 took 50 ms; the mean of the minutes' p50 is 2.6 ms."""
    produce, fetch = (api.percentiles["total"] for api in REPORT.apis)

    assert produce["p50"] == pytest.approx(1000, rel=ERROR_MAX)
    assert produce["p95"] == pytest.approx(50_000, rel=ERROR_MAX)
    assert 200_000 >= (fetch["p99.9"] or 0) >= 200_000 * (1 - ERROR_MAX)


def test_a_talker_has_its_share_of_requests_bytes_and_time() -> None:
    shop, other = REPORT.talkers

    assert ("shop", HOSTILE) == (shop.client_id, other.client_id)
    assert 1000 / 1025 == shop.request_share == shop.byte_share
    assert other.time_share == pytest.approx(25 * 200_000 / (25 * 200_000 + 7_340_000))


def test_errors_of_all_minutes_are_together() -> None:
    told = [(each.api, each.end, each.error, each.requests) for each in REPORT.errors]

    assert [
        ("Produce", "answered", "NOT_LEADER_OR_FOLLOWER", 5),
        ("Fetch", "gone", "NONE", 2),
    ] == told


def test_connections_are_counted_by_reason() -> None:
    [close] = REPORT.closes

    assert ("PEER_CLOSED", 4, 3e6) == (close.reason, close.connections, close.open_mean_us)


def test_what_happened_when() -> None:
    line = REPORT.timeline

    assert [60.0] * 10 == line.seconds
    assert ["Produce", "Fetch"] == list(line.requests)
    assert [5.0, 0.0] * 5 == line.requests["Fetch"]
    assert [0.0, 1.0] * 5 == line.errors["NOT_LEADER_OR_FOLLOWER"]
    assert 2.0 == line.errors["connection gone"][0]
    assert line.percentiles["p50"] == pytest.approx([1000.0] * 8 + [9000.0] * 2, rel=ERROR_MAX)
    assert line.slowest["Fetch"][1::2] == [None] * 5
    assert 1025 == sum(cell.requests for cell in line.heat)


def test_a_minute_without_requests_has_a_rate_but_no_percentile() -> None:
    line = report_of({"requests": [requests(minute(0), [5]), requests(minute(2), [7])]}).timeline

    assert [1.0, 0.0, 1.0] == line.requests["Produce"]
    assert [5.0, None, 7.0] == line.percentiles["p99"]
