"""What a run has found out, for people and for programs."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.cli.bench._results import (
    ROWS_MAX,
    Range,
    Result,
    Tally,
    Window,
    duration,
    plot,
    progress,
    ranges,
)
from trionet.metrics._rates import Histogram


def result(*times_ms: float, failed: int = 0) -> Result:
    tally = Tally(began=10.0)
    for number, ms in enumerate(times_ms):
        tally.count(1, 100, 10.5 + number)
        tally.took(ms / 1000)
    if failed:
        tally.fail(failed, "too large", 20.0)
    return Result(
        command="produce", target="orders", things="records", latency="until it is", tally=tally
    )


def test_people_read_rates_percentiles_and_a_plot() -> None:
    lines = list(result(1.0, 2.0, 2.0, 15.0).lines(is_unicode=True))

    assert "4 records, 400 bytes in 3.500 s: 1.14 records/s, 0.00 MiB/s" == lines[0]
    assert "latency until it is:" == lines[1]
    assert lines[2].startswith("  mean 5.00 ms  p50 2.0")
    assert lines[2].endswith("  max 15.0 ms")
    assert all(" %" in line for line in lines[3:])


def test_programs_read_the_same_as_json() -> None:
    document = json.loads(json.dumps(result(1.0, 3.0, failed=2).document()))

    assert {"command": "produce", "target": "orders", "records": 2, "failed": 2} == {
        name: document[name] for name in ("command", "target", "records", "failed")
    }
    assert (10.0, 0.2, 20.0) == (
        document["seconds"],
        document["records_per_second"],
        document["bytes_per_second"],
    )
    assert {"mean": 2.0, "max": 3.0} == {
        name: document["latency_ms"][name] for name in ("mean", "max")
    }
    assert 2 == sum(each["count"] for each in document["histogram"])
    assert "metrics" not in document


def test_a_run_in_which_nothing_happened_has_a_result() -> None:
    empty = result()

    assert ["0 records, 0 bytes in 0.000 s: 0 records/s, 0.00 MiB/s"] == list(
        empty.lines(is_unicode=True)
    )
    assert {} == empty.document()["latency_ms"]


def test_a_table_has_a_row_of_figures() -> None:
    table = result(1.0).table()

    row = dict(zip(table.fields, table.rows[0], strict=True))
    assert ("produce", 1, 1.0) == (row["command"], row["records"], row["max_ms"])


def test_progress_is_a_line_about_a_window() -> None:
    window = Window(records=1000, bytes=2**20, total_us=2_000_000, max_us=9000)

    assert "3 s: 2,000 records/s, 2.00 MiB/s, mean latency 2.00 ms, max 9.00 ms" == progress(
        "records", 3, window, 0.5, is_unicode=True
    )
    assert "3 s: 0 records/s, 0.00 MiB/s" == progress("records", 3, Window(), 1.0, is_unicode=True)
    assert "1.5 s: 0 records/s, 0.00 MiB/s" == progress(
        "records", 1.5, Window(), 0.5, is_unicode=True
    )


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
