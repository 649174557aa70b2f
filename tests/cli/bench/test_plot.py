"""A histogram as lines of text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.cli.bench._result import ROWS_MAX, Range, duration, plot, ranges
from trionet.metrics._rates import Histogram


def of(*values: int) -> list[int]:
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    return histogram.counts()


def test_nothing_has_no_ranges() -> None:
    assert [] == ranges(of())
    assert [] == list(plot([], is_unicode=True))


def test_few_values_have_a_range_of_their_own() -> None:
    assert [Range(3, 4, 2), Range(4, 5, 0), Range(5, 6, 1)] == ranges(of(3, 3, 5))


def test_many_values_share_ranges_that_begin_at_powers_of_two() -> None:
    found = ranges(of(1, 100, 1000, 5000))

    assert [0, 8, 16, 32, 64] == [each.from_us for each in found][:5]
    assert [Range(64, 128, 1), Range(4096, 8192, 1)] == [found[4], found[-1]]


@given(st.lists(st.integers(0, 60_000_000), min_size=1))
def test_each_value_is_in_its_range_and_there_is_room_for_all(values: list[int]) -> None:
    found = ranges(of(*values))

    assert len(found) <= ROWS_MAX
    assert [sum(each.from_us <= value < each.to_us for value in values) for each in found] == [
        each.count for each in found
    ]
    assert len(values) == sum(each.count for each in found)
    assert [each.to_us for each in found[:-1]] == [each.from_us for each in found[1:]]


def test_the_longest_bar_is_as_long_as_can_be_and_the_shares_add_up() -> None:
    found = [Range(0, 1000, 1), Range(1000, 2000, 80), Range(2000, 3000, 19)]

    lines = list(plot(found, is_unicode=True))

    assert [
        "     0 µs to   1.00 ms ▌                                                    1   1.00 %",
        f"  1.00 ms to   2.00 ms {'█' * 40}            80  81.00 %",
        "  2.00 ms to   3.00 ms █████████▌                                          19 100.00 %",
    ] == lines


def test_a_terminal_without_unicode_has_bars_too() -> None:
    lines = list(plot([Range(0, 1000, 1), Range(1000, 2000, 99)], is_unicode=False))

    assert lines[0].startswith("     0 us to   1.00 ms #  ")
    assert lines[1].startswith(f"  1.00 ms to   2.00 ms {'#' * 40} ")
    assert all(line.isascii() for line in lines)


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0 µs"),
        (999.4, "999 µs"),
        (999.6, "1.00 ms"),
        (12_345, "12.3 ms"),
        (123_456, "123 ms"),
        (999_600, "1.00 s"),
        (61_000_000, "61.0 s"),
        (86_400_000_000, "86,400 s"),
    ],
)
def test_a_time_has_three_digits_and_the_unit_that_fits(microseconds: float, text: str) -> None:
    assert text == duration(microseconds, is_unicode=True)
