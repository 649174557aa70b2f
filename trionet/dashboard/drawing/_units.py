"""Formats numbers so that they can be read at a glance, in at most eight characters."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Final

_THOUSANDS: Final = ("", "k", "M", "G", "T", "P", "E")
#: The formats of durations in two units: the upper limit in seconds, the seconds in the smaller
#: unit, the number of smaller units in the larger one, and the letters of both units.
_LONG: Final = (
    (3_600, 1, 60, "ms"),
    (86_400, 60, 60, "hm"),
    (8_640_000, 3_600, 24, "dh"),
)
_BYTES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def count(value: float | None) -> str:
    """Format an integer: up to 99,999 with commas, larger numbers as 123k, and None as ``-``."""
    if value is None or not math.isfinite(value):
        return "-"
    if abs(value) < 99_999.5:
        return f"{value:,.0f}"
    return _scaled(value, 1000, _THOUSANDS, "")


def rate(value: float | None) -> str:
    """Format a number as :func:`count` does, but with one decimal below 10."""
    if value is not None and 0 < abs(value) < 9.95:
        return f"{value:.1f}"
    return count(value)


def per_second(value: float | None) -> str:
    """Format a rate with its unit, such as ``12/s``, or ``-`` for None."""
    return "-" if value is None else f"{rate(value)}/s"


def size(value: float | None) -> str:
    """Format a number of bytes in powers of 1,024: ``512 B``, ``1.5 MiB``."""
    if value is None or not math.isfinite(value):
        return "-"
    return _scaled(value, 1024, _BYTES, " ")


def _scaled(value: float, base: int, units: tuple[str, ...], space: str) -> str:
    scaled, index = float(value), 0
    # 999.5 would be rounded to 1000.
    while abs(scaled) >= base - 0.5 and index < len(units) - 1:
        scaled /= base
        index += 1
    digits = 1 if index and abs(scaled) < 9.95 else 0
    return f"{scaled:.{digits}f}{space}{units[index]}"


def duration(seconds: float | None) -> str:
    """Format a duration: ``350 µs``, ``1.2 ms``, ``3m 12s``, ``2h 05m``, or ``-`` for None."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    if seconds < 0.0009995:
        return f"{seconds * 1e6:.0f} µs" if seconds > 0 else "0 s"
    if seconds < 0.9995:
        ms = seconds * 1e3
        return f"{ms:.1f} ms" if ms < 9.95 else f"{ms:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    for limit, unit_seconds, per, names in _LONG:
        if whole < limit:
            first, second = divmod(whole // unit_seconds, per)
            return f"{first}{names[0]} {second:02}{names[1]}"
    return f"{whole // 86_400:,}d"


def percent(fraction: float | None) -> str:
    """Format a fraction of 1 as a percentage: ``0.4 %``, ``37 %``, or ``-`` for None."""
    if fraction is None or not math.isfinite(fraction):
        return "-"
    value = fraction * 100
    return f"{value:.1f} %" if 0 < value < 9.95 else f"{value:.0f} %"


def milliseconds(ms: float | None) -> str:
    """Format a duration in milliseconds as :func:`duration` does."""
    return "-" if ms is None else duration(ms / 1000)


def clock(time: float, per_second: int = 1) -> str:
    """Format the time of day in the local time zone.

    Args:
        time: the time since the epoch; without a year in the calendar, it is formatted as a number.
        per_second: the units of ``time`` in a second: 1, or 1,000 for milliseconds.
    """
    local = _local(time, per_second)
    return str(time) if local is None else local.strftime("%H:%M:%S.%f")[:12]


def moment(time: float, per_second: int = 1) -> str:
    """Format the date and the time in the local time zone; see :func:`clock`."""
    local = _local(time, per_second)
    return str(time) if local is None else local.isoformat(" ", "milliseconds")


def day_and_minute(time: float, per_second: int = 1) -> str:
    """Format month, day, hour and minute in the local time zone; see :func:`clock`."""
    local = _local(time, per_second)
    return str(time) if local is None else local.strftime("%m-%d %H:%M")


def _local(time: float, per_second: int) -> datetime | None:
    """Return a local time, or None if it is in no year of the calendar: clients choose times."""
    try:
        return datetime.fromtimestamp(time / per_second).astimezone()
    except (OverflowError, ValueError, OSError):
        return None


def yes(value: object) -> str:
    """Format a boolean as ``yes`` or an empty text."""
    return "yes" if value else ""
