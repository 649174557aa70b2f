"""Numbers with their unit, short enough for a column."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.spark.pipeline.report.text._quantities import (
    count,
    duration,
    rate,
    rounded,
    share,
    size,
)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (count(0), "0"),
        (count(999_999), "999,999"),
        (count(1_234_567), "1.23 M"),
        (count(2_500_000_000), "2.50 G"),
        (rate(0), "0.0/s"),
        (rate(0.25), "0.250/s"),
        (rate(12.34), "12.3/s"),
        (rate(20_000), "20,000/s"),
        (rate(1_500_000), "1.50 M/s"),
        (size(12), "12 B"),
        (size(1_234), "1.23 kB"),
        (size(999_700), "1.00 MB"),
        (size(12_300_000_000), "12.3 GB"),
        (share(0), "0.00%"),
        (share(0.000_001), "<0.01%"),
        (share(0.0123), "1.23%"),
        (share(1), "100.0%"),
        (duration(None), "-"),
        (duration(0), "0 µs"),
        (duration(96), "96.0 µs"),
        (duration(1_234), "1.23 ms"),
        (duration(999_700), "1.00 s"),
        (duration(90e6), "90.0 s"),
        (duration(600e6), "10.0 min"),
        (duration(45_965e6), "12.8 h"),
        (duration(30 * 86400e6), "30.0 d"),
    ],
)
def test_a_number_is_written_with_three_digits_and_its_unit(written: str, expected: str) -> None:
    assert expected == written


def test_a_round_number_can_do_without_its_zeros() -> None:
    written = ("10.0 ms", "1.00/s", "1.50 s", "100 kB", "2,000/s")
    assert ["10 ms", "1/s", "1.50 s", "100 kB", "2,000/s"] == [rounded(each) for each in written]


@given(st.floats(0, 1e16))
def test_any_number_is_short(value: float) -> None:
    assert all(len(each(value)) <= 14 for each in (count, size, rate, duration))
