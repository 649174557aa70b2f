"""Which minutes a report is about, as people say it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from trionet.errors import ConfigError
from trionet.spark.pipeline.report._inputs import TimeRange, format_time, time_range

NOW = datetime(2026, 3, 1, 12, 30, 15, tzinfo=UTC)
DAY = datetime(2026, 2, 27, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("-30s", NOW - timedelta(seconds=30)),
        ("-90m", NOW - timedelta(minutes=90)),
        ("-1h", NOW - timedelta(hours=1)),
        ("-2d", NOW - timedelta(days=2)),
        ("-1w", NOW - timedelta(weeks=1)),
        ("1h", NOW - timedelta(hours=1)),
        (str(int(DAY.timestamp())), DAY),
        ("2026-02-27", DAY),
        ("2026-02-27T10:30", DAY + timedelta(hours=10, minutes=30)),
        ("2026-02-27 10:30:05", DAY + timedelta(hours=10, minutes=30, seconds=5)),
        ("2026-02-27T10:30Z", DAY + timedelta(hours=10, minutes=30)),
        ("2026-02-27T10:30+02:00", DAY + timedelta(hours=8, minutes=30)),
    ],
)
def test_a_time_can_be_written_in_many_ways_and_is_utc_without_a_zone(
    text: str, time: datetime
) -> None:
    assert TimeRange(time, None) == time_range(text, None, NOW)


def test_a_day_is_all_of_it_at_the_end_too() -> None:
    assert TimeRange(DAY, DAY + timedelta(days=1)) == time_range("2026-02-27", "2026-02-27", NOW)


def test_without_times_a_report_is_about_everything() -> None:
    assert TimeRange(None, None) == time_range(None, None, NOW)


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "-1y", "-h", "2026-02-30", "2026-13-01T00:00", "-99999999999w"),
        *("20260227", "2026"),
    ],
)
def test_what_is_no_time_is_an_error_that_says_what_is(text: str) -> None:
    with pytest.raises(ConfigError, match="--from") as raised:
        time_range(text, None, NOW)

    assert repr(text) in str(raised.value)
    assert "2h or 7d (ago)" in str(raised.value)


def test_no_day_ends_after_the_calendar() -> None:
    with pytest.raises(ConfigError, match="--to"):
        time_range(None, "9999-12-31", NOW)


@pytest.mark.parametrize(("start", "end"), [("-1h", "-2h"), ("-1h", "-1h"), ("2026-03-02", "-1h")])
def test_a_range_that_ends_before_it_begins_is_an_error(start: str, end: str) -> None:
    with pytest.raises(ConfigError, match="the range is empty"):
        time_range(start, end, NOW)


def test_times_are_shown_in_utc_and_with_seconds_only_if_there_are_some() -> None:
    assert "2026-03-01 12:30:15 UTC" == format_time(NOW)
    assert "2026-03-01 12:30 UTC" == format_time(NOW.replace(second=0))
