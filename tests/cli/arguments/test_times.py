"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trionet.cli.arguments._times import parse_time, time_text
from trionet.errors import ConfigError

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
        ("2026-03-01", NOW_MS - 43_200_000),
        ("2026-03-01T12:00", NOW_MS),
        ("2026-03-01T12:00:00Z", NOW_MS),
        ("2026-03-01T13:00+01:00", NOW_MS),
        ("1772366400", NOW_MS),
        ("1772366400000", NOW_MS),
        ("0", 0),
        ("1969-12-31T23:59:59.999", 0),  # not -1, which is the end to a broker
        ("60000d", 0),
    ],
)
def test_a_time_is_read(text: str, expected: int) -> None:
    assert expected == parse_time(text, NOW)


@pytest.mark.parametrize(
    "text",
    ["", "9" * 20, "yesterday", "1y", "2026-13-01", "--1h", "99999999999999999999h", "1h30m"],
)
def test_what_is_no_time_is_reported(text: str) -> None:
    with pytest.raises(ConfigError, match=r"invalid time .*: expected 2026-03-01,"):
        parse_time(text, NOW)


@settings(max_examples=30)
@given(st.integers(-(2**63), 2**63 - 1))
def test_any_time_of_a_record_has_a_text(milliseconds: int) -> None:
    text = time_text(milliseconds)

    assert text == str(milliseconds) or max(0, milliseconds) == parse_time(text, NOW)


def test_a_time_has_its_milliseconds() -> None:
    assert "2026-03-01T12:00:00.007Z" == time_text(NOW_MS + 7)
