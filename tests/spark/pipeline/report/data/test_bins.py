"""Any range of time is cut into no more bins than a chart has room for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.spark.pipeline.report.data._bins import BINS_MAX, Bins

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
