from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trionet.dashboard.drawing import _units as units


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (0, "0"),
        (999, "999"),
        (99_999, "99,999"),
        (99_999.7, "100k"),
        (1_234_567, "1.2M"),
        (999_600, "1.0M"),
        (12e9, "12G"),
        (float("nan"), "-"),
    ],
)
def test_counts(value: float | None, shown: str) -> None:
    assert shown == units.count(value)


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0"), (0.25, "0.2"), (9.94, "9.9"), (9.96, "10"), (1500, "1,500")]
)
def test_rates(value: float, shown: str) -> None:
    assert shown == units.rate(value)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 B"), (1023, "1023 B"), (1023.6, "1.0 KiB"), (1536, "1.5 KiB"), (10 << 30, "10 GiB")],
)
def test_sizes(value: float, shown: str) -> None:
    assert shown == units.size(value)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "-"),
        (0, "0 s"),
        (0.000_35, "350 µs"),
        (0.000_9996, "1.0 ms"),
        (0.0012, "1.2 ms"),
        (0.0996, "100 ms"),
        (0.9996, "1.0 s"),
        (9.96, "10 s"),
        (59.6, "1m 00s"),
        (192, "3m 12s"),
        (3_599.6, "1h 00m"),
        (7_500, "2h 05m"),
        (3 * 86_400 + 4 * 3_600, "3d 04h"),
        (1e9, "11,574d"),
    ],
)
def test_durations(seconds: float | None, shown: str) -> None:
    assert shown == units.duration(seconds)


@pytest.mark.parametrize(
    ("fraction", "shown"), [(0, "0 %"), (0.004, "0.4 %"), (0.37, "37 %"), (1, "100 %")]
)
def test_shares(fraction: float, shown: str) -> None:
    assert shown == units.percent(fraction)


@given(st.floats(0, 1e17))
def test_no_number_is_wider_than_a_column(value: float) -> None:
    assert 8 >= max(map(len, (units.count(value), units.rate(value), units.size(value))))


@given(st.floats(0, 8e8))
def test_no_duration_is_wider_than_a_column(seconds: float) -> None:
    assert 8 >= len(units.duration(seconds))
