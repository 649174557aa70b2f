"""Parses times on the command line into milliseconds since the epoch."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta
from typing import Final

from trionet.errors import ConfigError

from ._numbers import INT64_MAX

HELP: Final = (
    "2026-03-01, 2026-03-01T12:30 (UTC unless it has a zone), 90s, 15m, 2h or 7d (ago), now"
)

_AGO: Final = re.compile(r"-?(\d+)(ms|s|m|h|d|w)")
_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
# Smaller numbers are seconds (until the year 5138), larger ones milliseconds (from 1973 on).
_MILLISECONDS_FROM: Final = 100_000_000_000


def parse_time(text: str, now: datetime) -> int:
    """Parse a time and return it in milliseconds since the epoch.

    Args:
        text: an ISO 8601 date or time; a duration before now (``2h``); ``now``; or seconds or
            milliseconds since the epoch.
        now: the current time, timezone-aware.

    Raises:
        ConfigError: the text is none of these.
    """
    word = text.strip().lower()
    try:
        if word == "now":
            return _since_1970(now)
        if word.isascii() and word.isdecimal():
            number = int(word)
            if number > INT64_MAX:
                raise OverflowError
            return number if number >= _MILLISECONDS_FROM else number * 1000
        if ago := _AGO.fullmatch(word):
            return _since_1970(now - int(ago[1]) * _UNITS[ago[2]])
        time = datetime.fromisoformat(text.strip())
        return _since_1970(time if time.tzinfo else time.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise ConfigError(
            f"invalid time {text!r}: expected {HELP}, or seconds since the epoch"
        ) from None


def time_text(milliseconds: int) -> str:
    """Format a timestamp as ISO 8601, or as a number if it is outside the years 1 to 9999."""
    try:
        time = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:  # before the year 1, or after 9999
        return str(milliseconds)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z"


def allow_times(parser: argparse.ArgumentParser) -> None:
    """Make the parser accept values such as ``-1h``, which argparse would treat as options."""
    parser._negative_number_matcher = re.compile(r"-\d+(?:ms|[smhdw])?")  # noqa: SLF001


def _since_1970(time: datetime) -> int:
    # Negative timestamps have special meanings to a broker, such as the end of the log.
    return max(0, (time - _EPOCH) // _MILLISECOND)
