"""Axes name round values, not too many, and have room for all that is drawn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.spark.pipeline.report.html._scales import Linear, Logarithmic, time_ticks

START = datetime(2026, 3, 1, 22, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("largest", "ticks"),
    [
        (0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (5, [0, 1, 2, 3, 4, 5]),
        (130, [0, 50, 100, 150]),
        (47_000, [0, 10_000, 20_000, 30_000, 40_000, 50_000]),
    ],
)
def test_a_linear_axis_begins_at_nothing_and_names_round_values(
    largest: float, ticks: list[float]
) -> None:
    assert pytest.approx(ticks) == Linear.over(largest).ticks()


@given(st.floats(1e-6, 1e15))
def test_a_linear_axis_has_room_for_the_largest(largest: float) -> None:
    scale = Linear.over(largest)

    assert 0.49 <= scale.place(largest) <= 1 + 1e-6
    assert len(scale.ticks()) <= 8


def test_a_logarithmic_axis_names_powers_of_ten() -> None:
    assert [100, 1_000, 10_000] == Logarithmic.over(230, 9_900).ticks()


@given(st.floats(0, 1e12), st.floats(0, 1e12))
def test_a_logarithmic_axis_has_room_for_all(one: float, another: float) -> None:
    low, high = sorted([one, another])
    scale = Logarithmic.over(low, high)

    assert 0 <= scale.place(low) <= scale.place(high) <= 1 + 1e-9


@pytest.mark.parametrize(
    ("minutes", "texts"),
    [
        (4, ["03-01 22:07", "22:08", "22:09", "22:10", "22:11"]),
        (180, ["03-01 22:30", "23:00", "23:30", "03-02 00:00", "00:30", "01:00"]),
        (60 * 24 * 4, ["03-02 00:00", "12:00", "03-03 00:00", "12:00", "03-04 00:00", "12:00"]),
    ],
)
def test_an_axis_of_time_names_round_times_and_the_day_where_it_begins(
    minutes: int, texts: list[str]
) -> None:
    found = time_ticks(START, START + timedelta(minutes=minutes))

    assert texts == [text for _, text in found][: len(texts)]
    assert all(START <= time <= START + timedelta(minutes=minutes) for time, _ in found)


@given(st.integers(1, 60 * 24 * 3000))
def test_an_axis_of_time_is_never_crowded(minutes: int) -> None:
    assert len(time_ticks(START, START + timedelta(minutes=minutes))) <= 10
