from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from trionet.dashboard.drawing import _palette as palette
from trionet.dashboard.drawing._cells import ASCII, FINE, PICTURE, UNICODE, Glyphs, Line, Pen
from trionet.dashboard.drawing._graphs import (
    graph,
    heat_strip,
    legend,
    meter,
    samples,
    stacked_bar,
    time_axis,
    trend,
)

GLYPHS = pytest.mark.parametrize(
    "glyphs", [UNICODE, ASCII, FINE, PICTURE], ids=["unicode", "ascii", "fine", "picture"]
)
VALUES = st.lists(st.none() | st.floats(0, 1e9))


def pen(glyphs: Glyphs = UNICODE) -> Pen:
    return Pen(80, 24, glyphs)


def text(line: Line) -> str:
    return "".join(segment.text for segment in line)


@pytest.mark.parametrize(
    ("values", "width", "shown"),
    [
        ([0, 1, 4, 7], 7, "   ▁▂▅█"),
        ([0, 1, 4, 7], 2, "▅█"),
        ([0, None, 1], 3, "▁ █"),
        ([], 4, "    "),
        ([1], 0, ""),
    ],
)
def test_a_trend_has_the_newest_at_the_right(
    values: list[float | None], width: int, shown: str
) -> None:
    assert shown == text(trend(values, width, pen()))


def test_a_trend_has_ascii_where_nothing_else_can_be_shown() -> None:
    assert "_:.#" == text(trend([0, 2, 0.01, 7], 4, pen(ASCII)))


def test_of_fine_dots_a_cell_has_two_values() -> None:
    assert 8 == samples(4, pen(FINE))
    assert "⢀⣤⣶⣾" == text(trend([0, 1, 2, 3, 4, 5, 6], 4, pen(FINE)))
    assert "⡀⢸" == text(trend([0, None, None, 1], 2, pen(FINE)))


def test_a_graph_of_several_lines_goes_on_in_the_line_above() -> None:
    assert ["  ▁▇", "▁▃██"] == [text(line) for line in graph([0, 1, 5, 9], 4, 2, pen())]
    assert ["  ⢰", "⣀⣼⣿"] == [text(line) for line in graph([0, 0, 2, 4, 5, 9], 3, 2, pen(FINE))]


def test_fine_graphs_are_coloured_by_height() -> None:
    [lower, higher] = trend([1, 1, 9, 9], 2, pen(FINE))
    [[top], [bottom]] = graph([1, 1, 9, 9], 2, 2, pen(FINE))

    blocks = trend([1, 9], 2, pen(PICTURE))
    assert "▂█" == text(blocks)
    assert [1, 7] == [palette.RAMP.index(each.style) for each in blocks if each.style]
    assert [2, 7] == [palette.RAMP.index(each.style) for each in (lower, higher) if each.style]
    assert (palette.RAMP[-1], palette.RAMP[0]) == (top.style, bottom.style)


@GLYPHS
@given(values=VALUES, width=st.integers(0, 40), height=st.integers(1, 4))
def test_a_graph_is_as_large_as_it_should_be(
    glyphs: Glyphs, values: list[float | None], width: int, height: int
) -> None:
    lines = graph(values, width, height, pen(glyphs))

    assert [width] * height == [len(text(line)) for line in lines]


@given(values=st.lists(st.floats(0, 1e9), min_size=1, max_size=40))
def test_zero_is_lower_than_anything_above_it(values: list[float]) -> None:
    [line] = graph(values, len(values), 1, pen())

    for value, cell in zip(values, text(line), strict=True):
        assert (cell == UNICODE.ramp[0]) == (value == 0)


def test_a_time_axis_begins_below_the_oldest_value_and_ends_below_the_newest() -> None:
    assert "40 s ago         now" == time_axis(40, 20, 20, pen()).text
    assert "    40 s ago     now" == time_axis(40, 16, 20, pen()).text
    assert "    40 s ago     now" == time_axis(40, 32, 20, pen(FINE)).text


def test_a_time_axis_without_room_for_both_ends_says_the_time_between() -> None:
    assert "           last 40 s" == time_axis(40, 11, 20, pen()).text
    assert "last 40 s" == time_axis(40, 3, 3, pen()).text


@GLYPHS
@given(fraction=st.floats(-1, 2), width=st.integers(0, 40))
def test_a_meter_is_as_wide_as_it_should_be(glyphs: Glyphs, fraction: float, width: int) -> None:
    assert width == len(text(meter(fraction, width, pen(glyphs))))


def test_anything_above_nothing_is_seen_on_a_meter() -> None:
    assert "█░░░" == text(meter(0.001, 4, pen()))
    assert "╸───" == text(meter(0.001, 4, pen(FINE)))
    assert "────" == text(meter(0, 4, pen(FINE)))
    assert "━━╸─" == text(meter(0.6, 4, pen(FINE)))


NAMES = ("queue", "response queue", "send")


def test_parts_differ_by_glyph_or_by_name() -> None:
    parts = [6, 3, 1]

    assert "██████▓▓▓▒" == text(stacked_bar(parts, 10, pen(), NAMES))
    assert "queue rq s" == text(stacked_bar(parts, 10, pen(FINE), NAMES))
    assert "██▓▓" == text(stacked_bar([1, 1], 4, pen(FINE)))


@GLYPHS
def test_the_legend_names_the_parts(glyphs: Glyphs) -> None:
    shown = text(legend(NAMES, pen(glyphs)))

    assert all(name in shown for name in NAMES)


@GLYPHS
def test_a_strip_is_denser_where_values_are_larger(glyphs: Glyphs) -> None:
    shown = text(heat_strip([0, 0.1, 5, 10], 10, pen(glyphs)))

    assert "".join(glyphs.shades[step] for step in (0, 1, 2, 4)) == shown
    assert 4 == cell_len(shown)
