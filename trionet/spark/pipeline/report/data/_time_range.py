"""Which part of the results a report is about: two times, as people write them. Pure.

Times without a zone are UTC, as the results are.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

import attrs

from .....errors import ConfigError

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_RELATIVE: Final = re.compile(r"-(?P<count>\d+)(?P<unit>[smhdw])")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")

_FORMS: Final = (
    "a time is a day (2026-03-01), a time of UTC (2026-03-01T12:30), one with its zone"
    " (2026-03-01T12:30+01:00), or how long ago it was (-30s, -90m, -1h, -2d, -1w)"
)


@attrs.frozen
class TimeRange:
    """From one time on, before another one; None is without a bound."""

    start: datetime | None = None
    end: datetime | None = None

    def __str__(self) -> str:
        start = "the beginning" if self.start is None else shown(self.start)
        end = "the end" if self.end is None else shown(self.end)
        return f"from {start} to {end}"


def time_range(start: str | None, end: str | None, now: datetime) -> TimeRange:
    """The range between two times as they were written.

    Args:
        start: where it begins; a day begins with its first second.
        end: where it ends, which is no part of it; a day with its last second.
        now: what is relative counts from here; with a zone.

    Raises:
        ConfigError: a text is no time, or the range ends before it begins.
    """
    chosen = TimeRange(
        None if start is None else _time("--from", start, now, is_end=False),
        None if end is None else _time("--to", end, now, is_end=True),
    )
    if chosen.start is not None and chosen.end is not None and chosen.start >= chosen.end:
        raise ConfigError(
            f"--from {start} --to {end}: nothing is between {shown(chosen.start)} and"
            f" {shown(chosen.end)}"
        )
    return chosen


def _time(option: str, text: str, now: datetime, *, is_end: bool) -> datetime:
    try:
        if ago := _RELATIVE.fullmatch(text):
            return now - timedelta(**{_UNITS[ago["unit"]]: int(ago["count"])})
        if _DAY.fullmatch(text):
            day = date.fromisoformat(text) + timedelta(days=is_end)
            return datetime(day.year, day.month, day.day, tzinfo=UTC)
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ConfigError(f"{option} {text!r}: {_FORMS}") from None


def shown(time: datetime) -> str:
    """A time as the report writes it: seconds only where there are some."""
    time = time.astimezone(UTC)
    return time.strftime("%Y-%m-%d %H:%M:%S UTC" if time.second else "%Y-%m-%d %H:%M UTC")
