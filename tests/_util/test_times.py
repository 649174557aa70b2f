"""Times as people write them, the same for all commands, and as records have them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trionet._util._times import TIME, parse_duration, time_of, time_text

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NOW_MS = 1_772_366_400_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", NOW_MS),
        ("1h", NOW_MS - 3_600_000),
        ("-90s", NOW_MS - 90_000),
        ("250ms", NOW_MS - 250),
        ("2d", NOW_MS - 172_800_000),
        ("1h30m", NOW_MS - 5_400_000),
        ("2026-03-01", NOW_MS - 43_200_000),
        ("2026-03-01T12:00", NOW_MS),
        ("2026-03-01 12:00", NOW_MS),
        ("2026-03-01T12:00:00Z", NOW_MS),
        ("2026-03-01T12:00:00.000", NOW_MS),  # the only form of kafka-consumer-groups.sh
        ("2026-03-01T13:00+01:00", NOW_MS),
        ("2026-03-01T13:00+0100", NOW_MS),
        ("2026-03-01T13:00+01", NOW_MS),
        ("1772366400", NOW_MS),
        ("1772366400000", NOW_MS),
        ("1969-12-31T23:59:59.999", 0),  # not -1, which is the end to a broker
        ("60000d", 0),
    ],
)
def test_a_time_is_read(text: str, expected: int) -> None:
    assert re.fullmatch(TIME, text)
    assert expected == time_of(text, NOW)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "1y",
        "3M",  # minutes or months
        "2026-13-01",
        "2026-02-30",
        "2026-03",
        "2026-W09",
        "20260301T000000",
        "2026-03-01T12",
        "--1h",
        "99999999999999999999h",
        "9" * 5000 + "h",
        "\u0661h",
    ],
)
def test_what_is_no_time_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid time .*: expected 2026-03-01,"):
        time_of(text, NOW)


@pytest.mark.parametrize(
    "text",
    [
        "20270101",  # a date, or seconds of 1970
        "2026",
        "0",
        "202603011200",  # a date and a time, or milliseconds of 2001
        "20260301120000",
        "1772366400000000",  # microseconds, or milliseconds
        "9" * 5000,
    ],
)
def test_a_number_that_could_mean_two_things_is_refused(text: str) -> None:
    why = rf"a number of {len(text)} digits could be a date or a timestamp of any unit; expected "
    with pytest.raises(ValueError, match=why):
        time_of(text, NOW)


def test_a_duration_has_several_parts() -> None:
    assert 90_061_001 == parse_duration("1d1h1m1s1ms")
    assert parse_duration("1h:") is None


_MILLISECONDS = st.integers(-(2**63), 2**63 - 1) | st.integers(
    -62_135_596_800_000, 253_402_300_799_999
)


@settings(max_examples=50)
@given(_MILLISECONDS)
def test_any_time_of_a_record_has_a_text(milliseconds: int) -> None:
    text = time_text(milliseconds)

    assert text == str(milliseconds) or max(0, milliseconds) == time_of(text, NOW)


def test_a_time_has_its_milliseconds() -> None:
    assert "2026-03-01T12:00:00.007Z" == time_text(NOW_MS + 7)
    assert "0999-12-31T23:59:59.999Z" == time_text(-30_610_224_000_001)
