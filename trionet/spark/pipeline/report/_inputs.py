"""What a report is asked for: a folder of results, a range of time, and filters.

These are checked before Spark is started, which takes seconds, so this module imports neither
pyspark nor pyarrow. Times without a time zone are in UTC, like the results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import attrs

from ...._util._times import DAY, time_of
from ....errors import ConfigError

#: The table that every results directory has.
WINDOWS: Final = "windows"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WHAT_TO_GIVE: Final = "give the directory of `trionet pipeline run --folder`"


@attrs.frozen
class TimeRange:
    """The times from ``start``, inclusive, to ``end``, exclusive; None means unbounded."""

    start: datetime | None = None
    end: datetime | None = None

    def __str__(self) -> str:
        start = "the beginning" if self.start is None else format_time(self.start)
        end = "the end" if self.end is None else format_time(self.end)
        return f"from {start} to {end}"


def time_range(start: str | None, end: str | None, now: datetime) -> TimeRange:
    """Parse a time range.

    Args:
        start: when the range starts; a date means the start of that day.
        end: when the range ends, exclusive; a date means the end of that day.
        now: the time from which relative times are counted, with a time zone.

    Raises:
        ConfigError: a text is not a time, or the range is empty.
    """
    parsed = TimeRange(
        None if start is None else _time("--from", start, now, is_end=False),
        None if end is None else _time("--to", end, now, is_end=True),
    )
    if parsed.start is not None and parsed.end is not None and parsed.start >= parsed.end:
        raise ConfigError(
            f"--from {start} --to {end}: the range is empty: {format_time(parsed.start)} is not"
            f" before {format_time(parsed.end)}"
        )
    return parsed


def _time(option: str, text: str, now: datetime, *, is_end: bool) -> datetime:
    try:
        time = _EPOCH + timedelta(milliseconds=time_of(text, now))
        return time + timedelta(days=1) if is_end and re.fullmatch(DAY, text) else time
    except (ValueError, OverflowError) as error:  # no day follows the last one of the year 9999
        raise ConfigError(f"{option}: {error}") from None


def format_time(time: datetime) -> str:
    """Format a time in UTC; seconds are omitted if they are zero."""
    time = time.astimezone(UTC)
    return time.strftime("%Y-%m-%d %H:%M:%S UTC" if time.second else "%Y-%m-%d %H:%M UTC")


def check_folder(folder: str) -> None:
    """Check, before Spark is started, that a local directory contains results.

    Raises:
        ConfigError: the directory does not exist, or contains no pipeline results.
    """
    parts = urlsplit(folder)
    if parts.scheme not in ("", "file"):
        return  # a remote file system, which only Spark can read
    path = Path(unquote(parts.path) if parts.scheme else folder)
    if not path.is_dir():
        what = "is not a directory" if path.exists() else "does not exist"
        raise ConfigError(f"--folder {folder}: {what}; {_WHAT_TO_GIVE}")
    if not (path / WINDOWS).is_dir():
        raise ConfigError(
            f"--folder {folder}: no pipeline results (no directory {WINDOWS}); {_WHAT_TO_GIVE};"
            " the first results are written when the watermark passes the end of the first minute"
        )


@attrs.frozen
class Filters:
    """Which requests to include; an empty filter includes all requests."""

    apis: Mapping[int, str] = attrs.field(factory=dict)
    clients: Sequence[str] = ()
    listeners: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.apis or self.clients or self.listeners)

    def values(self, scope: Sequence[str]) -> Mapping[str, Sequence[int | str]]:
        """Return the values to include, keyed by the columns of a table's scope that are limited.

        Args:
            scope: the columns of the table that filters apply to.
        """
        wanted: Mapping[str, Sequence[int | str]] = {
            "api_key": list(self.apis),
            "client_id": self.clients,
            "listener": self.listeners,
        }
        return {name: values for name in scope if (values := wanted[name])}
