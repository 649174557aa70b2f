"""Axes name round values, not too many, and have room for all that is drawn.

Drawings whose every place can be calculated: 20 from the top is the top of the axis.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.spark.pipeline.report._charts import (
    HEIGHT,
    WIDTH,
    Bar,
    Linear,
    Logarithmic,
    Mark,
    Series,
    heatmap,
    lines,
    stacked_bars,
    stacked_columns,
    time_ticks,
)
from trionet.spark.pipeline.report._figures import Bins, Heat
from trionet.spark.pipeline.report._sections import count, duration, rate

AXIS_START = datetime(2026, 3, 1, 22, 7, tzinfo=UTC)


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


@given(st.integers(0, 10**12))
def test_no_two_values_of_an_axis_of_counts_are_written_alike(largest: int) -> None:
    drawing = stacked_columns("Errors", FOUR, [Series("a", [float(largest)] * 4)], count)

    labels = values_of_axis(drawing)
    assert len(labels) == len(set(labels))


def test_an_axis_of_few_counts_has_no_halves() -> None:
    drawing = stacked_columns("Errors", FOUR, [Series("a", [0.0, 2.0, 1.0, 0.0])], count)

    assert ["0", "1", "2"] == values_of_axis(drawing)


@given(st.floats(1e-9, 1e12))
def test_no_two_values_of_an_axis_of_rates_are_written_alike(largest: float) -> None:
    drawing = lines("Rate", FOUR, [Series("a", [largest] * 4)], rate)

    labels = values_of_axis(drawing)
    assert len(labels) == len(set(labels))


@given(st.floats(1, 1e14), st.floats(1, 1e14))
def test_no_two_values_of_an_axis_of_times_are_written_alike(one: float, another: float) -> None:
    series = [Series("a", [one, another, one, another])]
    drawing = lines("Time", FOUR, series, duration, is_logarithmic=True)

    labels = values_of_axis(drawing)
    assert len(labels) == len(set(labels))


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
    found = time_ticks(AXIS_START, AXIS_START + timedelta(minutes=minutes))

    assert texts == [text for _, text in found][: len(texts)]
    assert all(AXIS_START <= time <= AXIS_START + timedelta(minutes=minutes) for time, _ in found)


@given(st.integers(1, 60 * 24 * 3000))
def test_an_axis_of_time_is_never_crowded(minutes: int) -> None:
    assert len(time_ticks(AXIS_START, AXIS_START + timedelta(minutes=minutes))) <= 10


START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
FOUR = Bins(START, 60, 4)
TOP, FOOT, LEFT, RIGHT = 16.0, 232.0, 72.0, 876.0


def written(value: float) -> str:
    return f"{value:g}"


def classed(drawing: Element, name: str) -> list[Element]:
    return [each for each in drawing.iter() if name in (each.get("class") or "").split()]


def points(path: Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([\d.]+),([\d.]+)", path.get("d") or "")]


def floats(element: Element, *names: str) -> list[float]:
    return [float(element.get(name) or "nan") for name in names]


def texts(drawing: Element) -> list[str]:
    return [each.text or "" for each in drawing.iter("text")]


def values_of_axis(drawing: Element) -> list[str]:
    return [each.text or "" for each in drawing.iter("text") if each.get("class") == "end"]


def test_a_line_goes_through_the_middle_of_each_bin_at_the_height_of_its_value() -> None:
    drawing = lines("Rate", FOUR, [Series("a", [0.0, 5.0, 10.0, 10.0])], written)

    [path] = classed(drawing, "s0")
    middles = [LEFT + (RIGHT - LEFT) * (n + 0.5) / 4 for n in range(4)]
    heights = [FOOT, (TOP + FOOT) / 2, TOP, TOP]
    assert middles == [x for x, _ in points(path)]
    assert heights == [y for _, y in points(path)]


def test_on_a_logarithmic_axis_ten_times_as_much_is_one_step() -> None:
    series = [Series("a", [10.0, 100.0, 1000.0, 100.0])]
    drawing = lines("Time", FOUR, series, written, is_logarithmic=True)

    [path] = classed(drawing, "s0")
    middle = (TOP + FOOT) / 2
    assert [FOOT, middle, TOP, middle] == [y for _, y in points(path)]


def test_a_line_has_a_gap_where_it_has_no_value_and_a_dot_between_two() -> None:
    drawing = lines("Time", Bins(START, 60, 5), [Series("a", [1.0, 2.0, None, 3.0, None])], written)

    first, dot = classed(drawing, "s0")
    assert 2 == len(points(first))
    assert 2 == len(points(dot))
    assert points(dot)[0] == points(dot)[1]


def test_what_is_pointed_at_is_said_in_words() -> None:
    drawing = lines("Rate", FOUR, [Series("Fetch", [1.0, 2.0, 3.0, 4.0])], written)

    said = [each.text for each in drawing.iter("title")]
    assert "Fetch, 2026-03-01 12:01 UTC: 2" in said


def test_columns_stand_on_one_another() -> None:
    series = [Series("a", [4.0, 0.0, None, 1.0]), Series("b", [6.0, 2.0, None, 0.0])]
    drawing = stacked_columns("Errors", FOUR, series, written)

    [lower, alone_lower] = [floats(each, "y", "height") for each in classed(drawing, "f0")]
    [upper, alone] = [floats(each, "y", "height") for each in classed(drawing, "f1")]
    each = (FOOT - TOP) / 10
    assert lower == pytest.approx([FOOT - 4 * each, 4 * each], abs=0.1)
    assert upper == pytest.approx([TOP, 6 * each], abs=0.1)
    assert alone == pytest.approx([FOOT - 2 * each, 2 * each], abs=0.1)
    assert alone_lower == pytest.approx([FOOT - each, each], abs=0.1)


def test_a_heatmap_is_darkest_where_most_is() -> None:
    cells = [Heat(0, 10.0, 100.0, 100), Heat(1, 100.0, 1000.0, 1)]
    drawing = heatmap("Times", FOUR, cells, written)

    most, least = classed(drawing, "heat")
    assert 1 == float(most.get("opacity") or 0)
    assert 0 < float(least.get("opacity") or 0) < 0.2
    middle = (TOP + FOOT) / 2
    assert [middle, middle - TOP] == floats(most, "y", "height")
    assert [TOP, middle - TOP] == floats(least, "y", "height")


def test_a_cell_below_the_axis_of_a_heatmap_is_still_visible() -> None:
    cells = [Heat(0, 0.0, 1.0, 5), Heat(1, 10.0, 100.0, 1)]

    lowest, _ = classed(heatmap("Times", FOUR, cells, written), "heat")

    assert [FOOT, 0.5] == floats(lowest, "y", "height")


def test_a_mark_stands_at_its_time() -> None:
    mark = Mark(START + timedelta(minutes=2), "p99 was 9 ms")
    drawing = lines("Rate", FOUR, [Series("a", [1.0] * 4)], written, marks=[mark])

    [found] = classed(drawing, "mark")
    middle = (LEFT + RIGHT) / 2
    assert [middle, middle] == floats(found[1], "x1", "x2")
    assert "2026-03-01 12:02 UTC: p99 was 9 ms" == found[0].text


def test_the_legend_names_each_series_with_its_colour() -> None:
    drawing = lines("Rate", FOUR, [Series("a", [1.0] * 4), Series("b", [2.0] * 4)], written)

    legend = [(each[0].get("class"), each[0].tail) for each in drawing.iter("li")]
    assert [("key b0", "a"), ("key b1", "b")] == legend


def test_axes_have_round_values_and_times() -> None:
    drawing = lines("Rate", FOUR, [Series("a", [5.0] * 4)], lambda value: f"{value:.2f} ms")

    assert ["0 ms", "1 ms", "2 ms", "3 ms", "4 ms", "5 ms"] == texts(drawing)[:6]
    assert "03-01 12:00" in texts(drawing)


def test_nothing_to_draw_is_still_a_drawing() -> None:
    for drawing in (
        lines("Rate", FOUR, [], written),
        lines("Time", FOUR, [Series("a", [None] * 4)], written, is_logarithmic=True),
        stacked_columns("Errors", FOUR, [], written),
        heatmap("Times", FOUR, [], written),
    ):
        [found] = drawing.iter("svg")
        assert f"0 0 {WIDTH} {HEIGHT}" == found.get("viewBox")


def test_a_bar_is_divided_as_its_parts_are() -> None:
    bars = [Bar("Produce", [30.0, 0.0, 10.0]), Bar("Fetch", [0.0, 0.0, 0.0])]
    drawing = stacked_bars("Phases", bars, ["local", "remote", "send"], written)

    [local] = [floats(each, "x", "width") for each in classed(drawing, "f0")]
    [send] = [floats(each, "x", "width") for each in classed(drawing, "f2")]
    assert [] == classed(drawing, "f1")
    assert local[1] == pytest.approx(3 * send[1])
    assert send[0] == pytest.approx(sum(local))
    assert ["Produce", "40", "Fetch", "0"] == texts(drawing)
    assert "Produce, send: 10 (25.0%)" in [each.text for each in drawing.iter("title")]
